// AveragedModel: exponential and equal averages as PyTorch's, of parameters and buffers, eager and in a recorded step with
// one capture; the model with the averages for a while; saved state.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
namespace nn = retrograd::nn;
using rg::Category;
using rg::category_of;
using rg::Tensor;

namespace {

struct Net : nn::Module {
  nn::Parameter weight{this, "weight", rg::zeros({3}, {rg::kFloat64})};
  nn::Buffer mean{this, "mean", rg::zeros({2}, {rg::kFloat64})};
  nn::Buffer count{this, "count", rg::zeros({}, {rg::kInt64})};

  void set(double value) {
    rg::NoGradGuard no_grad;
    weight.fill_(value), mean.fill_(10 * value), count.fill_(value);
  }
};

double value_of(const optim::AveragedModel& averaged, const char* name) {
  return averaged.averages().at(name).to_vector()[0];
}

}  // namespace

TEST_CASE("averages are exponential with a decay, and equal without") {
  Net net;
  optim::AveragedModel equal(net), exponential(net, {.decay = 0.75, .use_buffers = true});
  double mean = 0, average = 0;
  for (int t = 1; t <= 5; ++t) {
    net.set(t * t);
    equal.update_parameters(), exponential.update_parameters();
    mean += t * t;
    average = t == 1 ? 1 : 0.75 * average + 0.25 * t * t;
    CHECK(value_of(equal, "weight") == Approx(mean / t));
    CHECK(value_of(exponential, "weight") == Approx(average));
    CHECK(value_of(equal, "mean") == 10 * t * t);
    CHECK(value_of(exponential, "mean") == Approx(10 * average));
    CHECK(value_of(exponential, "count") == t * t);
    CHECK(equal.n_averaged() == t);
  }
}

TEST_CASE("averages in a recorded step have the eager bits and need one capture") {
  Net net, other;
  optim::SGD sgd(net.parameters(), {.lr = 0.1}), of_other(other.parameters(), {.lr = 0.1});
  optim::AveragedModel eager(net), recorded(other);
  const auto train = [](Net& n, optim::SGD& optimizer, optim::AveragedModel& averaged, const Tensor& target) {
    rg::sum(rg::square(n.weight - target)).backward();
    optimizer.step();
    averaged.update_parameters();
    optimizer.zero_grad();
  };
  auto step = rg::compile_step([&](const Tensor& target) { train(other, of_other, recorded, target); });
  for (int t = 0; t < 7; ++t) {
    const Tensor target = rg::full({3}, 0.3 * t, {rg::kFloat64});
    train(net, sgd, eager, target);
    step(target);
    CHECK(value_of(eager, "weight") == value_of(recorded, "weight"));
    CHECK(recorded.n_averaged() == t + 1);
  }
  CHECK(step.stats().captures == 1);
}

TEST_CASE("a model has the averages while they are applied") {
  Net net;
  optim::AveragedModel averaged(net);
  net.set(1), averaged.update_parameters();
  net.set(3), averaged.update_parameters();
  {
    const optim::AveragedModel::Applied scope(averaged);
    CHECK(net.weight.to_vector()[0] == 2);
    CHECK(net.mean.to_vector()[0] == 30);
  }
  CHECK(net.weight.to_vector()[0] == 3);
}

TEST_CASE("saved averages continue") {
  Net net;
  optim::AveragedModel averaged(net), resumed(net);
  net.set(1), averaged.update_parameters();
  net.set(2), averaged.update_parameters();
  rg::StateDict state = averaged.state_dict();
  CHECK(state.at("n_averaged").item<int64_t>() == 2);
  CHECK(state.contains("module.weight"));
  resumed.load_state_dict(state);
  net.set(6), averaged.update_parameters(), resumed.update_parameters();
  CHECK(value_of(resumed, "weight") == value_of(averaged, "weight"));
  CHECK(value_of(resumed, "weight") == Approx(3));
  state.erase("module.weight");
  CHECK(category_of([&] { resumed.load_state_dict(state); }) == Category::bad_argument);
  CHECK(category_of([&] { optim::AveragedModel(net, {.decay = 2}); }) == Category::bad_argument);
}
