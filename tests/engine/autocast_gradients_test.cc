// Derivatives of autocast code: gradients, custom functions, what is recomputed, tangents, whole trainings.
#include <catch2/catch.hpp>

#include <optional>

#include "retrograd/retrograd.h"
#include "tests/engine/autocast.h"

namespace {

using namespace autocast_tests;
using rg::autocast;
using rg::kBFloat16;
using rg::kFloat16;
using rg::kFloat32;
using rg::ScalarType;
using rg::Tensor;
using rg::Tensors;

}  // namespace

TEST_CASE("gradients have the dtypes of what they belong to") {
  const Tensor w = parameter({4, 3}), b = parameter({3}), x = parameter({2, 4});
  Tensor hidden;
  {
    const autocast scope;
    hidden = rg::linear(x, rg::transpose(w, 0, 1), b);
    hidden.retain_grad();
    const Tensor loss = rg::sum(rg::tanh(hidden));
    CHECK(loss.dtype() == kFloat32);
    loss.backward();  // inside of the scope
  }
  CHECK(hidden.grad().dtype() == kBFloat16);
  for (const Tensor& t : {w, b, x}) CHECK(t.grad().dtype() == kFloat32);
  const Tensor wl = w.detach().requires_grad_(), xl = x.detach().requires_grad_(),
               bl = b.detach().requires_grad_();
  rg::sum(rg::tanh(rg::linear(xl.to(kBFloat16), rg::transpose(wl, 0, 1).to(kBFloat16), bl.to(kBFloat16)))
              .to(kFloat32))
      .backward();
  check_equal(w.grad(), wl.grad());
  check_equal(x.grad(), xl.grad());
  check_equal(b.grad(), bl.grad());
}

TEST_CASE("a backward inside of the scope and one outside compute the same, without casts") {
  const auto gradients = [](bool is_inside) {
    const Tensor w = parameter({4, 4}), x = values({3, 4});
    std::optional<autocast> scope(std::in_place);
    const Tensor y = rg::mm(rg::softmax(rg::mm(x, w), 1), w);
    const Tensor loss = rg::sum(rg::exp(y) * rg::layer_norm(y, {4}));
    if (!is_inside) scope.reset();
    CHECK(casts_of([&] { loss.backward(); }) == Casts{0, 0});
    return w.grad();
  };
  check_equal(gradients(true), gradients(false));
}

TEST_CASE("a gradient of a gradient goes through the casts") {
  const Tensor w = parameter({3, 3}), x = values({2, 3});
  const auto penalty = [&](const Tensor& by, const Tensor& loss) {
    const Tensor g = rg::autograd::grad({loss}, {by}, {}, true, true)[0];
    CHECK(g.dtype() == kFloat32);
    return rg::autograd::grad({rg::sum(g * g)}, {by})[0];
  };
  Tensor found;
  {
    const autocast scope;
    found = penalty(w, rg::sum(rg::tanh(rg::mm(x, w))));
  }
  const Tensor y = rg::mm(x.to(kBFloat16), w.to(kBFloat16));
  check_equal(found, penalty(w, rg::sum(rg::tanh(y).to(kFloat32))));
}

namespace {

struct Product : rg::Function<Product> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    ctx->save_for_backward({a, b});
    return rg::mm(a, b);
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const Tensors saved = ctx->get_saved_variables();
    CHECK(rg::is_autocast_enabled());
    return {rg::mm(grads[0], saved[1].t()).to(kFloat32), rg::mm(saved[0].t(), grads[0]).to(kFloat32)};
  }
};

}  // namespace

TEST_CASE("forward and backward of a custom function have the scope of its call") {
  const Tensor a = parameter({2, 3}), b = parameter({3, 2});
  Tensor y;
  {
    const autocast scope;
    y = Product::apply(a, b);
  }
  CHECK(y.dtype() == kBFloat16);
  rg::sum(y).backward();
  const Tensor al = a.detach().requires_grad_(), bl = b.detach().requires_grad_();
  {
    const autocast scope;
    y = rg::mm(al, bl);
  }
  rg::sum(y).backward();
  check_equal(a.grad(), al.grad());
  check_equal(b.grad(), bl.grad());
}

