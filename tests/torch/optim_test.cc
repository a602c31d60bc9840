// Optimizers and schedulers of torch::optim: options, groups, steps by hand-computed numbers, and what the library's
// own functions see of them.
#include <retrograd/torch.h>
#include <catch2/catch.hpp>

#include "tests/errors.h"

namespace libtorch {
namespace {

using Values = std::vector<double>;

torch::Tensor parameter(double value = 1) {
  return torch::full({2}, value, torch::dtype(torch::kDouble).requires_grad(true));
}
void give_gradient(const torch::Tensor& x, double value) {
  x.set_grad(torch::full({2}, value, torch::kDouble));
}
double first(const torch::Tensor& x) { return x.to_vector()[0]; }

TEST_CASE("options are chained and read") {
  const auto sgd = torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(1e-4).nesterov(true).dampening(0);
  CHECK(sgd.lr() == 0.1);
  CHECK(sgd.momentum() == 0.9);
  CHECK(sgd.nesterov());
  auto adam = torch::optim::AdamOptions(2e-4).betas(std::make_tuple(0.5, 0.999)).amsgrad(true);
  CHECK(std::get<0>(adam.betas()) == 0.5);
  adam.betas({0.6, 0.7}).eps(1e-6);
  CHECK(std::get<1>(adam.betas()) == 0.7);
  CHECK(adam.eps() == 1e-6);
  adam.lr() = 3;
  CHECK(adam.get_lr() == 3);
  const auto copy = adam.clone();
  CHECK(static_cast<torch::optim::AdamOptions&>(*copy).amsgrad());
  CHECK(torch::optim::AdamWOptions().weight_decay() == 1e-2);
  CHECK(torch::optim::RMSpropOptions(0.1).alpha(0.5).centered(true).momentum(0.1).alpha() == 0.5);
  CHECK(torch::optim::AdagradOptions(0.1)
            .lr_decay(0.2)
            .initial_accumulator_value(3)
            .initial_accumulator_value() == 3);
}

TEST_CASE("SGD with a plain rate, and with momentum") {
  const torch::Tensor x = parameter();
  torch::optim::SGD sgd({x}, /*lr=*/0.1);
  give_gradient(x, 2);
  CHECK_FALSE(sgd.step().defined());
  CHECK(first(x) == Approx(0.8));
  sgd.zero_grad();
  CHECK_FALSE(x.grad().defined());
  sgd.step();
  CHECK(first(x) == Approx(0.8));

  const torch::Tensor y = parameter();
  torch::optim::SGD with_momentum(std::vector<torch::Tensor>{y}, torch::optim::SGDOptions(0.1).momentum(0.5));
  give_gradient(y, 1);
  with_momentum.step();  // buffer 1
  with_momentum.step();  // buffer 1.5
  CHECK(first(y) == Approx(1 - 0.1 - 0.15));
  with_momentum.zero_grad(false);
  CHECK(first(y.grad()) == 0);
}

TEST_CASE("Adam moves by lr at first") {
  const torch::Tensor x = parameter();
  torch::optim::Adam adam({x}, torch::optim::AdamOptions(1e-2));
  give_gradient(x, 5);
  adam.step();
  CHECK(first(x) == Approx(1 - 1e-2));
  torch::optim::AdamW adamw({x}, torch::optim::AdamWOptions(1e-2).weight_decay(0));
  torch::optim::Adagrad adagrad({x}, 1e-2);
  torch::optim::RMSprop rmsprop({x}, torch::optim::RMSpropOptions(1e-2));
  adamw.step(), adagrad.step();
  CHECK(first(x) == Approx(1 - 3e-2));
  rmsprop.step();  // g / sqrt((1 - 0.99) g^2)
  CHECK(first(x) == Approx(1 - 3e-2 - 1e-1));
}

TEST_CASE("groups have options of their own, complete by the defaults") {
  const torch::Tensor a = parameter(), b = parameter(), c = parameter();
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{a});
  groups.emplace_back(std::vector<torch::Tensor>{b}, std::make_unique<torch::optim::AdamOptions>(
                                                         torch::optim::AdamOptions().weight_decay(0.5)));
  CHECK_FALSE(groups[0].has_options());
  torch::optim::Adam adam(groups, torch::optim::AdamOptions(0.01).eps(1e-4));
  adam.add_param_group({std::vector<torch::Tensor>{c}});
  REQUIRE(adam.param_groups().size() == 3);
  CHECK(adam.size() == 3);
  const auto& second = static_cast<torch::optim::AdamOptions&>(adam.param_groups()[1].options());
  CHECK(second.lr() == 0.01);
  CHECK(second.eps() == 1e-4);
  CHECK(second.weight_decay() == 0.5);
  CHECK(static_cast<torch::optim::AdamOptions&>(adam.defaults()).eps() == 1e-4);
  CHECK(adam.parameters().size() == 1);

