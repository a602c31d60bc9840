// Values that a backward can recompute are not saved (ir/passes/recompute_saved.h): which values are dropped, what they are
// computed from, and the resulting outputs and inputs; text to text. At the end compiled functions test that gradients
// stay the same bit for bit.
#include "ir/passes/recompute_saved.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "ir/verify.h"
#include "tests/ir/ir_test.h"

namespace rg = retrograd;
namespace ir = rg::ir;
using rg::Tensor;

namespace {

// Values of the forward by their numbers in its text; all of them are saved, as the outputs from the first on.
struct Saved {
  ir::Graph forward;
  std::vector<ir::ValueId> values;
  ir::Recompute recompute;

  Saved(const std::string& inputs, const std::string& nodes, std::vector<ir::ValueId> saved,
        std::vector<size_t> held = {})
      : forward(ir_test::parse("graph @forward(" + inputs + ") {\n" + nodes + "}\n")),
        values(std::move(saved)),
        recompute(forward, values, [&](size_t i) { return !std::ranges::count(held, i); }) {}

  // "1 <- 0, 2 <- 0 1": for each dropped value, its sources.
  std::string text() const {
    std::string all;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!recompute.goes(i)) continue;
      all += (all.empty() ? "" : ", ") + std::to_string(i) + " <-";
      for (int32_t source : recompute.sources(i)) all += " " + std::to_string(source);
    }
    return all;
  }
};

}  // namespace

TEST_CASE("what elementwise ops, views and constants lead to from saved values goes") {
  const std::string inputs = "%0: f32[4], %1: f32[4,4]";
  const std::string nodes =
      "%2 = neg %0 : f32[4]\n"
      "%3 = exp %2 : f32[4]\n"
      "%4 = mm %1, %1 : f32[4,4]\n"
      "%5 = mul %4, %3 : f32[4,4]\n"
      "%6 = permute %5 {dims=[1,0]} : f32[4,4]\n"
      "%7 = full {size=[4], value=2.0, dtype=f32} : f32[4]\n"
      "%8 = mul %7, %3 : f32[4]\n"
      "%9 = sum %8 {dim=[0], keepdim=false} : f32[]\n"
      "return %0, %3, %4, %5, %6, %8, %9\n";
  CHECK(Saved(inputs, nodes, {0, 3, 4, 5, 6, 8, 9}).text() == "1 <- 0, 3 <- 0 2, 4 <- 0 2, 5 <- 0");
  // Not from values that are not saved, nor if somebody else holds it.
  CHECK(Saved(inputs, nodes, {3, 4, 5}).text() == "2 <- 0 1");
  CHECK(Saved(inputs, nodes, {0, 3, 4, 5}, {1}).text() == "3 <- 1 2");
  CHECK(Saved(inputs, nodes, {8}).text() == "");
}

TEST_CASE("no more than some nodes lead to a value") {
  std::string nodes;
  for (int i = 1; i <= ir::Recompute::kMostNodes + 1; ++i)
    nodes += "%" + std::to_string(i) + " = neg %" + std::to_string(i - 1) + " : f32[4]\n";
  const ir::ValueId last = ir::Recompute::kMostNodes + 1;
  nodes += "return %" + std::to_string(last) + "\n";
  CHECK(Saved("%0: f32[4]", nodes, {0, last}).text() == "");
  CHECK(Saved("%0: f32[4]", nodes, {0, last - 1}).text() == "1 <- 0");
  CHECK(Saved("%0: f32[4]", nodes, {0, 2, last}).text() == "1 <- 0, 2 <- 0");
}

TEST_CASE("what runs on the host is saved") {
  CHECK(
      Saved("%0: f32[4]", "%1 = contiguous %0 : f32[4]\n%2 = neg %1 : f32[4]\nreturn %0, %1, %2\n", {0, 1, 2})
          .text() == "2 <- 1");
}

