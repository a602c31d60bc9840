// A step that fails has changed nothing, or says what it has changed: parameters, moments and counts of steps, eagerly
// and in recorded steps.
#include <catch2/catch.hpp>

#include <cmath>
#include <optional>
#include <stdexcept>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/optimizer_state.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Category;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;

namespace {

using Vector = std::vector<double>;

Tensor parameter(int64_t n, rg::ScalarType dtype = rg::kFloat32) {
  return rg::full({n}, 0.5, {dtype}).requires_grad_();
}

// All that a step may change.
std::vector<Vector> everything(const optim::Optimizer& optimizer) {
  std::vector<Vector> all;
  for (const Tensor& p : optimizer.parameters()) all.push_back(p.to_vector());
  for (const auto& [name, value] : rg::state_of(optimizer)) all.push_back(value.to_vector());
  return all;
}

std::string text_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  FAIL("nothing was thrown");
  return {};
}

// Refuses more memory than is live now and so many bytes.
class Limit {
 public:
  explicit Limit(int64_t bytes) { rg::memory::set_limit(rg::memory::stats().live_bytes + bytes); }
  ~Limit() { rg::memory::set_limit(0); }
};

int64_t steps(const optim::Optimizer& optimizer, const std::string& parameter = "0") {
  const rg::StateDict state = optimizer.state_dict();
  const auto it = state.find(parameter + ".step");
  return it == state.end() ? 0 : it->second.item<int64_t>();
}

}  // namespace

TEST_CASE("an eager step with options of a later group that are wrong") {
  const Tensor a = parameter(3), b = parameter(3);
  optim::AdamW optimizer({{{a}, {.lr = 1}}, {{b}, {.lr = 1}}});
  for (const Tensor& p : {a, b}) p.set_grad(rg::ones({3}));
  const auto before = everything(optimizer);
  optimizer.param_groups()[1].options.lr = -1;
  CHECK(category_of([&] { optimizer.step(); }) == Category::bad_argument);
  CHECK(everything(optimizer) == before);
  optimizer.param_groups()[1].options.lr = 1;
  optimizer.step();
  CHECK(steps(optimizer) == 1);
}

TEST_CASE("an eager step without the memory for a row-major gradient, or for state that is asked for late") {
  const Tensor a = parameter(100), b = rg::full({64, 64}, 0.5).requires_grad_();
  optim::AdamW optimizer(Tensors{a, b}, {.lr = 0.1});
  a.set_grad(rg::ones({100}));
  b.set_grad(rg::ones({64, 64}).t());
  optimizer.step();
  const auto before = everything(optimizer);
  {
    Limit limit(1000);
    CHECK_THROWS_AS(optimizer.step(), rg::OutOfMemory);
  }
  CHECK(everything(optimizer) == before);
  b.set_grad(rg::ones({64, 64}));
  optimizer.param_groups()[0].options.amsgrad = true;
  {
    Limit limit(1000);
    CHECK_THROWS_AS(optimizer.step(), rg::OutOfMemory);
  }
  CHECK(steps(optimizer) == 1);
  CHECK(steps(optimizer, "1") == 1);
  optimizer.step();
  CHECK(steps(optimizer) == 2);
  CHECK(steps(optimizer, "1") == 2);
}

TEST_CASE("a recorded step whose hook throws") {
  const Tensor plain = parameter(5), p = parameter(5);
  optim::AdamW plain_optimizer(Tensors{plain}, {.lr = 0.1}), optimizer(Tensors{p}, {.lr = 0.1});
  bool throws = false;
  const auto body = [&](const Tensor& q, optim::AdamW& o, const Tensor& x) {
    o.zero_grad();
    const Tensor h = q * x;
    h.register_hook([&](const Tensor& g) -> Tensor {
      if (throws) throw std::range_error("by the hook");
      return g * 0.5;
    });
    rg::sum(h * h).backward();
    o.step();
  };
  auto step = rg::compile_step([&](const Tensor& x) { body(p, optimizer, x); });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = rg::full({5}, 0.3 + i);
    throws = i == 0 || i == 2;  // at the first run, and at a later one
    if (throws) {
      const auto before = everything(optimizer);
      CHECK_THROWS_AS(body(plain, plain_optimizer, x), std::range_error);
      CHECK_THROWS_AS(step(x), std::range_error);
      CHECK(everything(optimizer) == before);
      continue;
    }
    body(plain, plain_optimizer, x);
    step(x);
    CHECK(everything(optimizer) == everything(plain_optimizer));
  }
  CHECK(steps(optimizer) == 3);
  CHECK(step.stats().captures == 1);
}

TEST_CASE("a recorded step that fails for the values of its arguments") {
  const Tensor table = rg::full({4, 3}, 0.5).requires_grad_();
  optim::AdamW optimizer(Tensors{table}, {.lr = 0.1});
  auto step = rg::compile_step([&](const Tensor& index) {
    optimizer.zero_grad();
    rg::sum(rg::embedding(table, index)).backward();
    optimizer.step();
  });
  const Tensor good = rg::tensor({1, 3}, {rg::kInt64}), bad = rg::tensor({1, 4}, {rg::kInt64});
  for (const Tensor& index : {bad, good, bad, good}) {
    if (index.is_same(good)) {
      step(index);
      continue;
    }
    const auto before = everything(optimizer);
    CHECK(category_of([&] { step(index); }) == Category::index_out_of_range);
    CHECK(everything(optimizer) == before);
  }
  CHECK(steps(optimizer) == 2);
}

