// States that an optimizer continues from: states as PyTorch saves them, and momentum that is switched on, off and on
// again. Eagerly and in compiled steps.
//
// The rule is PyTorch's: SGD's first step with momentum is the one that finds no buffer, whatever has been counted.
#include <catch2/catch.hpp>

#include <cmath>
#include <functional>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/optimizer_state.h"

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
  CHECK(rg::state_of(s.sgd).empty());
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
    optim::SGDOptions& options = s.sgd.param_groups()[0].options;
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
  optim::SGDOptions& options = s.sgd.param_groups()[0].options;
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

TEST_CASE("Training goes on with the same bits from a file: parameters, optimizer, scheduler") {
  const auto gradient = [](int t) { return rg::full({3}, 0.3 * t - 1, {rg::kFloat64}); };
  struct Run {
    Tensor p = rg::ones({3}, {rg::kFloat64, rg::kCPU, true});
    optim::Adam optimizer{{p}, {.lr = 0.1}};
    optim::SequentialLR scheduler{optimizer,
                                  {std::make_shared<optim::LinearLR>(optimizer, 0.1, 1.0, 4),
                                   std::make_shared<optim::CyclicLR>(optimizer, 0.01, 0.1)},
                                  {4}};
    void step(const Tensor& g) {
      p.set_grad(g);
      optimizer.step();
      scheduler.step();
    }
  };
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/checkpoint.safetensors";
  for (const int stop : {0, 1, 3, 5, 8}) {
    INFO("stopped after " << stop);
    Run whole, first, second;
    for (int t = 0; t < stop; ++t) whole.step(gradient(t)), first.step(gradient(t));
    rg::StateDict saved;
    for (auto& [key, value] : first.optimizer.state_dict()) saved.emplace("optimizer." + key, value);
    for (auto& [key, value] : first.scheduler.state_dict()) saved.emplace("scheduler." + key, value);
    saved.emplace("p", first.p.detach());
    rg::save(saved, path);
    const auto part = [&](const std::string& prefix) {
      rg::StateDict found;
      for (const auto& [key, value] : rg::load(path))
        if (key.starts_with(prefix)) found.emplace(key.substr(prefix.size()), value);
      return found;
    };
    {
      rg::NoGradGuard no_grad;
      second.p.copy_(part("p").at(""));
    }
    second.optimizer.load_state_dict(part("optimizer."));
    second.scheduler.load_state_dict(part("scheduler."));
    for (int t = stop; t < 12; ++t) {
      whole.step(gradient(t)), second.step(gradient(t));
      CHECK(whole.p.to_vector() == second.p.to_vector());
      CHECK(whole.optimizer.param_groups()[0].options.lr == second.optimizer.param_groups()[0].options.lr);
    }
  }
}

TEST_CASE("Options that are wrong, or of another optimizer, are refused, and nothing is loaded") {
  const Tensor p = rg::ones({3}, {rg::kFloat64, rg::kCPU, true});
  optim::Adam adam({p}, {.lr = 0.1});
  p.set_grad(rg::ones({3}, {rg::kFloat64}));
  adam.step();
  rg::StateDict state = adam.state_dict();
  CHECK(state.at("param_groups.0.betas").to_vector() == std::vector<double>{0.9, 0.999});
  optim::SGD sgd({p});
  CHECK(category_of([&] { sgd.load_state_dict(state); }) == Category::bad_argument);
  state.at("param_groups.0.lr") = rg::scalar_tensor(-1.0, {rg::kFloat64});
  optim::Adam other({p}, {.lr = 0.3});
  CHECK(category_of([&] { other.load_state_dict(state); }) == Category::bad_argument);
  CHECK(other.param_groups()[0].options.lr == 0.3);
  CHECK(!other.state_dict().contains("0.step"));
}

TEST_CASE("L-BFGS goes on from a saved state with its options, before and after its first step") {
  struct Run {
    explicit Run(optim::LBFGSOptions options) : optimizer({p}, options) {}
    void step() {
      optimizer.step([&] {
        optimizer.zero_grad();
        const Tensor loss = rg::sum(rg::square(rg::square(p) - target));
        loss.backward();
        return loss;
      });
    }
    Tensor p = rg::full({3}, 0.5, {rg::kFloat64, rg::kCPU, true});
    const Tensor target = rg::tensor({1, 2, 3}, {3}, {rg::kFloat64});
    optim::LBFGS optimizer;
  };
  for (const int stop : {0, 1, 2}) {
    INFO("stopped after " << stop);
    Run first({.lr = 0.3, .max_iter = 3, .max_eval = 2, .tolerance_grad = 1e-9, .history_size = 2}),
        second({});
    optim::StepLR scheduler(first.optimizer, 1, 0.5);
    for (int t = 0; t < stop; ++t) first.step(), scheduler.step();
    {
      rg::NoGradGuard no_grad;
      second.p.copy_(first.p);
    }
    const rg::StateDict saved = first.optimizer.state_dict();
    CHECK(saved.at("param_groups.0.initial_lr").item<double>() == 0.3);
    second.optimizer.load_state_dict(saved);
    CHECK(second.optimizer.options.lr == first.optimizer.options.lr);
    CHECK(second.optimizer.options.max_iter == 3);
    CHECK(second.optimizer.options.max_eval == 2);
    CHECK(second.optimizer.options.history_size == 2);
    CHECK(second.optimizer.options.tolerance_grad == 1e-9);
    for (int t = stop; t < 4; ++t) {
      first.step(), second.step();
      CHECK(first.p.to_vector() == second.p.to_vector());
    }
  }
  Run searching({.line_search_fn = optim::LineSearchFn::strong_wolfe}), other({.lr = 0.7});
  CHECK(category_of([&] { other.optimizer.load_state_dict(searching.optimizer.state_dict()); }) ==
        Category::bad_argument);
  rg::StateDict wrong = other.optimizer.state_dict();
  wrong.at("param_groups.0.lr") = rg::scalar_tensor(0.1, {rg::kFloat64});
  wrong.at("param_groups.0.max_eval") = rg::scalar_tensor(int64_t{0}, {rg::kInt64});
  CHECK(category_of([&] { other.optimizer.load_state_dict(wrong); }) == Category::bad_argument);
  CHECK(other.optimizer.options.lr == 0.7);
  CHECK(!other.optimizer.options.max_eval);
}
