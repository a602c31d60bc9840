// Compiled functions and steps whose arguments have other sizes in each call: one recording serves them, with a plan for
// each set of sizes, and gives the bits of eager calls.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using Catch::Contains;
using rg::DynamicSizes;
using Function = std::function<Tensor(const Tensor&, const Tensor&)>;

struct Row {
  const char* name;
  Function function;
  std::function<std::pair<Tensor, Tensor>(int64_t, int64_t)> arguments;
  int64_t captures = 2;  // of the calls at kSizes
};

constexpr std::pair<int64_t, int64_t> kSizes[] = {{3, 5}, {4, 7}, {6, 6}, {2, 9}, {3, 5}, {5, 2}};

std::pair<Tensor, Tensor> same_shape(int64_t b, int64_t t) {
  return {parameter(rg::Shape{b, t, 4}, 1), parameter(rg::Shape{b, t, 4}, 2)};
}
std::pair<Tensor, Tensor> with_weight(int64_t b, int64_t t) {
  return {parameter(rg::Shape{b, t, 4}, 1), parameter(rg::Shape{4, 4}, 2)};
}
std::pair<Tensor, Tensor> transposed(int64_t b, int64_t t) {
  return {rg::permute(parameter(rg::Shape{t, 4, b}, 1), {2, 0, 1}).detach().requires_grad_(),
          parameter(rg::Shape{b, t, 4}, 2)};
}

Tensor attention(const Tensor& x, const Tensor& w) {
  const auto batch = x.sym_size(0), length = x.sym_size(1);
  const auto heads = [&](const Tensor& t) { return t.view({batch, length, 2, 2}).transpose(1, 2); };
  const Tensor q = heads(rg::matmul(x, w)), k = heads(rg::matmul(x, w * 0.5)), v = heads(x);
  const Tensor scores = rg::matmul(q, k.transpose(2, 3)) / std::sqrt(2.0);
  const Tensor future = rg::triu(rg::ones({length, length}), 1) * -1e9;
  const Tensor mixed = rg::matmul(rg::softmax(scores + future, -1), v);
  return rg::layer_norm(mixed.transpose(1, 2).reshape({batch, length, 4}) + x, {4});
}

const Row kRows[] = {
    {"elementwise", [](const Tensor& x, const Tensor& y) { return rg::tanh(x * y) + rg::exp(y) * 0.1; },
     same_shape},
    {"mean and variance",
     [](const Tensor& x, const Tensor& y) { return (x - rg::mean(y)) / (rg::var(x) + 1.0); }, same_shape},
    {"reductions of dims",
     [](const Tensor& x, const Tensor& y) { return rg::sum(x, {0}) * rg::mean(y, {1}, true); }, same_shape},
    {"a linear layer", [](const Tensor& x, const Tensor& w) { return rg::relu(rg::matmul(x, w)); },
     with_weight},
    {"attention", attention, with_weight},
    {"reshape and flatten",
     [](const Tensor& x, const Tensor& y) { return rg::flatten(x) * y.reshape({-1}) + y.view({-1}); },
     same_shape},
    {"slices, select, cat",
     [](const Tensor& x, const Tensor& y) {
       return rg::cat({rg::slice(x, 1, 1), rg::unsqueeze(rg::select(y, 2, 1), 2) * x}, 1);
     },
     same_shape, 3},  // of 2, slice() leaves 1
    {"windows of a fixed length, which may be all",
     [](const Tensor& x, const Tensor& y) { return rg::narrow(x, 0, 0, 2) * rg::narrow(y, 0, -2, 2); },
     same_shape, 3},
    {"expand, repeat",
     [](const Tensor& x, const Tensor& y) {
       return rg::expand(rg::unsqueeze(x.select(1, 0), 1), y.sym_sizes()) * rg::repeat(y, {1, 1, 1});
     },
     same_shape},
    {"not row-major",
     [](const Tensor& x, const Tensor& y) {
       return x.reshape({-1, 4}) * y.view({-1, 4}) + 1.0;
     },
     transposed},
    {"written in place",
     [](const Tensor& x, const Tensor& y) {
       const Tensor z = x * 2.0;
       z.narrow(1, 1, 1).mul_(y.narrow(1, 0, 1));
       z.select(2, 3).fill_(1.0);
       return z * y;
     },
     same_shape},
    {"made in the function",
     [](const Tensor& x, const Tensor& y) {
       return x + rg::unsqueeze(rg::arange(x.sym_size(1)).to(rg::kFloat64), 1) * rg::ones_like(y) +
              rg::zeros({x.sym_size(0), 1, 4});
     },
     same_shape},
    {"a number of a size", [](const Tensor& x, const Tensor& y) { return x * y.sym_size(1) / x.sym_numel(); },
     same_shape},
    {"sort, gather",
     [](const Tensor& x, const Tensor& y) { return rg::gather(y, 1, rg::argsort(x, 1)) + rg::cumsum(x, 1); },
     same_shape},
};

