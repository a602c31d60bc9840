// States that an optimizer continues from: states as PyTorch saves them, and momentum that is switched on, off and on
// again. Eagerly and in compiled steps.
//
// The rule is PyTorch's: SGD's first step with momentum is the one that finds no buffer, whatever has been counted.
#include <catch2/catch.hpp>

#include <cmath>
#include <functional>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Category;
using rg::category_of;
using rg::Tensor;

namespace {

// One step of an optimizer over one parameter, with a gradient of `g`.
class Stepper {
 public:
  Stepper(bool compiled, optim::SGDOptions options)
      : compiled_(compiled),
        sgd({p}, options),
        step_(rg::compile_step(std::function<void(const Tensor&)>([this](const Tensor& g) { step(g); }))) {}
  Stepper(const Stepper&) = delete;

  /// How far the parameter moves down.
  double operator()(double g) {
    const double before = p.item<double>();
    const Tensor gradient = rg::tensor({g}, {1}, {rg::kFloat64});
    if (compiled_)
      step_(gradient);
    else
      step(gradient);
    return before - p.item<double>();
  }

 private:
  void step(const Tensor& g) {
    p.set_grad({});
    rg::sum(p * g).backward();
    sgd.step();
  }
  bool compiled_;

 public:
  Tensor p = rg::zeros({1}, {rg::kFloat64, rg::kCPU, true});
  optim::SGD sgd;

 private:
  rg::Compiled<std::function<void(const Tensor&)>> step_;
};

Tensor buffer(double v) { return rg::tensor({v}, {1}, {rg::kFloat64}); }

TEST_CASE("SGD goes on with a momentum buffer that was saved without a count, as PyTorch saves it") {
  for (const bool compiled : {false, true})
    for (const bool steps_before : {false, true}) {
      INFO((compiled ? "compiled" : "eager") << (steps_before ? ", after a step" : ""));
      Stepper s(compiled, {.lr = 0.1, .momentum = 0.9});
      if (steps_before) CHECK(s(5) == Approx(0.5));
      s.sgd.load_state_dict({{"0.momentum_buffer", buffer(10)}});
      CHECK(s(1) == Approx(0.1 * (0.9 * 10 + 1)));
      CHECK(s(1) == Approx(0.1 * (0.9 * (0.9 * 10 + 1) + 1)));
      s.sgd.load_state_dict({});  // nothing: the next step begins the buffer
      CHECK(s(1) == Approx(0.1));
      CHECK(s(1) == Approx(0.1 * 1.9));
    }
}

TEST_CASE("A loaded buffer is saved again before the first step, one that no step has filled is not") {
  Stepper s(false, {.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  CHECK(s.sgd.state_dict().empty());
  s.sgd.load_state_dict({{"0.momentum_buffer", buffer(10)}});
  const rg::StateDict saved = s.sgd.state_dict();
  REQUIRE(saved.contains("0.momentum_buffer"));
  CHECK(saved.at("0.momentum_buffer").item<double>() == 10);
  s.sgd.load_state_dict(saved);
  CHECK(s(1) == Approx(0.1 * (0.9 * 10 + 0.5)));
}

TEST_CASE("Dampening leaves out the step that finds no buffer, and only that one") {
  for (const bool compiled : {false, true}) {
    INFO((compiled ? "compiled" : "eager"));
    Stepper s(compiled, {.lr = 0.1, .momentum = 0, .dampening = 0.5});
    optim::SGDOptions& options = s.sgd.groups()[0].options;
    CHECK(s(1) == Approx(0.1));
    CHECK(s(1) == Approx(0.1));
    options.momentum = 0.9;  // no buffer yet: its first step, though the third of all
    CHECK(s(1) == Approx(0.1));
    CHECK(s(1) == Approx(0.1 * (0.9 + 0.5)));
    options.momentum = 0;
    CHECK(s(1) == Approx(0.1));
    options.momentum = 0.9;  // the buffer is still there
    CHECK(s(1) == Approx(0.1 * (0.9 * 1.4 + 0.5)));
    CHECK(s.sgd.state_dict().at("0.step").item<int64_t>() == 6);
  }
}

TEST_CASE("A buffer made, but not filled, before steps without momentum does not count") {
  Stepper s(false, {.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  optim::SGDOptions& options = s.sgd.groups()[0].options;
  options.momentum = 0;
  CHECK(s(1) == Approx(0.1));
  CHECK_FALSE(s.sgd.state_dict().contains("0.momentum_buffer"));
  options.momentum = 0.9;
  CHECK(s(1) == Approx(0.1));
}

TEST_CASE("AdamW takes PyTorch's state, and refuses moments without the count they depend on") {
  const Tensor p = rg::zeros({1}, {rg::kFloat64, rg::kCPU, true});
  optim::AdamW adamw({p}, {.lr = 0.1, .weight_decay = 0});
  const rg::StateDict moments = {{"0.exp_avg", buffer(0.5)}, {"0.exp_avg_sq", buffer(0.25)}};
  CHECK(category_of([&] { adamw.load_state_dict(moments); }) == Category::bad_argument);
  rg::StateDict whole = moments;
  whole.emplace("0.step", rg::tensor({3}, {}, {rg::kFloat32}));  // PyTorch's is a float
  adamw.load_state_dict(whole);
  p.set_grad(buffer(1));
  adamw.step();
  const double m = 0.5 * 0.9 + 0.1, v = 0.25 * 0.999 + 0.001;
  const double by = 0.1 / (1 - std::pow(0.9, 4)) * m / (std::sqrt(v / (1 - std::pow(0.999, 4))) + 1e-8);
  CHECK(p.item<double>() == Approx(-by));
}

}  // namespace
