// Clipping of gradients in a recorded step: part of the graph, with eager's bits.
#include <catch2/catch.hpp>

#include <cmath>

#include "ir/graph.h"
#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using rg::Category;

struct Net {
  Tensor w = parameter({3, 4}, 7), v = parameter({rg::Dim(4)}, 8), unused = parameter({rg::Dim(2)}, 9);
  rg::optim::SGD optimizer{{w, v, unused}, {.lr = 0.5, .momentum = 0.9}};
  Tensors all() const { return {w.detach().clone(), v.detach().clone(), w.grad(), v.grad()}; }
};

// Steps whose gradients `clip` changes; the loss is scaled differently in each.
template <class Clip>
void train_both(const Clip& clip) {
  Net plain, recorded;
  const auto body = [&](Net& net, const Tensor& x, const Tensor& scale) {
    net.optimizer.zero_grad();
    const Tensor loss = rg::sum(rg::tanh(rg::mm(x, net.w) * net.v) * scale);
    loss.backward();
    clip(net);
    net.optimizer.step();
    return loss;
  };
  auto step = rg::compile_step([&](const Tensor& x, const Tensor& s) { return body(recorded, x, s); });
  for (int i = 0; i < 4; ++i) {
    INFO("step " << i);
    const Tensor x = spread({2, 3}, i), scale = rg::full({}, i == 2 ? 1e-3 : 10.0);
    check_same({body(plain, x, scale).detach()}, {step(x, scale)});
    check_same(plain.all(), recorded.all());
  }
  CHECK(step.stats().captures == 1);
  CHECK(step.stats().hits == 3);
  CHECK(step.stats().eager == 0);
}

}  // namespace

TEST_CASE("clip_grad_norm_ is recorded, for any norm") {
  for (double norm_type : {2.0, 1.0, 3.0, static_cast<double>(INFINITY)})
    train_both([=](Net& net) { rg::optim::clip_grad_norm_({net.w, net.v, net.unused}, 0.5, norm_type); });
}

TEST_CASE("clip_grad_value_ is recorded") {
  train_both([](Net& net) { rg::optim::clip_grad_value_({net.w, net.v}, 0.25); });
}

TEST_CASE("the norm may be used as a tensor; as a number it is an error that names the line") {
  Net net;
  auto step = rg::compile_step([&](const Tensor& x) {
    net.optimizer.zero_grad();
    rg::sum(rg::mm(x, net.w)).backward();
    return rg::optim::clip_grad_norm_({net.w}, 0.5).tensor();
  });
  for (int i = 0; i < 2; ++i) {
    const Tensor x = spread({2, 3}, i);
    const double found = step(x).item<double>();
    net.w.set_grad({});
    rg::sum(rg::mm(x, net.w)).backward();
    const double norm = rg::optim::clip_grad_norm_({net.w}, 0.5);
    CHECK(norm == found);
  }
  auto reads = rg::compile_step([&](const Tensor& x) {
    net.optimizer.zero_grad();
    rg::sum(rg::mm(x, net.w)).backward();
    const double norm = rg::optim::clip_grad_norm_({net.w}, 0.5);
    if (norm > 1) net.optimizer.step();
  });
  CHECK_THROWS_WITH(reads(spread({2, 3})), Catch::Contains("compile_step_clip_test.cc"));
}

TEST_CASE("error_if_nonfinite is checked in each run") {
  Net net;
  auto step = rg::compile_step([&](const Tensor& x) {
    net.optimizer.zero_grad();
    rg::sum(rg::mm(x, net.w)).backward();
    rg::optim::clip_grad_norm_({net.w}, 0.5, 2, true);
    net.optimizer.step();
  });
  step(spread({2, 3}));
  const Tensor before = net.w.detach().clone();
  CHECK(category_of([&] { step(rg::full({2, 3}, INFINITY)); }) == Category::bad_argument);
  CHECK(same_bits(before, net.w.detach()));
  step(spread({2, 3}));
  CHECK(step.stats().captures == 1);
}