TEST_CASE("outputs and inputs keep their numbers; values are computed before their first use") {
  Saved saved("%0: f32[4], %1: f32[4]",
              "%2 = mul %0, %1 : f32[4]\n"
              "%3 = tanh %2 : f32[4]\n"
              "%4 = sum %3 {dim=[0], keepdim=false} : f32[]\n"
              "return %4, %0, %1, %3\n",
              {0, 1, 3});
  CHECK(saved.text() == "2 <- 0 1");
  const std::vector<int32_t> outputs = {1, 2, 3};
  saved.recompute.replace_outputs(saved.forward, outputs);
  CHECK(saved.forward.outputs() == std::vector<ir::ValueId>{4, 0, 1, 0});
  ir::Graph backward = ir_test::parse(R"(graph @backward(%0: f32[], %1: f32[4], %2: f32[4], %3: f32[4]) {
  %4 = expand %0 {size=[4]} : f32[4]
  %5 = tanh_backward %4, %1 : f32[4]
  %6 = mul %5, %2 : f32[4]
  %7 = mul %5, %3 : f32[4]
  return %6, %7
}
)");
  const Saved again("%0: f32[4], %1: f32[4]",
                    "%2 = mul %0, %1 : f32[4]\n%3 = tanh %2 : f32[4]\n"
                    "%4 = sum %3 {dim=[0], keepdim=false} : f32[]\nreturn %4, %0, %1, %3\n",
                    {0, 1, 3});
  const std::vector<int32_t> which = {-1, 2, 1, 0};
  again.recompute.compute_anew(backward, again.forward, which);
  ir::verify(backward);
  CHECK(backward.print() == R"(graph @backward(%0: f32[], %1: f32[4], %2: f32[4], %3: f32[4]) {
  %4 = expand %0 {size=[4]} : f32[4]
  %5 = mul %3, %2 : f32[4]
  %6 = tanh %5 : f32[4]
  %7 = tanh_backward %4, %6 : f32[4]
  %8 = mul %7, %2 : f32[4]
  %9 = mul %7, %3 : f32[4]
  return %8, %9
}
)");
}

TEST_CASE("compiled functions save less, and their gradients are eager's bit for bit") {
  rg::manual_seed(7);
  const Tensor x = rg::randn({64, 64}).requires_grad_(), w = rg::randn({64, 64}).requires_grad_();
  const auto loss = [&](const Tensor& in) {
    const Tensor h = rg::tanh(in * w) * rg::sigmoid(in);
    return rg::mean(rg::square(h - rg::exp(-in * in) * 0.1));
  };
  const auto grads = [&](auto&& f, int64_t& held) {
    x.set_grad(Tensor());
    w.set_grad(Tensor());
    const int64_t before = rg::memory::stats().live_bytes;
    const Tensor value = f(x);
    held = rg::memory::stats().live_bytes - before;
    value.backward();
    return rg::Tensors{value.detach(), x.grad().clone(), w.grad().clone()};
  };
  int64_t eager_held = 0, held = 0;
  const rg::Tensors expected = grads(loss, eager_held);
  auto compiled = rg::compile(loss);
  for (int i = 0; i < 2; ++i) {
    const rg::Tensors found = grads(compiled, held);
    for (size_t k = 0; k < found.size(); ++k)
      CHECK(std::memcmp(found[k].raw_data(), expected[k].raw_data(),
                        static_cast<size_t>(found[k].nbytes())) == 0);
  }
  CHECK(held < eager_held / 4);
  // Kept for another backward; and differentiated again.
  const Tensor kept = compiled(x);
  for (int i = 0; i < 2; ++i) kept.backward({}, true);
  const rg::Tensors first = rg::autograd::grad({compiled(x)}, {x}, {}, {}, true);
  const rg::Tensors first_eager = rg::autograd::grad({loss(x)}, {x}, {}, {}, true);
  const Tensor second = rg::autograd::grad({rg::sum(first[0])}, {w})[0],
               second_eager = rg::autograd::grad({rg::sum(first_eager[0])}, {w})[0];
  const std::vector<double> a = second.to_vector(), b = second_eager.to_vector();
  for (size_t i = 0; i < a.size(); ++i) REQUIRE(a[i] == Approx(b[i]).margin(1e-6));
  // Saved values may not be written to.
  const Tensor bad = compiled(x);
  {
    rg::NoGradGuard no_grad;
    x.add_(rg::ones({64, 64}));
  }
  CHECK_THROWS_AS(bad.backward(), rg::Error);
}
