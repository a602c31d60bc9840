// autocast in recorded code: captured backwards, compiled functions and steps have the bits of eager code, convert each
// weight once, and are recorded again for another scope.
#include <catch2/catch.hpp>

#include <optional>

#include "engine/runner.h"
#include "ir/replay.h"
#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using rg::autocast;
using rg::kBFloat16;
using rg::kFloat16;
using rg::kFloat32;

struct Net {
  Tensor w1 = parameter({8, 16}, 1), b1 = parameter({16}, 2), w2 = parameter({16, 16}, 3),
         w3 = parameter({4, 16}, 4);
  rg::optim::AdamW optimizer{{w1, b1, w2, w3}, {.lr = 0.01}};

  /// w2 is used twice.
  Tensor logits(const Tensor& x) const {
    Tensor h = rg::tanh(rg::matmul(x, w1) + b1);
    for (int i = 0; i < 2; ++i) h = rg::layer_norm(h + rg::gelu(rg::mm(h, w2)), {16});
    return rg::linear(h, w3);
  }
  Tensor loss(const Tensor& x, const Tensor& y) const { return rg::cross_entropy(logits(x), y); }
  Tensor autocast_loss(const Tensor& x, const Tensor& y, rg::ScalarType dtype = kBFloat16) const {
    const autocast scope(dtype);
    return loss(x, y);
  }
  Tensors parameters() const { return {w1, b1, w2, w3}; }
  Tensors gradients() const {
    Tensors all;
    for (const Tensor& p : parameters()) all.push_back(p.grad());
    return all;
  }
  void drop_gradients() {
    for (const Tensor& p : parameters()) p.set_grad({});
  }
};

Tensor input(int seed) { return spread({6, 8}, seed); }
Tensor labels() { return rg::tensor<int64_t>({0, 1, 2, 3, 0, 1}, {6}, {rg::kInt64}); }

int conversions_to(const rg::ir::Graph& graph, rg::ScalarType dtype) {
  int count = 0;
  for (const rg::ir::Node& node : graph.nodes())
    count += node.op->name == "to" && graph.type(node.first_result).dtype == dtype;
  return count;
}

}  // namespace

TEST_CASE("a captured backward of autocast code has eager's bits") {
  run_both<Net>({.steps = 3, .captures = 1}, [](Net& net, Mode& mode, int step) {
    net.drop_gradients();
    std::optional<autocast> scope(std::in_place);
    const Tensor loss = net.loss(input(step), labels());
    if (step == 1) scope.reset();  // a backward outside of the scope is the same one
    mode.backward(loss);
    return net.gradients();
  });
}

TEST_CASE("a captured backward of another scope is another one") {
  run_both<Net>({.steps = 6, .captures = 3}, [](Net& net, Mode& mode, int step) {
    net.drop_gradients();
    const autocast scope(step % 3 == 1 ? kFloat16 : kBFloat16, {.enabled = step % 3 != 0});
    mode.backward(net.loss(input(step), labels()));
    return net.gradients();
  });
}

TEST_CASE("a compiled loss has eager's bits, with the scope inside or around it") {
  for (const bool is_inside : {true, false}) {
    INFO((is_inside ? "inside" : "around"));
    Net plain, net;
    auto compiled = rg::compile([&](const Tensor& x, const Tensor& y) {
      return is_inside ? net.autocast_loss(x, y) : net.loss(x, y);
    });
    for (int step = 0; step < 3; ++step) {
      plain.drop_gradients(), net.drop_gradients();
      const Tensor expected = plain.autocast_loss(input(step), labels());
      std::optional<autocast> scope;
      if (!is_inside) scope.emplace();
      const Tensor found = compiled(input(step), labels());
      check_same({expected.detach()}, {found.detach()});
      expected.backward();
      found.backward();
      check_same(plain.gradients(), net.gradients());
    }
    CHECK(compiled.stats().captures == 1);
    CHECK(compiled.stats().eager == 0);
  }
}

TEST_CASE("a recorded function converts a weight once") {
  const Tensor w = parameter({8, 3}, 1);
  auto compiled = rg::compile([&](const Tensor& x, const Tensor& y) {
    const autocast scope;
    return rg::sum(rg::mm(x, w) * rg::mm(y, w));
  });
  compiled(spread({64, 8}, 1), spread({64, 8}, 2));
  CHECK(count_nodes(*compiled.graph(), "mm") == 2);
  CHECK(conversions_to(*compiled.graph(), kBFloat16) == 3);  // x, y and w
}

