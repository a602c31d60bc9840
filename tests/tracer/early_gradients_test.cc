// Gradients that post-accumulate hooks consume: a compiled function hands each over when it is computed, in an eager
// backward. Values are those of the eager call, and not all gradients are held at once.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using Catch::Contains;

constexpr int kLayers = 8;
constexpr int64_t kWidth = 64;

// A chain of products whose weights are updated in hooks, which drop the gradients.
struct Chain {
  explicit Chain(int layers = kLayers, int64_t width = kWidth) {
    for (int i = 0; i < layers; ++i) {
      weights.push_back((spread(rg::Shape{width, width}, i) * 0.25).detach().requires_grad_());
      weights.back().register_post_accumulate_grad_hook([this, i](const Tensor& w) {
        order.push_back(i);
        if (before_update) before_update(i);
        w.detach().add_(w.grad(), -0.01);
        w.set_grad({});
      });
    }
  }
  Tensor loss(const Tensor& x) const {
    Tensor h = x;
    for (const Tensor& w : weights) h = rg::tanh(rg::mm(h, w));
    return rg::sum(h * h);
  }
  Tensors parameters() const {
    Tensors all;
    for (const Tensor& w : weights) all.push_back(w.detach());
    return all;
  }

  Tensors weights;
  std::vector<int> order;
  std::function<void(int)> before_update;
};

template <class F>
int64_t peak_of_backward(F&& loss_of) {
  const Tensor loss = loss_of();
  rg::memory::reset_peak();
  const int64_t before = rg::memory::stats().live_bytes;
  loss.backward();
  return rg::memory::stats().peak_bytes - before;
}

}  // namespace

TEST_CASE("weights that hooks update: the bits of eager calls, and at most one gradient more is held") {
  const Tensor x = spread(rg::Shape{4, kWidth}, 20);
  Chain eager, planned;
  auto compiled = rg::compile([&](const Tensor& input) { return planned.loss(input); });
  int64_t eager_peak = 0, peak = 0;
  for (int i = 0; i < 3; ++i) {
    eager_peak = peak_of_backward([&] { return eager.loss(x); });
    peak = peak_of_backward([&] { return compiled(x); });
    check_same(eager.parameters(), planned.parameters());
  }
  CHECK(eager.order == planned.order);
  const int64_t of_weight = kWidth * kWidth * 8;
  CHECK(eager_peak < 4 * of_weight);
  CHECK(peak < eager_peak + of_weight);
  CHECK(compiled.stats().captures == 1);
  for (const Tensor& w : planned.weights) CHECK(!w.grad().defined());
}

TEST_CASE("a hook that throws ends the backward: leaves before it are updated, others not") {
  const Tensor x = spread(rg::Shape{4, kWidth}, 20);
  Chain eager, planned;
  auto compiled = rg::compile([&](const Tensor& input) { return planned.loss(input); });
  for (Chain* chain : {&eager, &planned})
    chain->before_update = [](int i) {
      if (i == 5) throw std::runtime_error("no more");
    };
  const Tensor a = eager.loss(x), b = compiled(x);
  for (const Tensor& loss : {a, b}) CHECK_THROWS_WITH(loss.backward(), "no more");
  CHECK(planned.order == eager.order);
  check_same(eager.parameters(), planned.parameters());
  CHECK(same_bits(eager.weights[5].grad(), planned.weights[5].grad()));
  for (Chain* chain : {&eager, &planned}) chain->before_update = {}, chain->weights[5].set_grad({});
  eager.loss(x).backward(), compiled(x).backward();
  check_same(eager.parameters(), planned.parameters());
}

TEST_CASE("a hook that writes to what the rest of the backward reads is an error") {
  const Tensor x = spread(rg::Shape{4, kWidth}, 20);
  Chain eager, planned;
  auto compiled = rg::compile([&](const Tensor& input) { return planned.loss(input); });
  for (Chain* chain : {&eager, &planned})
    chain->before_update = [chain](int i) {
      if (i == 6) chain->weights[2].detach().zero_();
    };
  const Tensor a = eager.loss(x), b = compiled(x);
  for (const Tensor& loss : {a, b})
    CHECK(category_of([&] { loss.backward(); }) == rg::Category::version_mismatch);
}

TEST_CASE("a leaf gets its gradient once, whatever else uses it") {
  const auto run = [](bool recorded) {
    const Tensor w = parameter(rg::Shape{3, 3}, 1), v = parameter(rg::Shape{3, 3}, 2);
    std::vector<std::vector<double>> seen;
    for (const Tensor& leaf : {w, v})
      leaf.register_post_accumulate_grad_hook([&](const Tensor& t) { seen.push_back(values(t.grad())); });
    const auto twice = [&](const Tensor& x) { return rg::mm(rg::tanh(rg::mm(x, w)), w) * v; };
    auto compiled = rg::compile(twice);
    for (int i = 0; i < 2; ++i) {
      const Tensor x = parameter(rg::Shape{3, 3}, 3);
      x.register_post_accumulate_grad_hook([&](const Tensor& t) { seen.push_back(values(t.grad())); });
      const Tensor before = rg::mm(x, v);  // another use of x and v
      const Tensor y = recorded ? compiled(x) : twice(x);
      rg::sum(y * before).backward();
      seen.push_back(values(x.grad()));
    }
    std::ranges::sort(seen);  // leaves of one record come in another order
    return seen;
  };
  CHECK(run(false) == run(true));
}

TEST_CASE("retained graphs, and gradients that are asked for, are as without hooks") {
  const Tensor x = spread(rg::Shape{4, 8}, 20);
  const auto run = [&](bool recorded) {
    const Chain chain(3, 8);
    auto compiled = rg::compile([&](const Tensor& input) { return chain.loss(input); });
    const Tensor loss = recorded ? compiled(x) : chain.loss(x);
    Tensors all = rg::autograd::grad({loss}, chain.weights, {}, /*retain_graph=*/true);
    rg::autograd::backward({loss}, {}, {}, false, Tensors{chain.weights[1]});
    all.push_back(chain.weights[0].grad());
    for (const Tensor& w : chain.parameters()) all.push_back(w);
    return all;
  };
  check_same(run(false), run(true));
}
