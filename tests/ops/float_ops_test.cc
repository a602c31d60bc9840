// Functions of the float format and of integers, shrinkage, and functions composed of others: values, dtypes, errors,
// and that numbers, broadcasting and integers go through all of them.
#include "ops/float_ops.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "ops/bitwise.h"
#include "ops/composed.h"
#include "ops/shrinkage.h"
#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace retrograd {
namespace {

using Values = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

Tensor ints(const Values& values, ScalarType dtype = kInt64) {
  return tensor(values, {static_cast<int64_t>(values.size())}, {dtype});
}
Values of(const Tensor& x) { return x.to_vector(); }

TEST_CASE("signs and infinities") {
  const Tensor x = tensor({-1, -0.0, 0, 2, kInf, -kInf, -kNan});
  CHECK(of(signbit(x)) == Values{1, 1, 0, 0, 0, 1, 1});
  CHECK(of(isposinf(x)) == Values{0, 0, 0, 0, 1, 0, 0});
  CHECK(of(isneginf(x)) == Values{0, 0, 0, 0, 0, 1, 0});
  CHECK(of(signbit(ints({-3, 0, 3}))) == Values{1, 0, 0});
  CHECK(of(isposinf(ints({-3, 0, 3}))) == Values{0, 0, 0});
  CHECK(of(sgn(ints({-3, 0, 3}, kInt32))) == Values{-1, 0, 1});
  CHECK(std::signbit(copysign(tensor({0.0}), -0.0).item<float>()));
  CHECK(copysign(ints({3}), ints({-1})).dtype() == kFloat32);
  CHECK(of(copysign(ints({3}), ints({-1}))) == Values{-3});
  CHECK(of(heaviside(ints({-1, 0, 2}), ints({7}))) == Values{0, 7, 1});
  CHECK(category_of([&] { heaviside(x, ints({1})); }) == Category::dtype_mismatch);
}

TEST_CASE("the next number of each dtype") {
  CHECK(nextafter(tensor({1.0}), tensor({2.0})).item<float>() == std::nextafter(1.0f, 2.0f));
  CHECK(nextafter(tensor({0.0}), tensor({-1.0})).item<float>() == -std::numeric_limits<float>::denorm_min());
  const Tensor x = tensor({1, 1, 0, -2}, {kBFloat16}), to = tensor({2, 0, 1, -3}, {kBFloat16});
  CHECK(of(nextafter(x, to)) == Values{1 + 0x1p-7, 1 - 0x1p-8, 0x1p-133, -2 - 0x1p-6});
  CHECK(category_of([] { nextafter(tensor({1}, {kFloat16}), tensor({2}, {kFloat16})); }) ==
        Category::dtype_mismatch);
  CHECK(category_of([] { nextafter(ints({1}), ints({2})); }) == Category::dtype_mismatch);
}

TEST_CASE("powers of two beyond the range") {
  CHECK(of(ldexp(tensor({0x1p-140, 0x1p100, 3}), ints({200, -240, 2}))) == Values{0x1p60, 0x1p-140, 12});
  CHECK(of(ldexp(tensor({0x1p-1074, 0x1p1023}, {kFloat64}), ints({2097, -2097}))) ==
        Values{0x1p1023, 0x1p-1074});
  CHECK(ldexp(tensor({1}, {kFloat16}), tensor({1.5}, {kFloat64})).dtype() == kFloat16);
  CHECK(ldexp(ints({3}), ints({2})).dtype() == kFloat32);
}

TEST_CASE("closeness and equality") {
  const Tensor a = tensor({1, kInf, kNan, 1}), b = tensor({1.000001, kInf, kNan, 1.1});
  CHECK(of(isclose(a, b)) == Values{1, 1, 0, 0});
  CHECK(of(isclose(a, b, 0.2, 0, true)) == Values{1, 1, 1, 1});
  CHECK(of(isclose(a, -b)) == Values{0, 0, 0, 0});
  const int64_t large = (int64_t{1} << 53) + 1;
  const auto whole = [](int64_t value) { return tensor(std::vector<int64_t>{value}, {1}, {kInt64}); };
  const Tensor exact = whole(large), near = whole(large - 1);
  CHECK(of(isclose(exact, near, 0, 0)) == Values{0});
  CHECK(of(isclose(exact, near)) == Values{1});
  CHECK(of(allclose(a, b, 0.2, 0, true)) == Values{1});
  CHECK(of(allclose(a, b)) == Values{0});
  CHECK(of(equal(ints({1, 2}), ints({1, 2}))) == Values{1});
  CHECK(of(equal(ints({1, 2}), ints({1, 3}))) == Values{0});
  CHECK(of(equal(ints({1, 1}), ints({1}))) == Values{0});
  CHECK(category_of([&] { equal(a, ints({1})); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { isclose(a, ints({1})); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { isclose(a, b, -1); }) == Category::bad_argument);
}

TEST_CASE("bits, shifts and divisors") {
  const Tensor a = ints({12, -7, 255}), b = ints({10, 3, -256});
  CHECK(of(bitwise_and(a, b)) == Values{8, 1, 0});
  CHECK(of(bitwise_or(a, b)) == Values{14, -5, -1});
  CHECK(of(bitwise_xor(a, b)) == Values{6, -6, -1});
  CHECK(of(bitwise_not(a)) == Values{-13, 6, -256});
  CHECK(of(bitwise_not(ints({0, 200}, kUInt8))) == Values{255, 55});
  CHECK(of(bitwise_not(ints({0, 1}, kBool))) == Values{1, 0});
  CHECK(of(bitwise_and(a, 6)) == Values{4, 0, 6});
  CHECK(of(bitwise_left_shift(a, ints({2, 64, -1}))) == Values{48, 0, 0});
  CHECK(of(bitwise_right_shift(ints({12, -7, -7}), ints({2, 1, 64}))) == Values{3, -4, -1});
  CHECK(of(bitwise_left_shift(ints({200}, kUInt8), 1)) == Values{144});
  CHECK(of(gcd(ints({12, -18, 0, 0}), ints({18, 12, 5, 0}))) == Values{6, 6, 5, 0});
  CHECK(of(lcm(ints({4, -6, 0, 0}), ints({6, 4, 5, 0}))) == Values{12, 12, 0, 0});
  CHECK(bitwise_or(ints({1}, kBool), ints({1}, kBool)).dtype() == kBool);
  for (const auto& f : {bitwise_and(a, b), gcd(a, b)}) CHECK(f.dtype() == kInt64);
  CHECK(category_of([&] { bitwise_and(tensor({1.0}), a); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { bitwise_and(a, 1.5); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { bitwise_not(tensor({1.0})); }) == Category::dtype_mismatch);
  CHECK(category_of([] { gcd(ints({1}, kBool), ints({1}, kBool)); }) == Category::dtype_mismatch);
  CHECK(category_of([] { bitwise_left_shift(ints({1}, kBool), ints({1}, kBool)); }) ==
        Category::dtype_mismatch);
}

TEST_CASE("prelu, glu and shrinkage") {
  const Tensor x = tensor({-1.0, 2, -3, 4}, {2, 2}), w = tensor({0.5, 2});
  CHECK(of(prelu(x, w)) == Values{-0.5, 2, -1.5, 4});
  CHECK(of(prelu(x, tensor({3.0}))) == Values{-3, 2, -9, 4});
  CHECK(of(prelu(tensor({-1.0, -2}, {2}), w)) == Values{-0.5, -4});
  CHECK(category_of([&] { prelu(x, tensor({1.0, 2, 3})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { prelu(x, ones({1, 1})); }) == Category::bad_dim);
  CHECK(category_of([&] { prelu(x, w.to(kFloat64)); }) == Category::dtype_mismatch);
  CHECK(of(glu(tensor({3.0, 0}))) == Values{1.5});
  CHECK(glu(zeros({2, 0})).sizes() == IntArray{2, 0});
  CHECK(category_of([&] { glu(zeros({2, 3})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { glu(zeros({})); }) == Category::bad_dim);
  CHECK(category_of([&] { glu(zeros({2}), 1); }) == Category::bad_dim);
  CHECK(category_of([&] { softshrink(x, -1); }) == Category::bad_argument);
}

TEST_CASE("composed functions") {
  const Tensor x = tensor({-2.0, 3});
  CHECK(positive(x).is_same(x));
  CHECK(category_of([] { positive(ints({1}, kBool)); }) == Category::dtype_mismatch);
  CHECK(of(rsub(x, 1, 2)) == Values{5, -5});
  CHECK(of(floor_divide(ints({-7, 7}), 2)) == Values{-4, 3});
  CHECK(category_of([] { floor_divide(ints({1}), ints({0})); }) == Category::bad_argument);
  CHECK(float_power(ints({2}), ints({-1})).dtype() == kFloat64);
  CHECK(of(float_power(ints({2}), ints({-1}))) == Values{0.5});
  CHECK(of(float_power(2, ints({3}))) == Values{8});
  CHECK(of(clamp_min(ints({-2, 3}), 1)) == Values{1, 3});
  CHECK(clamp_max(ints({-2, 3}), 1.5).dtype() == kFloat32);
  CHECK(of(normalize(tensor({3.0, 4}, {1, 2}))) ==
        Values{static_cast<double>(0.6f), static_cast<double>(0.8f)});
  CHECK(of(normalize(tensor({3e-30, 4e-30}, {1, 2}), 2.0, -1, 1e-40))[0] == Approx(0.6));
  CHECK(of(softmin(tensor({0.0, 0}), 0)) == Values{0.5, 0.5});
  CHECK(of(deg2rad(ints({180})))[0] == Approx(M_PI));
  CHECK(of(rad2deg(tensor({M_PI})))[0] == Approx(180));
}

}  // namespace
}  // namespace retrograd