TEST_CASE("what is recomputed has the casts of the forward") {
  enum Way { plain, checkpoint, policy, loop, recompute };
  const auto gradient = [](Way way) {
    const Tensor w = parameter({4, 4}), x = values({3, 4});
    const auto block = [&](const Tensor& in) { return rg::softmax(rg::mm(rg::tanh(rg::mm(in, w)), w), 1); };
    std::optional<autocast> scope(std::in_place);
    Tensor y;
    if (way == plain) y = block(block(x));
    if (way == checkpoint) y = rg::checkpoint(block, rg::checkpoint(block, x));
    if (way == policy) {
      const rg::RecomputeScope recomputes(rg::policies::recompute_all());
      y = block(block(x));
    }
    if (way == loop) y = rg::checkpoint_loop(2, block, x, {.slots = 1, .parameters = {w}});
    if (way == recompute) {
      const Tensor h = block(x).detach();
      const rg::SavedTensorHooksGuard pair(rg::recompute(h, [=] { return block(x).detach(); }));
      y = block(h);
    }
    const Tensor loss = rg::sum(y * values({3, 4}));
    scope.reset();
    const autocast other(kFloat16);  // of no effect
    loss.backward();
    return w.grad();
  };
  const Tensor expected = gradient(plain);
  check_equal(gradient(checkpoint), expected);
  check_equal(gradient(policy), expected);
  check_equal(gradient(loop), expected);
  CHECK(gradient(recompute).dtype() == kFloat32);
}

TEST_CASE("tangents go through the casts") {
  const Tensor w = parameter({3, 3}), x = values({2, 3}), t = values({2, 3}) - 0.5;
  const auto jvp = [&](const std::function<Tensor(const Tensor&)>& f) {
    const auto found = rg::autograd::jvp([&](const Tensors& in) { return Tensors{f(in[0])}; }, {x}, {t});
    return Tensors{found.outputs[0], found.tangents[0]};
  };
  Tensors found, expected;
  {
    const autocast scope;
    found = jvp([&](const Tensor& in) { return rg::softmax(rg::mm(in, w), 1); });
  }
  expected = jvp([&](const Tensor& in) {
    return rg::softmax(rg::mm(in.to(kBFloat16), w.to(kBFloat16)).to(kFloat32), 1);
  });
  check_equal(found[0], expected[0]);
  check_equal(found[1], expected[1]);
}

TEST_CASE("recurrent layers run, in the dtype of the scope") {
  rg::nn::Module net;
  const rg::nn::LSTM lstm(&net, "lstm", 3, 4, {.proj_size = 2});
  const rg::nn::GRU gru(&net, "gru", 3, 4);
  const rg::nn::RNN rnn(&net, "rnn", 3, 4);
  const Tensor x = values({5, 2, 3});
  const autocast scope;
  const Tensor outputs[] = {lstm(x).output, gru(x).output, rnn(x).output};
  for (const Tensor& y : outputs) {
    CHECK(y.dtype() == kBFloat16);
    rg::sum(y).backward();
  }
  for (const auto& p : net.parameters()) CHECK(p.grad().dtype() == kFloat32);
}

TEST_CASE("float16 with a GradScaler trains like float32") {
  const auto train = [](std::optional<ScalarType> dtype) {
    Tensor w1 = (values({4, 16}) - 0.5).requires_grad_(), w2 = (values({16, 1}) - 0.5).requires_grad_();
    rg::optim::AdamW optimizer({w1, w2}, {.lr = 0.02});
    rg::optim::GradScaler scaler({.init_scale = 1024});
    const Tensor x = values({32, 4}), y = rg::sum(x * x, 1, true);
    double loss_value = 0;
    for (int i = 0; i < 60; ++i) {
      Tensor loss;
      {
        const autocast scope(dtype.value_or(kBFloat16), {.enabled = dtype.has_value()});
        loss = rg::mse_loss(rg::mm(rg::tanh(rg::mm(x, w1)), w2), y);
      }
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
      optimizer.zero_grad();
      loss_value = loss.item<double>();
    }
    return std::pair(loss_value, scaler.was_skipped(optimizer));
  };
  const auto [exact, none] = train({});
  const auto [half, skipped] = train(kFloat16);
  CHECK_FALSE(skipped);
  CHECK(exact < 0.1);
  CHECK(half == Approx(exact).epsilon(0.02));
  CHECK(train(kBFloat16).first == Approx(exact).epsilon(0.1));
}
