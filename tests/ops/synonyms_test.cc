// The other names of functions (ops/synonyms.h): each gives what the function gives that it stands for, as a function, as
// a method and in place.
#include "ops/synonyms.h"

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
using rg::Tensor;
using Values = std::vector<double>;

namespace {

struct Unary {
  const char* name;
  Tensor (*function)(const rg::Operand&);
  Tensor (*method)(const Tensor&);
  const Tensor& (*in_place)(const Tensor&);
  Tensor (*meant)(const Tensor&);
};

#define ROW(NAME, MEANT)                                                                     \
  Unary {                                                                                    \
#NAME, rg::NAME, [](const Tensor& x) { return x.NAME(); },                                 \
        [](const Tensor& x) -> const Tensor& { return x.NAME##_(); },                          \
        [](const Tensor& x) { return Tensor(rg::MEANT(x)); } \
  }
const Unary kUnary[] = {ROW(absolute, abs), ROW(negative, neg), ROW(fix, trunc),     ROW(arccos, acos),
                        ROW(arcsin, asin),  ROW(arctan, atan),  ROW(arcsinh, asinh), ROW(arctanh, atanh)};
#undef ROW

void check_same(const Tensor& a, const Tensor& b) {
  CHECK(a.dtype() == b.dtype());
  CHECK(a.to_vector() == b.to_vector());
}

}  // namespace

TEST_CASE("functions of one tensor by other names") {
  const Tensor x = rg::tensor({-0.75, 0.25, 0.5});
  for (const Unary& u : kUnary) {
    INFO(u.name);
    const Tensor expected = u.meant(x), written = x.clone();
    check_same(u.function(x), expected);
    check_same(u.method(x), expected);
    CHECK(u.in_place(written).is_same(written));
    check_same(written, expected);
  }
  const Tensor above = rg::tensor({1.5, 2.0});
  check_same(rg::arccosh(above), rg::acosh(above));
}

TEST_CASE("functions of two tensors by other names") {
  const Tensor x = rg::tensor({3.0, -4.0, 5.0}), y = rg::tensor({3.0, 2.0, 7.0});
  check_same(rg::subtract(x, y, 2), rg::tensor({-3.0, -8.0, -9.0}));
  check_same(x.subtract(1), rg::tensor({2.0, -5.0, 4.0}));
  check_same(rg::multiply(x, y), rg::tensor({9.0, -8.0, 35.0}));
  check_same(x.divide(2), rg::tensor({1.5, -2.0, 2.5}));
  check_same(rg::divide(x, 2, "floor"), rg::tensor({1.0, -2.0, 2.0}));
  check_same(x.divide(2, "trunc"), rg::tensor({1.0, -2.0, 2.0}));
  check_same(rg::true_divide(rg::tensor({1}), 2), rg::tensor({0.5}));
  check_same(rg::arctan2(x, y), rg::atan2(x, y));
  CHECK(rg::less(x, y).to_vector() == Values{0, 1, 1});
  CHECK(x.less_equal(y).to_vector() == Values{1, 1, 1});
  CHECK(rg::greater(x, 3).to_vector() == Values{0, 0, 1});
  CHECK(x.greater_equal(3).to_vector() == Values{1, 0, 1});
  CHECK(x.not_equal(y).to_vector() == Values{0, 1, 1});
  check_same(rg::clip(x, -1, 4), rg::tensor({3.0, -1.0, 4.0}));
  check_same(x.clip(0), rg::tensor({3.0, 0.0, 5.0}));
  check_same(rg::max(x, y), rg::tensor({3.0, 2.0, 7.0}));
  check_same(x.min(y), rg::tensor({3.0, -4.0, 5.0}));
  const Tensor written = x.clone();
  written.multiply_(2).subtract_(y).clip_(-9.5, 3.5);
  check_same(written, rg::tensor({3.0, -9.5, 3.0}));
}

TEST_CASE("rearrangements and products by other names") {
  const Tensor x = rg::arange(0, 6, 1, {rg::kFloat32}).view({2, 3});
  CHECK(x.mT().sizes() == rg::IntArray{3, 2});
  CHECK(rg::mT(x)[1].to_vector() == Values{1, 4});
  CHECK(x.swapdims(0, 1).to_vector() == x.t().to_vector());
  CHECK(x.moveaxis({0}, {1}).to_vector() == x.t().to_vector());
  const rg::Tensors parts = x.split_with_sizes({1, 2}, 1);
  CHECK(parts[1].to_vector() == Values{1, 2, 4, 5});
  CHECK(rg::msort(-x)[0].to_vector() == Values{-3, -4, -5});
  const Tensor v = rg::tensor({1.0, 2.0});
  CHECK(v.ger(v).to_vector() == Values{1, 2, 2, 4});
  CHECK(rg::vdot(v, v).item<double>() == 5);
  const Tensor turned = x.clone();
  turned.swapdims_(0, 1);
  CHECK(turned.sizes() == rg::IntArray{3, 2});
}

TEST_CASE("sum_to_size sums what broadcasting would repeat") {
  const Tensor x = rg::arange(0, 6, 1, {rg::kFloat32}).view({2, 3}).requires_grad_();
  const Tensor y = x.sum_to_size({1, 3});
  CHECK(y.to_vector() == Values{3, 5, 7});
  CHECK(x.sum_to_size({3}).sizes() == rg::IntArray{3});
  CHECK(x.sum_to_size({}).item<double>() == 15);
  CHECK(x.sum_to_size({2, 3}).to_vector() == x.to_vector());
  CHECK(rg::category_of([&] { x.sum_to_size({2, 2}); }) == rg::Category::shape_mismatch);
  CHECK(rg::category_of([&] { x.sum_to_size({4, 2, 3}); }) == rg::Category::shape_mismatch);
  rg::sum(y * rg::tensor({1.0, 2.0, 3.0})).backward();
  CHECK(x.grad().to_vector() == Values{1, 2, 3, 1, 2, 3});
}

TEST_CASE("gradients and recordings go through the function that is meant") {
  auto f = rg::compile([](const Tensor& x) { return rg::max(rg::subtract(x, 1).absolute(), x); });
  for (int run = 0; run < 2; ++run) {
    const Tensor x = rg::tensor({-2.0, 3.0}).requires_grad_(), y = f(x);
    CHECK(y.to_vector() == Values{3, 3});
    rg::sum(y).backward();
    CHECK(x.grad().to_vector() == Values{-1, 1});
  }
  CHECK(f.stats().captures == 1);
}
