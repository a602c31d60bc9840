// Differentiable steps: the values of plain ones, and right derivatives by parameters and gradients through several steps,
// as meta-learning needs them.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Category;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;

namespace {

Tensor numbers(const rg::IntArray& size, double from, double to) {
  int64_t n = 1;
  for (const int64_t s : size) n *= s;
  return rg::linspace(from, to, n, {rg::kFloat64}).reshape(size).clone();
}

// The parameter after two steps with the given gradients.
template <class Optimizer>
Tensor after_steps(const typename Optimizer::Options& options, const Tensor& start,
                   const Tensors& gradients) {
  Optimizer optimizer({{.params = {start.clone()}, .options = options, .differentiable = true}});
  Tensor& p = optimizer.param_groups()[0].params[0];
  for (const Tensor& g : gradients) {
    p.set_grad(g);
    optimizer.step();
  }
  return p;
}

template <class Optimizer>
void check(const typename Optimizer::Options& options, const rg::IntArray& size = {4}) {
  INFO(typeid(Optimizer).name());
  const Tensor start = numbers(size, 0.3, 1.1).requires_grad_();
  const Tensor g1 = numbers(size, -0.9, 0.7).requires_grad_(), g2 = numbers(size, 0.4, -1.2).requires_grad_();
  const Tensor plain = start.detach().clone().requires_grad_();
  Optimizer optimizer({plain}, options);
  for (const Tensor& g : {g1, g2}) {
    plain.set_grad(g.detach());
    optimizer.step();
  }
  const Tensor result = after_steps<Optimizer>(options, start, {g1, g2});
  const std::vector<double> want = plain.to_vector(), got = result.to_vector();
  for (size_t i = 0; i < want.size(); ++i) CHECK(got[i] == Approx(want[i]).epsilon(1e-12));
  CHECK(rg::autograd::gradcheck(
      [&](const Tensors& in) {
        return Tensors{after_steps<Optimizer>(options, in[0], {in[1], in[2]})};
      },
      {start, g1, g2}));
}

}  // namespace

TEST_CASE("steps of elementwise rules are differentiated") {
  check<optim::SGD>({.lr = 0.1, .momentum = 0.9, .dampening = 0.2, .weight_decay = 0.1});
  check<optim::SGD>({.lr = 0.1, .momentum = 0.9, .nesterov = true, .maximize = true});
  check<optim::Adam>({.lr = 0.1, .weight_decay = 0.1});
  check<optim::Adam>({.lr = 0.1, .amsgrad = true});
  check<optim::AdamW>({.lr = 0.1});
  check<optim::Adamax>({.lr = 0.1, .weight_decay = 0.1});
  check<optim::NAdam>({.lr = 0.1});
  check<optim::RAdam>({.lr = 0.1});
  check<optim::Adagrad>({.lr = 0.1, .initial_accumulator_value = 0.2});
  check<optim::Adadelta>({.lr = 0.1, .eps = 1e-3});
  check<optim::RMSprop>({.lr = 0.1, .alpha = 0.7, .momentum = 0.5});
  check<optim::RMSprop>({.lr = 0.1, .alpha = 0.7, .centered = true});
  check<optim::ASGD>({.lr = 0.1, .t0 = 0});
  check<optim::Rprop>({.lr = 0.1});
  check<optim::Lion>({.lr = 0.1, .weight_decay = 0.1});
  check<optim::AdEMAMix>({.lr = 0.1});
  check<optim::AdamWScheduleFree>({.lr = 0.1, .weight_decay = 0.1});
}

TEST_CASE("composed steps are differentiated") {
  check<optim::Adafactor>({.lr = 0.1}, {2, 3});
  check<optim::Adafactor>({.lr = 0.1, .d = 5});
  check<optim::Muon>({.lr = 0.1, .ns_coefficients = {2, -1.5, 0.5}}, {2, 3});
}

TEST_CASE("a loss after some steps has derivatives by what gave the gradients") {
  const Tensor rate = rg::full({}, 0.3, {rg::kFloat64, rg::kCPU, true});
  const Tensor start = rg::full({3}, 2.0, {rg::kFloat64, rg::kCPU, true});
  optim::SGD optimizer({{.params = {start}, .options = {.lr = 1}, .differentiable = true}});
  Tensor& p = optimizer.param_groups()[0].params[0];
  for (int i = 0; i < 2; ++i) {
    p.set_grad(rg::autograd::grad({rg::sum(rg::square(p)) * rate}, {p}, {}, true, true)[0]);
    optimizer.step();
  }
  // p = 2 (1 - 2 rate)^2, hence dp/drate = -8 (1 - 2 rate).
  CHECK(p.to_vector()[0] == Approx(2 * 0.4 * 0.4));
  CHECK(rg::autograd::grad({rg::sum(p)}, {rate})[0].item<double>() == Approx(3 * -8 * 0.4));
  CHECK(start.to_vector()[0] == 2);
  p.set_grad({});  // a gradient with a history that leads to its tensor
}

TEST_CASE("only differentiable steps take parameters that are no leaves, and they are not recorded") {
  const Tensor p = rg::ones({3}, {rg::kFloat64, rg::kCPU, true}) * 2;
  CHECK(category_of([&] { optim::SGD({p}); }) == Category::bad_argument);
  optim::SGD optimizer({{.params = {p}, .options = {}, .differentiable = true}});
  auto step = rg::compile_step([&] {
    p.set_grad(rg::ones({3}, {rg::kFloat64}));
    optimizer.step();
  });
  step();
  CHECK(step.stats().captures == 0);
  CHECK(step.last_eager_reason().find("differentiable") != std::string::npos);
}