Tensors gradients(const Tensor& out, const Tensors& of) {
  return rg::autograd::grad({rg::sum(out * out)}, of, {}, {}, false, true);
}

}  // namespace

TEST_CASE("one recording serves all sizes: values and gradients of the eager call") {
  for (const Row& row : kRows) {
    INFO(row.name);
    auto compiled = rg::compile(row.function);
    for (const auto& [b, t] : kSizes) {
      INFO(b << ", " << t << ": " << compiled.last_capture_reason());
      const auto [x, y] = row.arguments(b, t);
      const Tensor eager = row.function(x, y), out = compiled(x, y);
      check_same({eager}, {out});
      check_same(gradients(eager, {x, y}), gradients(out, {x, y}));
    }
    CHECK(compiled.stats().captures <= row.captures);
    CHECK(compiled.stats().plans <= 6);
  }
}

TEST_CASE("with DynamicSizes::always the first recording serves all sizes, with never each needs one") {
  auto always = rg::compile(attention, {.dynamic = DynamicSizes::always});
  auto never = rg::compile(attention, {.dynamic = DynamicSizes::never});
  for (const auto& [b, t] : {std::pair<int64_t, int64_t>{3, 5}, {4, 7}, {6, 5}}) {
    const auto [x, w] = with_weight(b, t);
    const Tensor eager = attention(x, w);
    check_same({eager, eager}, {always(x, w), never(x, w)});
    check_same(gradients(eager, {x, w}), gradients(always(x, w), {x, w}));
  }
  CHECK(always.stats().captures == 1);
  CHECK(always.stats().plans == 3);
  CHECK(never.stats().captures == 3);
}

TEST_CASE("sizes that were equal by chance need another recording, and only one") {
  const auto function = [](const Tensor& x, const Tensor& y) { return rg::matmul(x, y); };
  auto compiled = rg::compile(function, {.dynamic = DynamicSizes::always});
  const auto check = [&](int64_t m, int64_t k, int64_t n) {
    const Tensor x = parameter(rg::Shape{m, k}, 1), y = parameter(rg::Shape{k, n}, 2);
    check_same({function(x, y)}, {compiled(x, y)});
  };
  check(4, 4, 4);
  check(3, 5, 7);
  CHECK(compiled.stats().captures == 2);
  CHECK_THAT(compiled.last_capture_reason(), Contains("argument 0"));
  for (int i = 2; i < 9; ++i) check(i, 11 - i, 2 * i);
  CHECK(compiled.stats().captures == 2);
}

TEST_CASE(
    "a size that becomes 1 is another recording; so is one that the function looks at, which the reason "
    "tells") {
  const auto function = [](const Tensor& x, const Tensor& y) { return x * y; };
  auto compiled = rg::compile(function);
  for (const int64_t b : {4, 5, 1, 6, 1, 7, 0}) {
    const Tensor x = parameter(rg::Shape{b, 3}, 1), y = parameter(rg::Shape{1, 3}, 2);
    check_same({function(x, y)}, {compiled(x, y)});
  }
  CHECK(compiled.stats().captures == 4);

  const auto looks = [](const Tensor& x) { return x / static_cast<double>(x.size(0)); };
  auto fixed = rg::compile(looks);
  for (const int64_t b : {4, 5, 6}) {
    const Tensor x = parameter(rg::Shape{b, 3}, 1);
    check_same({looks(x)}, {fixed(x)});
  }
  CHECK(fixed.stats().captures == 3);
  CHECK_THAT(fixed.last_capture_reason(), Contains("s0 == 5"));
}

