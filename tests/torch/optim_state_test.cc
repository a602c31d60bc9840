// optimizer.state() and comparisons of options. Expected values are those of PyTorch's optimizers after the same steps.
#include <retrograd/torch.h>
#include <catch2/catch.hpp>

#include "tests/errors.h"

namespace libtorch {
namespace {

namespace optim = torch::optim;

/// A parameter that takes two steps, with the gradients 2 and -1, and another one without a gradient.
struct Trained {
  torch::Tensor x = torch::full({2}, 1.0, torch::dtype(torch::kDouble).requires_grad(true));
  torch::Tensor without = torch::ones({3}, torch::requires_grad());

  void step(optim::Optimizer& optimizer) const {
    for (const double gradient : {2.0, -1.0}) {
      x.set_grad(torch::full({2}, gradient, torch::kDouble));
      optimizer.step();
    }
  }
  template <class State>
  const State& state(const optim::Optimizer& optimizer) const {
    return static_cast<const State&>(*optimizer.state().at(x.unsafeGetTensorImpl()));
  }
};

double last(const torch::Tensor& x) { return x.to_vector().back(); }

TEST_CASE("the state of a parameter has libtorch's names") {
  const Trained t;
  optim::Adam adam({t.x, t.without}, optim::AdamOptions(0.1).amsgrad(true));
  CHECK(adam.state().empty());
  t.step(adam);
  CHECK(adam.state().size() == 1);
  const auto& of_adam = t.state<optim::AdamParamState>(adam);
  CHECK(of_adam.step() == 2);
  CHECK(last(of_adam.exp_avg()) == Approx(0.08));
  CHECK(last(of_adam.exp_avg_sq()) == Approx(0.004996));
  CHECK(last(of_adam.max_exp_avg_sq()) == Approx(0.004996));

  const Trained s;
  optim::SGD sgd({s.x}, optim::SGDOptions(0.1).momentum(0.9));
  s.step(sgd);
  CHECK(last(s.state<optim::SGDParamState>(sgd).momentum_buffer()) == Approx(0.8));

  const Trained a;
  optim::Adagrad adagrad({a.x}, optim::AdagradOptions(0.1));
  a.step(adagrad);
  CHECK(last(a.state<optim::AdagradParamState>(adagrad).sum()) == Approx(5));

  const Trained r;
  optim::RMSprop rmsprop({r.x}, optim::RMSpropOptions(0.1).momentum(0.5).centered(true));
  r.step(rmsprop);
  const auto& of_rmsprop = r.state<optim::RMSpropParamState>(rmsprop);
  CHECK(last(of_rmsprop.square_avg()) == Approx(0.0496));
  CHECK(last(of_rmsprop.grad_avg()) == Approx(0.0098));
  CHECK(last(of_rmsprop.momentum_buffer()) == Approx(0.5307030519));
}

TEST_CASE("what state() has given stays, and its tensors are the optimizer's") {
  const Trained t;
  optim::AdamW adam({t.x}, optim::AdamWOptions(0.1));
  t.step(adam);
  const auto& states = adam.state();
  const auto& state = t.state<optim::AdamWParamState>(adam);
  CHECK_FALSE(state.max_exp_avg_sq().defined());
  const torch::Tensor average = state.exp_avg();
  const auto before = state.clone();
  t.step(adam);
  CHECK(&adam.state() == &states);
  CHECK(&t.state<optim::AdamWParamState>(adam) == &state);
  CHECK(state.step() == 4);
  CHECK(last(average) == last(state.exp_avg()));
  CHECK(static_cast<const optim::AdamWParamState&>(*before).step() == 2);
  CHECK_FALSE(static_cast<const optim::AdamWParamState&>(*before) == state);
  CHECK(state == state);
  average.zero_();
  CHECK(last(adam.state_dict().at("0.exp_avg")) == 0);
}

template <class Optimizer>
concept HasState = requires(const Optimizer& optimizer) {
  optimizer.state();
};
static_assert(HasState<optim::SGD> && !HasState<optim::LBFGS>);

TEST_CASE("L-BFGS has no state by parameters") {
  const Trained t;
  const optim::LBFGS lbfgs({t.x});
  const optim::Optimizer& any = lbfgs;
  CHECK(retrograd::category_of([&] { any.state(); }) == retrograd::Category::unsupported);
}

TEST_CASE("options are compared") {
  CHECK(optim::SGDOptions(0.1).momentum(0.5) == optim::SGDOptions(0.1).momentum(0.5));
  CHECK_FALSE(optim::SGDOptions(0.1) == optim::SGDOptions(0.2));
  CHECK(optim::SGDOptions(0.1) != optim::SGDOptions(0.1).nesterov(true));
  CHECK(optim::AdamOptions(0.1) == optim::AdamOptions(0.1));
  CHECK(optim::AdamOptions(0.1) != optim::AdamOptions(0.1).betas({0.9, 0.9}));
  CHECK(optim::LBFGSOptions(1).max_iter(3) == optim::LBFGSOptions(1).max_iter(3));
  CHECK(optim::LBFGSOptions(1) != optim::LBFGSOptions(1).line_search_fn("strong_wolfe"));
}

}  // namespace
}  // namespace libtorch