TEST_CASE("a compiled function is recorded again for another scope, and found again") {
  Net plain, net;
  auto compiled = rg::compile([&](const Tensor& x, const Tensor& y) { return net.loss(x, y); });
  const auto call = [&](std::optional<rg::ScalarType> dtype) {
    std::optional<autocast> scope;
    if (dtype) scope.emplace(*dtype);
    const Tensor expected = plain.loss(input(0), labels());
    check_same({expected.detach()}, {compiled(input(0), labels()).detach()});
  };
  call({});
  call(kBFloat16);
  CHECK_THAT(compiled.last_capture_reason(), Catch::Contains("autocast was off, is bfloat16"));
  call(kFloat16);
  CHECK(compiled.stats().captures == 3);
  call({});
  call(kBFloat16);
  call(kFloat16);
  CHECK(compiled.stats().captures == 3);
  CHECK(compiled.stats().hits == 3);
  const autocast outer(kFloat16), off(kFloat16, {.enabled = false});
  compiled(input(1), labels());
  CHECK(compiled.stats().captures == 3);
}

TEST_CASE("recorded steps train with eager's bits, with and without a GradScaler") {
  for (const rg::ScalarType dtype : {kBFloat16, kFloat16}) {
    Net plain, recorded;
    rg::optim::GradScaler of_plain({.init_scale = 256, .growth_interval = 2}),
        of_recorded({.init_scale = 256, .growth_interval = 2});
    const auto train = [dtype](Net& net, rg::optim::GradScaler& scaler, const Tensor& x) {
      const Tensor loss = net.autocast_loss(x, labels(), dtype);
      if (dtype == kFloat16) {
        scaler.scale(loss).backward();
        scaler.step(net.optimizer);
        scaler.update();
      } else {
        loss.backward();
        net.optimizer.step();
      }
      net.optimizer.zero_grad();
      return loss;
    };
    auto step = rg::compile_step([&](const Tensor& x) { return train(recorded, of_recorded, x); });
    for (int i = 0; i < 6; ++i) {
      INFO("step " << i);
      check_same({train(plain, of_plain, input(i)).detach()}, {step(input(i)).detach()});
      check_same(plain.parameters(), recorded.parameters());
    }
    CHECK(step.stats().captures == 1);
    CHECK(step.stats().eager == 0);
  }
}

TEST_CASE("a scope around the whole step casts neither backward nor optimizer") {
  Net plain, recorded;
  const auto train = [](Net& net, const Tensor& x) {
    const autocast scope;
    const Tensor loss = net.loss(x, labels());
    loss.backward();
    net.optimizer.step();
    net.optimizer.zero_grad();
    return loss;
  };
  auto step = rg::compile_step([&](const Tensor& x) { return train(recorded, x); });
  for (int i = 0; i < 4; ++i) {
    check_same({train(plain, input(i)).detach()}, {step(input(i)).detach()});
    check_same(plain.parameters(), recorded.parameters());
  }
  CHECK(step.stats().captures == 1);
}

TEST_CASE("a weight that a recorded step has written to is converted again") {
  Net plain, recorded;
  const auto twice = [](Net& net, const Tensor& x) {
    const autocast scope;
    Tensor loss;
    for (int i = 0; i < 2; ++i) {
      loss = net.loss(x, labels());
      loss.backward();
      net.optimizer.step();
      net.optimizer.zero_grad();
    }
    return loss;
  };
  auto step = rg::compile_step([&](const Tensor& x) { return twice(recorded, x); });
  for (int i = 0; i < 3; ++i) {
    check_same({twice(plain, input(i)).detach()}, {step(input(i)).detach()});
    check_same(plain.parameters(), recorded.parameters());
  }
}

namespace {

template <bool Traceable>
struct Product : rg::Function<Product<Traceable>> {
  static constexpr bool is_traceable = Traceable;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    ctx->save_for_backward({a, b});
    return rg::mm(a, b).to(kFloat32);
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const Tensors saved = ctx->get_saved_variables();
    return {rg::mm(grads[0], saved[1].t()).to(kFloat32), rg::mm(saved[0].t(), grads[0]).to(kFloat32)};
  }
};