TEST_CASE("a training step with batches of any size") {
  struct Net : rg::nn::Module {
    rg::nn::Linear in{this, "in", 4, 8}, out{this, "out", 8, 2};
  };
  const auto train = [](bool recorded) {
    rg::manual_seed(3);
    Net net;
    rg::optim::AdamW adam(net.parameters(), {.lr = 0.01});
    const auto body = [&](const Tensor& x, const Tensor& y) {
      const Tensor loss = rg::mse_loss(net.out(rg::dropout(rg::relu(net.in(x)), 0.3)), y);
      loss.backward();
      adam.step();
      adam.zero_grad();
      return loss;
    };
    auto step = rg::compile_step(body);
    Tensors all;
    for (int i = 0; i < 12; ++i) {
      const int64_t b = 2 + i * 7 % 5;
      const Tensor x = spread(rg::Shape{b, 4}, i).to(rg::kFloat32),
                   y = spread(rg::Shape{b, 2}, i + 1).to(rg::kFloat32);
      all.push_back(recorded ? step(x, y) : body(x, y).detach());
    }
    for (const Tensor& p : net.parameters()) all.push_back(p.detach());
    if (recorded) {
      CHECK(step.stats().captures == 2);
      CHECK(step.stats().plans == 6);
    }
    return all;
  };
  check_same(train(false), train(true));
}

TEST_CASE("gradients of gradients at several sizes") {
  auto compiled = rg::compile(attention);
  for (const auto& [b, t] : {std::pair<int64_t, int64_t>{3, 5}, {4, 7}, {2, 6}}) {
    const auto [x, w] = with_weight(b, t);
    const auto second = [&, &x = x, &w = w](const Tensor& out) {
      const Tensors first = rg::autograd::grad({rg::sum(out * out)}, {x, w}, {}, {}, true);
      return rg::autograd::grad({rg::sum(first[0] * first[0]) + rg::sum(first[1])}, {x, w});
    };
    const Tensors eager = second(attention(x, w)), plan = second(compiled(x, w));
    for (size_t i = 0; i < 2; ++i) CHECK(rg::max(rg::abs(eager[i] - plan[i])).item<double>() < 1e-5);
  }
  CHECK(compiled.stats().captures == 2);
}

TEST_CASE("the plans of many sizes are bounded in number, and evictions are counted") {
  auto compiled = rg::compile(attention, {.plans = 4});
  const auto [x0, w] = with_weight(2, 3);
  const auto call = [&, &w = w](int i) {
    const Tensor x = parameter(rg::Shape{2 + i * 5 % 7, 2 + i * 3 % 11, 4}, i);
    return compiled(x, w);
  };
  for (int i = 0; i < 100; ++i) call(i);
  const int64_t before = rg::memory::stats().live_tensors;
  for (int i = 0; i < 200; ++i) call(i);
  CHECK(rg::memory::stats().live_tensors <= before + 64);
  CHECK(compiled.stats().captures == 2);
  CHECK(compiled.stats().plan_evictions == compiled.stats().plans - 5);
}

TEST_CASE(
    "the stride of a single entry does not matter, and errors at new sizes are those of the eager call") {
  const auto function = [](const Tensor& x) { return x * 2.0; };
  auto compiled = rg::compile(function);
  for (const int64_t t : {4, 5, 6, 7}) {
    const Tensor x = rg::permute(spread(rg::Shape{t, 1, 3}, 1), {1, 0, 2});
    check_same({function(x)}, {compiled(x)});
  }
  CHECK(compiled.stats().captures == 2);
  auto strided = rg::compile([](const Tensor& x) { return rg::as_strided(x * 2.0, {8}, {1}); });
  for (const int64_t t : {10, 12, 14}) strided(spread(rg::Shape{t}, 1));
  CHECK_THAT(error_of([&] { strided(spread(rg::Shape{4}, 1)); }), Contains("out of range"));
}

TEST_CASE("an argument without elements stays so, whatever its other sizes: any view of it is allowed") {
  const auto gap = [](int64_t n, int64_t m) {
    return rg::zeros({n, 2, m + 1}).narrow(1, 0, 0).narrow(2, 0, m);
  };
  auto compiled = rg::compile([](const Tensor& x) { return x.view({0}) + 1.0; });
  for (const auto& [n, m] : {std::pair{2, 3}, {4, 5}, {3, 7}})
    CHECK(compiled(gap(n, m)).sizes() == rg::IntArray{0});
  CHECK(compiled.stats().captures == 2);
}
