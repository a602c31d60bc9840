// Tensors that a function fills on the host (tensor(), arange(), empty()), where the function is recorded or recomputed:
// each run has its own, so that writes and results of one are not seen by another.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;

struct Row {
  const char* name;
  std::function<Tensor(const Tensor&)> function;
};

const Row kRows[] = {
    {"a list of values that is added to",
     [](const Tensor& x) {
       const Tensor sum = rg::tensor({1, 2, 3}, {3}, {rg::kFloat64});
       return sum.add_(x) * x;
     }},
    {"memory that is filled",
     [](const Tensor& x) {
       const Tensor out = rg::empty({3}, {rg::kFloat64});
       out.copy_(x);
       return out.mul_(x) + x;
     }},
    {"memory like an argument, filled in parts",
     [](const Tensor& x) {
       const Tensor out = rg::empty_like(x);
       for (int i = 0; i < 3; ++i) out.select(0, i).copy_(x.select(0, 2 - i));
       return out * x;
     }},
    {"a range with a replaced element",
     [](const Tensor& x) {
       const Tensor range = rg::arange(3, rg::TensorOptions(rg::kFloat64));
       range.select(0, 1).copy_(x.select(0, 0));
       return range * x;
     }},
    {"points of a line, scaled",
     [](const Tensor& x) { return rg::linspace(0, 1, 3, rg::TensorOptions(rg::kFloat64)).mul_(x) + x; }},
    {"only read",
     [](const Tensor& x) {
       return x * rg::tensor({1, 2, 3}, {3}, {rg::kFloat64});
     }},
};

Tensor argument(double first) {
  return rg::tensor({first, first + 1, first + 2}, {3}, {rg::kFloat64}).requires_grad_();
}

Tensors value_and_gradient(const std::function<Tensor(const Tensor&)>& f, double first) {
  const Tensor x = argument(first);
  const Tensor y = f(x);
  rg::sum(y * y).backward();
  return {y.detach(), x.grad()};
}

TEST_CASE("each run of a compiled function has its own host values") {
  for (const Row& row : kRows) {
    INFO(row.name);
    auto compiled = rg::compile(row.function);
    for (const double first : {1.0, 2.0, 5.0, 1.0})
      check_same(value_and_gradient(row.function, first),
                 value_and_gradient([&](const Tensor& x) { return compiled(x); }, first));
    CHECK(compiled.stats().captures == 1);
    CHECK(compiled.stats().eager == 0);
    auto checked = rg::compile(row.function, {.twin_calls = 1});
    for (const double first : {1.0, 2.0, 3.0})
      check_same({row.function(argument(first))}, {checked(argument(first))});
  }
}

TEST_CASE("in a checkpoint, writes to host values are right or refused; compiled, they are right") {
  for (const Row& row : kRows) {
    INFO(row.name);
    const auto checkpointed = [&](const Tensor& x) { return rg::checkpoint(row.function, x); };
    try {
      check_same(value_and_gradient(row.function, 2), value_and_gradient(checkpointed, 2));
    } catch (const rg::Error& e) {
      CHECK(e.category() == rg::Category::version_mismatch);
    }
    auto compiled = rg::compile(checkpointed);
    for (const double first : {1.0, 2.0})
      check_same(value_and_gradient(row.function, first),
                 value_and_gradient([&](const Tensor& x) { return compiled(x); }, first));
  }
}

TEST_CASE("host values that a compiled function returns belong to the caller") {
  auto compiled = rg::compile([](const Tensor& x) {
    return std::tuple(x + 1.0, rg::tensor({1, 2, 3}, {3}, {rg::kFloat64}),
                      rg::empty({2}, {rg::kInt64}).zero_());
  });
  for (int call = 0; call < 3; ++call) {
    const auto [sum, list, zeros] = compiled(argument(1).detach());
    CHECK(values(list) == std::vector<double>{1, 2, 3});
    CHECK(values(zeros) == std::vector<double>{0, 0});
    list.mul_(2.0);
    zeros.add_(1);
  }
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("recorded code reads host values until they are written to") {
  const auto scaled = [](const Tensor& x) {
    const Tensor list = rg::tensor({2, 5, 3}, {3}, {rg::kInt64});
    const Tensor mask = rg::tensor({1, 0, 1}, {3}, {rg::kBool});
    return x.index({mask}) * list[1].item<double>() + list.to_vector()[2];
  };
  auto compiled = rg::compile(scaled);
  for (const double first : {1.0, 2.0, 3.0})
    check_same({scaled(argument(first))}, {compiled(argument(first))});
  CHECK(compiled.stats().captures == 1);

  auto reads = rg::compile([](const Tensor& x) {
    const Tensor list = rg::tensor({2, 5, 3}, {3}, {rg::kFloat64});
    list.add_(1.0);
    return x * list.select(0, 1).item<double>();
  });
  CHECK(category_of([&] { reads(argument(1)); }) == rg::Category::bad_argument);
}

TEST_CASE("a recorded function fills memory through a pointer") {
  const auto filled = [](const Tensor& x) {
    const Tensor weights = rg::empty({3}, {rg::kFloat64});
    for (int i = 0; i < 3; ++i) weights.data_ptr<double>()[i] = i + 0.5;
    return x * weights;
  };
  auto compiled = rg::compile(filled);
  for (const double first : {1.0, 2.0, 3.0})
    check_same({filled(argument(first))}, {compiled(argument(first))});
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("a leaf of host values has the gradient of one run") {
  auto step = rg::compile_step([](const Tensor& x) {
    const Tensor w = rg::tensor({1, 2, 3}, {3}, rg::TensorOptions(rg::kFloat64).requires_grad(true));
    return rg::autograd::grad({rg::sum(w * w * x)}, {w})[0];
  });
  for (const double first : {1.0, 2.0, 3.0})
    CHECK(values(step(argument(first).detach())) ==
          std::vector<double>{2 * first, 4 * (first + 1), 6 * (first + 2)});
}

TEST_CASE("host values of a shape with sizes that are symbols") {
  auto compiled = rg::compile(
      [](const Tensor& x) {
        const Tensor out = rg::empty({x.sym_size(0), 2}, {rg::kFloat64});
        out.copy_(x);
        return out + rg::tensor({1, 2}, {x.sym_size(1)}, {rg::kFloat64});
      },
      {.dynamic = rg::DynamicSizes::always});
  for (const int64_t rows : {3, 4, 5}) {
    const Tensor x = rg::ones({rows, 2}, {rg::kFloat64});
    check_same({x + rg::tensor({1, 2}, {2}, {rg::kFloat64})}, {compiled(x)});
  }
  CHECK(compiled.stats().captures == 1);
}

}  // namespace
