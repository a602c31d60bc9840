// Parameters that require no gradient: an optimizer accepts and skips them, as PyTorch's do; also those that are frozen
// or unfrozen later. Eagerly and in compiled steps.
#include <catch2/catch.hpp>

#include <functional>
#include <memory>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/optimizer_state.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Category;
using rg::category_of;
using rg::Tensor;

namespace {

using Optimizers =
    std::vector<std::pair<const char*, std::function<std::unique_ptr<optim::Optimizer>(const rg::Tensors&)>>>;

const Optimizers kOptimizers = {
    {"SGD",
     [](const rg::Tensors& p) { return std::make_unique<optim::SGD>(p, optim::SGDOptions{.lr = 0.1}); }},
    {"SGD with momentum",
     [](const rg::Tensors& p) {
       return std::make_unique<optim::SGD>(p, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
     }},
    {"AdamW", [](const rg::Tensors& p) { return std::make_unique<optim::AdamW>(p); }}};

// Which of a and b a step changes: "ab", "a", "b", "".
std::string changed_by(const std::function<void()>& step, const Tensor& a, const Tensor& b) {
  const double before_a = a.item<double>(), before_b = b.item<double>();
  step();
  return std::string(a.item<double>() != before_a ? "a" : "") + (b.item<double>() != before_b ? "b" : "");
}

TEST_CASE("An optimizer passes over parameters that require no gradient, for as long as they do not") {
  for (const auto& [name, make] : kOptimizers)
    for (const bool compiled : {false, true}) {
      INFO(name << (compiled ? ", compiled" : ", eager"));
      const Tensor a = rg::full({1}, 1, {rg::kFloat64, rg::kCPU, true}), b = rg::full({1}, 2, {rg::kFloat64});
      const auto optimizer = make({a, b});
      const auto train = [&] {
        optimizer->zero_grad();
        rg::sum(a * b + a + b).backward();
        optimizer->step();
      };
      auto plan = rg::compile_step(train);
      const auto step = [&] { compiled ? plan() : train(); };
      const auto twice = [&] { return changed_by(step, a, b) + " " + changed_by(step, a, b); };
      CHECK(twice() == "a a");
      CHECK_FALSE(b.grad().defined());
      for (const auto& entry : rg::state_of(*optimizer)) CHECK(entry.first.starts_with("0."));
      b.requires_grad_();
      CHECK(twice() == "ab ab");
      optimizer->zero_grad();
      a.requires_grad_(false);
      CHECK(twice() == "b b");
      optimizer->zero_grad();
      a.requires_grad_();
      CHECK(twice() == "ab ab");
    }
}

TEST_CASE("All parameters may be frozen; a parameter that is no leaf is refused still") {
  for (const auto& [name, make] : kOptimizers) {
    INFO(name);
    const Tensor a = rg::ones({1}), b = rg::ones({1}).requires_grad_();
    const auto optimizer = make({a});
    optimizer->step();
    CHECK(a.item<double>() == 1);
    CHECK(rg::state_of(*optimizer).empty());
    optimizer->load_state_dict({});
    CHECK(category_of([&] { make({b * 2}); }) == Category::bad_argument);
  }
}

TEST_CASE("A gradient that a frozen parameter has is used, as in PyTorch") {
  const Tensor a = rg::ones({1});
  a.set_grad(rg::ones({1}));
  optim::SGD sgd({a}, {.lr = 0.5});
  sgd.step();
  CHECK(a.item<double>() == 0.5);
}

TEST_CASE("Gradients of parameters some of which are frozen are clipped") {
  const Tensor a = rg::ones({1}).requires_grad_(), b = rg::ones({1});
  rg::sum(a * 3 * b).backward();
  CHECK(double(optim::clip_grad_norm_({a, b}, 1.0)) == Approx(3));
  CHECK(a.grad().item<double>() == Approx(1));
}

}  // namespace