TEST_CASE("a recorded step that fails after the first of two steps says so, and counts that one") {
  const Tensor a = parameter(5), b = parameter(5);
  optim::AdamW first(Tensors{a}, {.lr = 0.1}), second(Tensors{b}, {.lr = 0.1});
  bool throws = false;
  auto step = rg::compile_step([&](const Tensor& x) {
    first.zero_grad();
    second.zero_grad();
    rg::sum(a * x).backward();
    first.step();
    const Tensor h = b * x;
    h.register_hook([&](const Tensor& g) -> Tensor {
      if (throws) throw rg::RuntimeError("by the hook");
      return g * 0.5;
    });
    rg::sum(h).backward();
    second.step();
  });
  step(rg::ones({5}));
  const auto of_first = everything(first), of_second = everything(second);
  throws = true;
  CHECK_THAT(text_of([&] { step(rg::ones({5})); }),
             Catch::Contains("when 1 of 2 parameters had been updated"));
  CHECK(everything(first) != of_first);
  CHECK(steps(first) == 2);
  CHECK(everything(second) == of_second);
  throws = false;
  step(rg::ones({5}));
  CHECK(steps(first) == 3);
  CHECK(steps(second) == 2);
}

TEST_CASE("an error while a step is recorded counts nothing") {
  const Tensor p = parameter(5);
  optim::AdamW optimizer(Tensors{p}, {.lr = 0.1});
  auto step = rg::compile_step([&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = rg::sum(p * x);
    loss.backward();
    optimizer.step();
    return rg::full({}, loss.item<double>());
  });
  const auto before = everything(optimizer);
  for (int i = 0; i < 2; ++i) CHECK(category_of([&] { step(rg::ones({5})); }) == Category::bad_argument);
  CHECK(everything(optimizer) == before);
  CHECK(steps(optimizer) == 0);
}

TEST_CASE("options that have become wrong are refused by a recorded step, too") {
  const Tensor p = parameter(5);
  optim::SGD optimizer(Tensors{p}, {.lr = 0.1});
  auto step = rg::compile_step([&](const Tensor& x) {
    optimizer.zero_grad();
    rg::sum(p * x).backward();
    optimizer.step();
  });
  step(rg::ones({5}));
  const auto before = everything(optimizer);
  optimizer.set_lr(-1);
  CHECK(category_of([&] { step(rg::ones({5})); }) == Category::bad_argument);
  CHECK(everything(optimizer) == before);
  optimizer.set_lr(0.1);
  step(rg::ones({5}));
  CHECK(steps(optimizer) == 2);
}

TEST_CASE("two steps of one optimizer in a recorded step count as two") {
  const Tensor plain = parameter(5), p = parameter(5);
  optim::AdamW plain_optimizer(Tensors{plain}, {.lr = 0.1}), optimizer(Tensors{p}, {.lr = 0.1});
  const auto body = [&](const Tensor& q, optim::AdamW& o, const Tensor& x) {
    for (int i = 0; i < 2; ++i) {
      o.zero_grad();
      rg::sum(q * q * x).backward();
      o.step();
    }
  };
  auto step = rg::compile_step([&](const Tensor& x) { body(p, optimizer, x); });
  for (int i = 1; i < 4; ++i) {
    body(plain, plain_optimizer, rg::full({5}, 0.5 * i));
    step(rg::full({5}, 0.5 * i));
    CHECK(everything(optimizer) == everything(plain_optimizer));
  }
  CHECK(steps(optimizer) == 6);
}

TEST_CASE("a recorded step whose optimizer is gone is an error") {
  const Tensor p = parameter(3);
  auto step = rg::compile_step([&](const Tensor& x) {
    optim::SGD optimizer({p}, {.lr = 0.1});
    rg::sum(p * x).backward();
    optimizer.step();
    optimizer.zero_grad();
  });
  const Tensor x = rg::ones({3});
  CHECK(category_of([&] { step(x), step(x); }) == Category::bad_argument);
  CHECK_THAT(text_of([&] { step(x); }), Catch::Contains("SGD") && Catch::Contains("outside the function"));
}

TEST_CASE("a recorded step goes on with an optimizer that has moved, until it is gone") {
  const Tensor p = parameter(3), x = rg::ones({3});
  std::optional<optim::SGD> first(std::in_place, Tensors{p}, optim::SGDOptions{.lr = 0.1});
  auto step = rg::compile_step([&](const Tensor& input) {
    rg::sum(p * input).backward();
    first->step();
    first->zero_grad();
  });
  step(x);
  optim::SGD second = std::move(*first);
  second.set_lr(0.2);
  step(x);
  CHECK(std::abs(p.to_vector()[0] - 0.2) < 1e-6);
  std::optional<optim::SGD> third(std::move(second));
  third.reset();
  CHECK(category_of([&] { step(x); }) == Category::bad_argument);
}