  // What a program changes holds in the next step.
  for (auto& group : adam.param_groups()) static_cast<torch::optim::AdamOptions&>(group.options()).lr(0);
  adam.param_groups()[2].options().set_lr(0.25);
  for (const torch::Tensor& x : {a, b, c}) give_gradient(x, 1);
  adam.step();
  CHECK(first(a) == 1);
  CHECK(first(b) == 1);
  CHECK(first(c) == Approx(0.75).epsilon(1e-3));

  CHECK_THROWS_AS(adam.add_param_group({{parameter()}, std::make_unique<torch::optim::SGDOptions>(0.1)}),
                  c10::Error);
  CHECK_THROWS_AS(adam.add_param_group({std::vector<torch::Tensor>{a}}), c10::Error);  // listed twice
  CHECK(adam.param_groups().size() == 3);
  CHECK_THROWS_AS(torch::optim::SGD({a}, -1.0), c10::Error);
  adam.param_groups()[0].set_options(std::make_unique<torch::optim::SGDOptions>(0.1));
  CHECK_THROWS_AS(adam.step(), c10::Error);
}

TEST_CASE("a closure, and LBFGS") {
  const torch::Tensor x = parameter(3);
  torch::optim::LBFGS lbfgs({x}, torch::optim::LBFGSOptions(1).max_iter(30).line_search_fn("strong_wolfe"));
  const auto closure = [&] {
    lbfgs.zero_grad();
    const torch::Tensor loss = ((x - 2) * (x - 2)).sum();
    loss.backward();
    return loss;
  };
  CHECK(lbfgs.step(closure).item<double>() == Approx(2));
  CHECK(first(x) == Approx(2));
  auto& options = static_cast<torch::optim::LBFGSOptions&>(lbfgs.param_groups()[0].options());
  CHECK(options.max_iter() == 30);
  CHECK(options.line_search_fn() == "strong_wolfe");
  options.lr(0.5);
  CHECK(static_cast<retrograd::optim::Optimizer&>(lbfgs).param_group(0).lr() == 0.5);
  CHECK_THROWS_AS(lbfgs.step(nullptr), c10::Error);
  CHECK_THROWS_AS(torch::optim::LBFGSOptions().line_search_fn("golden"), c10::Error);
  CHECK_THROWS_AS(lbfgs.add_param_group({std::vector<torch::Tensor>{parameter()}}), c10::Error);
  CHECK(lbfgs.param_groups().size() == 1);

  torch::optim::SGD sgd({x}, 0.25);
  const torch::Tensor loss = sgd.step([&] {
    sgd.zero_grad();
    const torch::Tensor l = (x * x).sum();
    l.backward();
    return l;
  });
  CHECK(loss.item<double>() == Approx(8));
  CHECK(first(x) == Approx(1));
}

TEST_CASE("an optimizer as an interface, and one that a user has written") {
  struct Halving : torch::optim::Optimizer {
    struct Options : torch::optim::OptimizerCloneableOptions<Options> {
      double get_lr() const override { return lr; }
      void set_lr(double value) override { lr = value; }
      double lr = 1;
    };
    explicit Halving(std::vector<torch::Tensor> params)
        : Optimizer(std::move(params), std::make_unique<Options>()) {}
    torch::Tensor step(LossClosure closure = nullptr) override {
      torch::Tensor loss;
      if (closure) loss = closure();
      torch::NoGradGuard no_grad;
      for (auto& group : param_groups_())
        for (auto& p : group.params()) p.mul_(0.5 * group.options().get_lr());
      return loss;
    }
    std::vector<torch::optim::OptimizerParamGroup>& param_groups_() { return param_groups(); }
  };
  const torch::Tensor x = parameter(8);
  std::vector<std::unique_ptr<torch::optim::Optimizer>> all;
  all.push_back(std::make_unique<Halving>(std::vector<torch::Tensor>{x}));
  all.push_back(std::make_unique<torch::optim::SGD>(std::vector<torch::Tensor>{x}, 1.0));
  give_gradient(x, 1);
  for (auto& optimizer : all) optimizer->step();
  CHECK(first(x) == 3);
  CHECK_THROWS_AS(all[0]->state_dict(), c10::Error);
  torch::optim::StepLR scheduler(*all[0], 1, 0.5);
  scheduler.step(), scheduler.step();
  CHECK(all[0]->param_groups()[0].options().get_lr() == 0.5);
}

TEST_CASE("a user's optimizer with a state for each parameter") {
  struct Options : torch::optim::OptimizerCloneableOptions<Options> {
    TORCH_ARG(double, momentum) = 0.5;
  };
  struct State : torch::optim::OptimizerCloneableParamState<State> {
    TORCH_ARG(torch::Tensor, buffer);
    TORCH_ARG(int64_t, step) = 0;
  };
  struct Momentum : torch::optim::Optimizer {
    explicit Momentum(std::vector<torch::Tensor> params)
        : Optimizer({torch::optim::OptimizerParamGroup(std::move(params))}, std::make_unique<Options>()) {}
    torch::Tensor step(LossClosure = nullptr) override {
      torch::NoGradGuard no_grad;
      for (auto& group : param_groups_)
        for (auto& p : group.params()) {
          auto& kept = state_[p.unsafeGetTensorImpl()];
          if (!kept) {
            auto made = std::make_unique<State>();
            made->buffer(torch::zeros_like(p));
            kept = std::move(made);
          }
          auto& state = static_cast<State&>(*kept);
          state.step(state.step() + 1);
          state.buffer().mul_(static_cast<Options&>(group.options()).momentum()).add_(p.grad());
          p.sub_(state.buffer());
        }
      return {};
    }
    const State& of(const torch::Tensor& p) {
      return static_cast<const State&>(*state_.at(p.unsafeGetTensorImpl()));
    }
  };
  const torch::Tensor x = parameter(8);
  Momentum first_one({x});
  Momentum optimizer = std::move(first_one);
  give_gradient(x, 1);
  optimizer.step(), optimizer.step();
  CHECK(first(x) == 8 - 1 - 1.5);
  CHECK(optimizer.of(x).step() == 2);
  CHECK(first(optimizer.of(x).buffer()) == 1.5);
  CHECK(optimizer.param_groups().size() == 1);
  CHECK_THROWS_AS(optimizer.param_groups()[0].options().get_lr(), c10::Error);
}

TEST_CASE("StepLR as in libtorch, and a user's schedule") {
  const torch::Tensor x = parameter();
  torch::optim::SGD sgd({x}, 1.0);
  const auto rate = [&] { return sgd.param_groups()[0].options().get_lr(); };
  torch::optim::StepLR scheduler(sgd, 2, 0.1);
  Values rates;
  for (int i = 0; i < 6; ++i) scheduler.step(), rates.push_back(rate());
  const Values libtorchs{1, 1, 0.1, 0.1, 0.01, 0.01};  // from libtorch 2.15
  for (size_t i = 0; i < rates.size(); ++i) CHECK(rates[i] == Approx(libtorchs[i]));

  struct Growing : torch::optim::LRScheduler {
    using LRScheduler::LRScheduler;
    std::vector<double> get_lrs() override {
      std::vector<double> lrs = get_current_lrs();
      for (double& lr : lrs) lr = 1 + step_count_;
      return lrs;
    }
  };
  Growing growing(sgd);
  growing.step(), growing.step();
  CHECK(rate() == 2);
  CHECK_THROWS_AS(torch::optim::StepLR(sgd, 0), c10::Error);
}

TEST_CASE("ReduceLROnPlateauScheduler, and the library's schedulers and scalers") {
  const torch::Tensor x = parameter();
  torch::optim::Adam adam({x}, 1.0);
  torch::optim::ReduceLROnPlateauScheduler plateau(adam, torch::optim::ReduceLROnPlateauScheduler::min, 0.5F,
                                                   1);
  for (const float loss : {1.0F, 1.0F, 1.0F}) plateau.step(loss);
  CHECK(adam.param_groups()[0].options().get_lr() == 0.5);
  torch::optim::ExponentialLR exponential(adam, 0.1);
  exponential.step();
  CHECK(adam.param_groups()[0].options().get_lr() == Approx(0.05));
}

TEST_CASE("the state is saved, and steps are recorded") {
  const torch::Tensor x = parameter(), y = parameter();
  torch::optim::Adam one({x}, 0.1), other({y}, 0.1);
  give_gradient(x, 2), give_gradient(y, 2);
  one.step(), one.step(), other.step();
  other.load_state_dict(one.state_dict());
  y.detach().copy_(x);
  one.param_groups()[0].options().set_lr(0.3), other.param_groups()[0].options().set_lr(0.3);
  give_gradient(x, -1), give_gradient(y, -1);
  one.step(), other.step();
  CHECK(x.to_vector() == y.to_vector());

  // A recorded step reads the options of the groups before each run.
  const torch::Tensor z = parameter();
  torch::optim::SGD sgd({z}, 0.5);
  auto step = retrograd::compile_step([&](const torch::Tensor& c) {
    sgd.zero_grad();
    const torch::Tensor loss = (z * c).sum();
    loss.backward();
    sgd.step();
    return loss;
  });
  step(torch::ones({2}, torch::kDouble));
  CHECK(first(z) == 0.5);
  static_cast<torch::optim::SGDOptions&>(sgd.param_groups()[0].options()).lr(2);
  step(torch::ones({2}, torch::kDouble));
  CHECK(first(z) == -1.5);
}

static_assert(!std::is_copy_constructible_v<torch::optim::SGD> &&
              std::is_move_constructible_v<torch::optim::SGD>);

}  // namespace
}  // namespace libtorch