// The loss of a custom function called under autocast; calls that differ in nothing else.
template <bool Traceable>
Tensor product_loss(const Tensor& w, const Tensor& x, std::optional<rg::ScalarType> dtype) {
  const autocast scope(dtype.value_or(kFloat16), {.enabled = dtype.has_value()});
  return rg::sum(Product<Traceable>::apply(x, w) * 0.7);
}

template <bool Traceable>
void check_custom_function() {
  const Tensor w = parameter({8, 3}, 1), v = parameter({8, 3}, 1);
  rg::CompiledBackward backward = rg::compile_backward();
  for (const auto dtype :
       {std::optional(kBFloat16), std::optional<rg::ScalarType>(), std::optional(kFloat16)}) {
    for (const Tensor& t : {w, v}) t.set_grad({});
    product_loss<Traceable>(w, input(0), dtype).backward();
    backward(product_loss<Traceable>(v, input(0), dtype));
    check_same({w.grad()}, {v.grad()});
    v.set_grad({});
    auto compiled = rg::compile([&](const Tensor& x) { return product_loss<Traceable>(v, x, dtype); });
    for (int i = 0; i < 2; ++i) {
      v.set_grad({});
      const autocast other(kFloat16);  // around the run, not around the function
      compiled(input(0)).backward();
      check_same({w.grad()}, {v.grad()});
    }
    auto step = rg::compile_step([&](const Tensor& x) {
      v.set_grad({});
      product_loss<Traceable>(v, x, dtype).backward();
    });
    for (int i = 0; i < 2; ++i) {
      step(input(0));
      check_same({w.grad()}, {v.grad()});
    }
  }
}

}  // namespace

TEST_CASE("a custom function keeps the scope of its call in recorded code") {
  check_custom_function<false>();
  check_custom_function<true>();
}

TEST_CASE("a hook that a recorded step calls is not cast") {
  const Tensor w = parameter({8, 3}, 1);
  int called = 0;
  w.register_hook([&](const Tensor&) {
    ++called;
    CHECK_FALSE(rg::is_autocast_enabled());
    return Tensor();
  });
  auto step = rg::compile_step([&](const Tensor& x) { rg::sum(rg::mm(x, w)).backward(); });
  const autocast scope;
  for (int i = 0; i < 3; ++i) step(input(i));
  CHECK(step.stats().eager == 0);
  CHECK(called >= 3);
}

TEST_CASE("checkpoints in recorded code have the casts of the forward") {
  Net plain, net;
  const auto loss = [](const Net& n, const Tensor& x, bool is_checkpoint) {
    const autocast scope;
    const auto f = [&](const Tensor& in) { return n.logits(in); };
    return rg::cross_entropy(is_checkpoint ? rg::checkpoint(f, x) : f(x), labels());
  };
  auto compiled = rg::compile([&](const Tensor& x) { return loss(net, x, true); });
  auto backward = rg::compile_backward();
  for (int step = 0; step < 2; ++step) {
    plain.drop_gradients(), net.drop_gradients();
    loss(plain, input(step), false).backward();
    compiled(input(step)).backward();
    check_same(plain.gradients(), net.gradients());
    net.drop_gradients();
    backward(loss(net, input(step), true));
    check_same(plain.gradients(), net.gradients());
  }
}

TEST_CASE("a captured gradient of a gradient goes through the casts") {
  run_both({.steps = 2, .captures = 2}, [](Mode& mode, int step) {
    const Tensor w = parameter({8, 8}, 5);
    const autocast scope;
    const Tensor loss = rg::sum(rg::tanh(rg::mm(input(step), w)));
    const Tensor g = mode.grad({loss}, {w}, {}, true, true)[0];
    return mode.grad({rg::sum(g * g)}, {w});
  });
}

TEST_CASE("a graph is replayed as it was recorded") {
  const Tensor x = input(0);
  const Tensor w = spread({8, 3}, 1);
  auto compiled = rg::compile([](const Tensor& a, const Tensor& b) { return rg::mm(a, b); });
  const Tensor expected = compiled(x, w);
  const autocast scope;
  const Tensors found = rg::ir::replay(*compiled.graph(), rg::eager_emitter(), compiled.bindings({x, w}));
  check_same({expected}, {found[0]});
}
