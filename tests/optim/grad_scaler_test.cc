// GradScaler: PyTorch's factors step by step, skipped steps that change and count nothing, in eager and recorded steps
// with the same bits and one capture; several optimizers, composed rules, saved state, refusals.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Category;
using rg::category_of;
using rg::Tensor;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor parameter(const rg::IntArray& size = {2, 3}) { return rg::ones(size, {rg::kFloat32, rg::kCPU, true}); }
// Gradients of step t before scaling; some are not finite.
double gradient_at(int t) { return t % 5 == 3 ? kInf : t % 7 == 6 ? std::nan("") : std::sin(t) + 0.1; }

// A loss whose gradient is `gradient` everywhere.
Tensor loss_of(const Tensor& p, const Tensor& gradient) { return rg::sum(p * gradient); }

template <class Optimizer>
void train_both(const typename Optimizer::Options& options, bool clips = false) {
  const Tensor p = parameter(), q = parameter();
  Optimizer eager({p}, options), recorded({q}, options);
  const optim::GradScalerOptions scaling{.init_scale = 8, .growth_interval = 3};
  optim::GradScaler of_eager(scaling), of_recorded(scaling);
  const auto train = [clips](const Tensor& x, optim::Optimizer& optimizer, optim::GradScaler& scaler,
                             const Tensor& gradient) {
    scaler.scale(loss_of(x, gradient)).backward();
    if (clips) {
      scaler.unscale_(optimizer);
      optim::clip_grad_norm_({x}, 0.5);
    }
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
  };
  auto step = rg::compile_step([&](const Tensor& gradient) { train(q, recorded, of_recorded, gradient); });
  int made = 0;
  double scale = 8;
  int good = 0;
  for (int t = 0; t < 40; ++t) {
    const std::vector<double> before = p.to_vector();
    const rg::StateDict state = eager.state_dict();
    const Tensor gradient = rg::full({}, gradient_at(t), {rg::kFloat32});
    train(p, eager, of_eager, gradient);
    step(gradient);
    const bool is_bad = !std::isfinite(gradient_at(t));
    made += !is_bad;
    good = is_bad ? 0 : good + 1;
    if (is_bad) scale /= 2;
    if (good == 3) scale *= 2, good = 0;
    INFO("step " << t);
    CHECK(of_eager.get_scale() == scale);
    CHECK(of_recorded.get_scale() == scale);
    CHECK(of_eager.was_skipped(eager) == is_bad);
    CHECK(of_recorded.was_skipped(recorded) == is_bad);
    CHECK(p.to_vector() == q.to_vector());
    CHECK((p.to_vector() == before) == is_bad);
    const rg::StateDict one = eager.state_dict(), two = recorded.state_dict();
    REQUIRE(one.size() == two.size());
    for (const auto& [key, value] : one) {
      INFO(key);
      CHECK(value.to_vector() == two.at(key).to_vector());
    }
    CHECK(one.at("0.step").item<int64_t>() == made);
  }
  CHECK(step.stats().captures == 1);
}

}  // namespace

TEST_CASE("a step with gradients that are not finite changes and counts nothing") {
  train_both<optim::AdamW>({.lr = 0.01});
  train_both<optim::AdamW>({.lr = 0.01, .amsgrad = true}, true);
  train_both<optim::NAdam>({.lr = 0.01});  // whose product of momenta is kept on the host
  train_both<optim::Adafactor>({});
  train_both<optim::Muon>({.lr = 0.01});
}

TEST_CASE("the update of several optimizers depends on all of them, the step on its own") {
  const Tensor a = parameter(), b = parameter();
  optim::SGD first({a}, {.lr = 1}), second({b}, {.lr = 1});
  optim::GradScaler scaler({.init_scale = 4});
  a.set_grad(rg::full({2, 3}, 4.0, {rg::kFloat32}));
  b.set_grad(rg::full({2, 3}, kInf, {rg::kFloat32}));
  scaler.step(first), scaler.step(second);
  scaler.update();
  CHECK(a.to_vector()[0] == 0);
  CHECK(b.to_vector()[0] == 1);
  CHECK(scaler.get_scale() == 2);
}

TEST_CASE("gradients of 16 bits are unscaled, and their losses scaled in float32") {
  for (const rg::ScalarType dtype : {rg::kFloat16, rg::kBFloat16}) {
    const Tensor p = rg::ones({3}, {dtype, rg::kCPU, true});
    optim::SGD optimizer({p}, {.lr = 1});
    optim::GradScaler scaler({.init_scale = 0x1p15});
    const Tensor scaled = scaler.scale(rg::sum(p) * 0x1p-10);
    CHECK(scaled.dtype() == rg::kFloat32);
    CHECK(scaled.item<double>() == 3 * 0x1p5);
    scaled.backward();
    CHECK(p.grad().to_vector()[0] == 0x1p5);
    scaler.unscale_(optimizer);
    CHECK(p.grad().to_vector()[0] == 0x1p-10);
    p.set_grad(rg::full({3}, 0x1p10, {dtype}));
    scaler.update();
    scaler.step(optimizer);
    CHECK(p.to_vector()[0] == 1 - 0x1p-5);
  }
}

TEST_CASE("a saved scaler continues, a disabled one changes nothing") {
  const Tensor a = parameter();
  optim::SGD optimizer({a}, {.lr = 1});
  optim::GradScaler scaler({.init_scale = 4, .growth_interval = 3}), other;
  for (int t = 0; t < 2; ++t) {
    a.set_grad(rg::ones({2, 3}, {rg::kFloat32}));
    scaler.step(optimizer), scaler.update();
  }
  other.load_state_dict(scaler.state_dict());
  a.set_grad(rg::ones({2, 3}, {rg::kFloat32}));
  other.step(optimizer), other.update();
  CHECK(other.get_scale() == 8);
  rg::StateDict state = scaler.state_dict();
  state.erase("scale");
  CHECK(category_of([&] { other.load_state_dict(state); }) == Category::bad_argument);

  optim::GradScaler disabled({.enabled = false});
  const double before = a.to_vector()[0];
  a.set_grad(rg::ones({2, 3}, {rg::kFloat32}));
  CHECK(disabled.scale(a).get() == a.get());
  disabled.step(optimizer), disabled.update();
  CHECK(a.to_vector()[0] == before - 1);
  CHECK(disabled.state_dict().empty());
}

TEST_CASE("a scaler refuses calls out of order") {
  const Tensor a = parameter();
  optim::SGD optimizer({a}, {.lr = 1});
  optim::LBFGS lbfgs({a});
  optim::GradScaler scaler;
  std::string text;
  const auto is_refused = [&](auto f) { return category_of(f, &text) == Category::bad_argument; };
  CHECK(is_refused([&] { scaler.update(); }));
  CHECK(is_refused([&] { scaler.step(optimizer); }));
  CHECK(text.find("no parameter has a gradient") != std::string::npos);
  a.set_grad(rg::ones({2, 3}, {rg::kFloat32}));
  scaler.unscale_(optimizer);
  CHECK(is_refused([&] { scaler.unscale_(optimizer); }));
  scaler.step(optimizer);
  CHECK(is_refused([&] { scaler.step(optimizer); }));
  scaler.update();
  CHECK(category_of([&] { scaler.step(lbfgs); }) == Category::unsupported);
  CHECK(is_refused([&] { optim::GradScaler({.growth_factor = 1}); }));
  CHECK(text.find("growth_factor must be above 1") != std::string::npos);
}
