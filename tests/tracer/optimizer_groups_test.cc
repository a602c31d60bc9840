// Parameter groups that change between steps: state stays with the parameter, a recorded step follows, and freed
// objects are not used.
#include <catch2/catch.hpp>
#include <thread>

#include "tests/scenarios/scenario.h"
#include "tests/optimizer_state.h"

namespace {

using namespace scenario;
namespace optim = rg::optim;
using rg::Category;

constexpr optim::SGDOptions kOptions{.lr = 1, .momentum = 0.5};

Tensor parameter_of(int64_t size) { return rg::zeros({size}).requires_grad_(); }
void give_ones(const Tensors& params) {
  for (const Tensor& p : params) p.set_grad(rg::ones(p.sizes()));
}
double first(const Tensor& p) { return p.to_vector()[0]; }


}  // namespace

TEST_CASE("a copy of an optimizer has state of its own, also in recorded steps") {
  const Tensor a = parameter_of(3);
  optim::SGD optimizer({a}, kOptions);
  const auto step_of = [&](optim::SGD& of) {
    return rg::compile_step([&] {
      give_ones({a});
      of.step();
    });
  };
  auto step = step_of(optimizer);
  step();
  CHECK(first(a) == -1);
  optim::SGD copy = optimizer;
  auto step_of_copy = step_of(copy);
  step();
  CHECK(first(a) == -2.5);
  step_of_copy();  // its buffer is still 1
  CHECK(first(a) == -4);
  step();
  CHECK(first(a) == -5.75);
  copy = optimizer;
  CHECK(copy.state_dict().at("0.momentum_buffer").to_vector()[0] == 1.75);
  CHECK_THROWS_AS(step_of_copy(), rg::Error);  // that optimizer has gone
}

TEST_CASE("a parameter keeps its momentum where groups are added, erased, reordered and cleared") {
  const Tensor a = parameter_of(3), b = parameter_of(4), c = parameter_of(5);
  optim::SGD optimizer({{{a}, kOptions}, {{b}, kOptions}});
  const auto step = [&](const Tensors& with_grad) {
    for (const Tensor& p : {a, b, c}) p.set_grad({});
    give_ones(with_grad);
    optimizer.step();
  };
  step({a, b});  // momentum 1
  CHECK(first(a) == -1);
  auto& groups = optimizer.param_groups();
  for (int i = 0; i < 40; ++i) groups.push_back({{parameter_of(2)}, kOptions});  // the vector moves
  groups.push_back({{c}, kOptions});
  step({a, b, c});  // 1.5; c: 1
  CHECK(first(a) == -2.5);
  CHECK(first(b) == -2.5);
  CHECK(first(c) == -1);
  groups.erase(groups.begin());
  step({a, b, c});  // b: 1.75; c: 1.5; a is in none
  CHECK(first(a) == -2.5);
  CHECK(first(b) == -4.25);
  CHECK(first(c) == -2.5);
  groups.clear();
  groups.push_back({{c, b}, kOptions});
  groups.push_back({{a}, kOptions});
  step({a, b, c});  // a: 1.75
  CHECK(first(a) == -4.25);
  CHECK(first(b) == -6.125);
  CHECK(first(c) == -4.25);
}

TEST_CASE("a parameter that takes the place of another begins with state of its own size") {
  const Tensor small = parameter_of(3), large = parameter_of(1000);
  for (const bool loads : {false, true}) {
    optim::AdamW optimizer({{{small}, {.lr = 0.1}}});
    give_ones({small, large});
    optimizer.step();
    const rg::StateDict saved = optimizer.state_dict();
    optimizer.param_groups()[0].params[0] = large;
    if (loads) {
      CHECK(category_of([&] { optimizer.load_state_dict(saved); }) == Category::shape_mismatch);
    } else {
      CHECK(rg::state_of(optimizer).empty());
      optimizer.step();
      CHECK(std::abs(first(large) + 0.1) < 1e-3);
      CHECK(optimizer.state_dict().at("0.exp_avg").sizes() == large.sizes());
    }
  }
}

TEST_CASE("parameters that an optimizer cannot have are refused when the groups are used") {
  const Tensor a = parameter_of(3);
  optim::SGD optimizer({{{a}, kOptions}});
  give_ones({a});
  const auto refused = [&](const Tensors& params) {
    optimizer.param_groups()[0].params = params;
    return category_of([&] { optimizer.step(); });
  };
  CHECK(refused({}) == Category::bad_argument);
  CHECK(refused({a, a}) == Category::bad_argument);
  CHECK(refused({a, Tensor()}) == Category::bad_argument);
  CHECK(refused({a, a * 1.0}) == Category::bad_argument);
  CHECK(refused({a, rg::zeros({2}, {rg::kInt64})}) == Category::dtype_mismatch);
  CHECK(first(a) == 0);
  optimizer.param_groups()[0].params = {a};
  optimizer.step();
  CHECK(first(a) == -1);
}

TEST_CASE("a recorded step follows groups that change") {
  const Tensor x = rg::ones({3});
  const auto run = [&](bool compiled) {
    const Tensor a = parameter_of(3), b = parameter_of(3), c = parameter_of(3);
    optim::SGD optimizer({{{a}, kOptions}, {{b}, {.lr = 10, .momentum = 0.5}}});
    const auto body = [&] {
      rg::sum((a + b + c) * x).backward();
      optimizer.step();
      for (const Tensor& p : {a, b, c}) p.set_grad({});
    };
    auto step = rg::compile_step(body);
    std::vector<double> seen;
    const auto twice = [&] {
      for (int i = 0; i < 2; ++i) {
        compiled ? step() : body();
        for (const Tensor& p : {a, b, c}) seen.push_back(first(p));
      }
    };
    auto& groups = optimizer.param_groups();
    twice();
    groups.push_back({{c}, kOptions});
    twice();
    std::swap(groups[0].params, groups[1].params);  // the same parameters by other rates
    twice();
    groups.erase(groups.begin());
    twice();
    for (int i = 0; i < 100; ++i) groups.push_back({{parameter_of(1)}, kOptions});
    twice();
    groups.clear();
    groups.push_back({{c, a, b}, kOptions});
    twice();
    if (compiled) CHECK(step.stats().captures == 6);
    return seen;
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("an optimizer that was moved from has no parameters") {
  const Tensor a = parameter_of(3);
  optim::SGD one({{{a}, kOptions}});
  give_ones({a});
  one.step();
  optim::SGD two = std::move(one);
  CHECK(one.parameters().empty());
  CHECK(rg::state_of(one).empty());
  CHECK(category_of([&] { one.step(); }) == Category::bad_argument);
  two.step();
  CHECK(first(a) == -2.5);
  one = optim::SGD({{{a}, kOptions}});
  one.step();
  CHECK(first(a) == -3.5);
}

TEST_CASE("a step of an optimizer during another one is refused") {
  // Whether threads collide is random; each step is made, or refused.
  const Tensor a = rg::zeros({1 << 18}).requires_grad_();
  optim::SGD optimizer(Tensors{a}, {.lr = 1});
  give_ones({a});
  std::atomic<int> made = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        try {
          optimizer.step();
          ++made;
        } catch (const rg::Error&) {
          ++refused;
        }
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(made + refused == 200);
  CHECK(first(a) == -made);
}
