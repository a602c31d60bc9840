// rrelu and gumbel_softmax: distributions, derivatives, forms in place, errors.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
using rg::Category;
using rg::category_of;
using rg::Tensor;
using rg::testing::same_bits;

namespace {

double number(const Tensor& x) { return x.item<double>(); }
bool close(const Tensor& a, const Tensor& b) { return number(rg::max(rg::abs(a - b))) < 1e-5; }

TEST_CASE("rrelu draws a slope for each negative element") {
  const Tensor x = rg::full({1000}, -2.0).requires_grad_();
  const Tensor y = rg::rrelu(x, 0.1, 0.3, true);
  rg::sum(y).backward();
  const Tensor slopes = y.detach() / -2.0;
  CHECK(number(slopes.min()) >= 0.1);
  CHECK(number(slopes.max()) < 0.3001);
  CHECK(number(slopes.max()) - number(slopes.min()) > 0.15);
  CHECK(number(slopes.mean()) == Approx(0.2).margin(0.01));
  CHECK(close(x.grad(), slopes));
  const Tensor positive = rg::full({3}, 2.0);
  CHECK(same_bits(rg::rrelu(positive, 0.1, 0.3, true), positive));
  CHECK(same_bits(rg::rrelu(x, 0.1, 0.3), rg::leaky_relu(x, 0.2)));
}

TEST_CASE("rrelu_ writes the result into the operand") {
  const Tensor x = rg::linspace(-2, 2, 9), y = x.clone();
  rg::manual_seed(3);
  const Tensor expected = rg::rrelu(x, 0.1, 0.3, true);
  rg::manual_seed(3);
  CHECK(rg::rrelu_(y, 0.1, 0.3, true).is_same(y));
  CHECK(same_bits(y, expected));
}

TEST_CASE("each run of a recorded rrelu draws anew, and its backward has the same slopes") {
  auto function = rg::compile([](const Tensor& x) { return rg::rrelu(x, 0.1, 0.3, true); });
  const Tensor x = rg::full({100}, -1.0).requires_grad_();
  const Tensor first = function(x), second = function(x);
  CHECK_FALSE(same_bits(first, second));
  rg::sum(second).backward();
  CHECK(close(x.grad(), rg::neg(second.detach())));
  CHECK(function.stats().captures == 1);
}

TEST_CASE("gumbel_softmax samples classes by their probabilities") {
  const Tensor logits = rg::log(rg::tensor({0.2, 0.8})).expand({4000, 2}).clone().requires_grad_();
  const Tensor hard = rg::gumbel_softmax(logits, 0.5, true);
  CHECK(close(hard.sum({1}), rg::ones({4000})));
  CHECK(number(rg::max(rg::abs(hard * (hard - 1.0)))) < 1e-6);
  CHECK(number(hard.select(1, 1).mean()) == Approx(0.8).margin(0.03));
  hard.select(1, 1).sum().backward();
  CHECK(number(logits.grad().abs().max()) > 0.1);
  const Tensor soft = rg::gumbel_softmax(logits, 0.5);
  CHECK(close(soft.sum({1}), rg::ones({4000})));
  CHECK(number(rg::max(rg::abs(soft * (soft - 1.0)))) > 0.1);
}

TEST_CASE("errors") {
  const Tensor x = rg::ones({2}), integers = rg::ones({2}, {rg::kInt64});
  CHECK(category_of([&] { rg::rrelu(x, 0.5, 0.1); }) == Category::bad_argument);
  CHECK(category_of([&] { rg::rrelu(x, 0.5, INFINITY); }) == Category::bad_argument);
  CHECK(category_of([&] { rg::rrelu(integers); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { rg::gumbel_softmax(x, 0.0); }) == Category::bad_argument);
  CHECK(category_of([&] { rg::gumbel_softmax(x, 1.0, false, 1); }) == Category::bad_dim);
  CHECK(category_of([&] { rg::gumbel_softmax(integers); }) == Category::dtype_mismatch);
}

}  // namespace
