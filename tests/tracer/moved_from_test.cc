// Moved-from compiled backwards and functions: a defined, empty state.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {
using namespace scenario;
using rg::Category;
}  // namespace

TEST_CASE("a compiled backward that was moved from is as a new one") {
  const Tensor x = leaf({1, 2});
  const auto backward = [&](rg::CompiledBackward& by) {
    x.set_grad({});
    by.backward({rg::sum(x * x)});
    CHECK(values(x.grad()) == std::vector<double>{2, 4});
  };
  rg::CompiledBackward one;
  backward(one);
  rg::CompiledBackward two = std::move(one);
  CHECK(two.stats().captures == 1);
  CHECK(one.stats().captures == 0);
  CHECK(one.graph() == nullptr);
  CHECK(one.last_capture_reason().empty());
  CHECK(one.explain() == rg::CompiledBackward().explain());
  CHECK_FALSE(one.knows({rg::sum(x * x)}));
  one.reset();
  backward(one);
  CHECK(one.stats().captures == 1);
  two = std::move(one);
  {
    rg::CompiledBackwardScope scope(one);
    x.set_grad({});
    rg::sum(x * x).backward();
  }
  CHECK(one.stats().captures == 1);
  CHECK(two.stats().hits == 0);
}

TEST_CASE("a compiled function that was moved from says so when it is called") {
  const auto twice = [](const Tensor& t) { return t * 2.0; };
  auto one = rg::compile(twice);
  one(leaf({1}));
  auto two = std::move(one);
  CHECK(one.stats().captures == 0);
  CHECK(one.graph() == nullptr);
  CHECK(one.backward_graph() == nullptr);
  CHECK(one.last_capture_reason().empty());
  CHECK(one.segments().empty());
  one.reset();
  CHECK(category_of([&] { one(leaf({1})); }) == Category::bad_argument);
  CHECK_THAT(error_of([&] { one(leaf({1})); }),
             Catch::Contains("moved") && Catch::Contains("moved_from_test.cc"));
  CHECK(values(two(leaf({3}))) == std::vector<double>{6});
  CHECK(two.stats().captures == 1);
  auto step = rg::compile_step(twice);
  auto other = std::move(step);
  CHECK(category_of([&] { step(leaf({1})); }) == Category::bad_argument);
  CHECK(values(other(leaf({3}))) == std::vector<double>{6});
}
