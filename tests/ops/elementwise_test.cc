// Functions of one, two and three operands: values against libm in double, derivatives to second order,
// dtypes, layouts, special values, saved sets, errors. Activations are in tests/ops/activations_test.cc. Not
// tested here: accuracy over whole ranges (tests/cpu/vec_math_test.cc), recorded graphs, results against
// PyTorch (tests/conformance).
#include "ops/elementwise_list.h"

#include <bit>
#include <limits>

#include "tests/errors.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

struct Function1 {
  const char* name;
  Tensor (*f)(const Tensor&);
  double (*reference)(double);
  double low, high;
};

const Function1 kFunctions[] = {
    {"exp", [](const Tensor& x) { return exp(x); }, [](double x) { return std::exp(x); }, -2, 2},
    {"exp2", [](const Tensor& x) { return exp2(x); }, [](double x) { return std::exp2(x); }, -2, 2},
    {"expm1", [](const Tensor& x) { return expm1(x); }, [](double x) { return std::expm1(x); }, -2, 2},
    {"log", [](const Tensor& x) { return log(x); }, [](double x) { return std::log(x); }, 0.2, 3},
    {"log2", [](const Tensor& x) { return log2(x); }, [](double x) { return std::log2(x); }, 0.2, 3},
    {"log10", [](const Tensor& x) { return log10(x); }, [](double x) { return std::log10(x); }, 0.2, 3},
    {"log1p", [](const Tensor& x) { return log1p(x); }, [](double x) { return std::log1p(x); }, -0.8, 3},
    {"sqrt", [](const Tensor& x) { return sqrt(x); }, [](double x) { return std::sqrt(x); }, 0.2, 3},
    {"rsqrt", [](const Tensor& x) { return rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); }, 0.2, 3},
    {"square", [](const Tensor& x) { return square(x); }, [](double x) { return x * x; }, -2, 2},
    {"reciprocal", [](const Tensor& x) { return reciprocal(x); }, [](double x) { return 1 / x; }, 0.5, 2},
    {"abs", [](const Tensor& x) { return abs(x); }, [](double x) { return std::abs(x); }, -2, -0.1},
    {"sin", [](const Tensor& x) { return sin(x); }, [](double x) { return std::sin(x); }, -4, 4},
    {"cos", [](const Tensor& x) { return cos(x); }, [](double x) { return std::cos(x); }, -4, 4},
    {"tan", [](const Tensor& x) { return tan(x); }, [](double x) { return std::tan(x); }, -1, 1},
    {"asin", [](const Tensor& x) { return asin(x); }, [](double x) { return std::asin(x); }, -0.9, 0.9},
    {"acos", [](const Tensor& x) { return acos(x); }, [](double x) { return std::acos(x); }, -0.9, 0.9},
    {"atan", [](const Tensor& x) { return atan(x); }, [](double x) { return std::atan(x); }, -3, 3},
    {"sinh", [](const Tensor& x) { return sinh(x); }, [](double x) { return std::sinh(x); }, -2, 2},
    {"cosh", [](const Tensor& x) { return cosh(x); }, [](double x) { return std::cosh(x); }, -2, 2},
    {"asinh", [](const Tensor& x) { return asinh(x); }, [](double x) { return std::asinh(x); }, -3, 3},
    {"acosh", [](const Tensor& x) { return acosh(x); }, [](double x) { return std::acosh(x); }, 1.2, 4},
    {"atanh", [](const Tensor& x) { return atanh(x); }, [](double x) { return std::atanh(x); }, -0.9, 0.9},
    {"erf", [](const Tensor& x) { return erf(x); }, [](double x) { return std::erf(x); }, -2, 2},
    {"erfc", [](const Tensor& x) { return erfc(x); }, [](double x) { return std::erfc(x); }, -2, 2},
    {"erfinv of erf", [](const Tensor& x) { return erfinv(erf(x)); }, [](double x) { return x; }, -1.5, 1.5},
    {"lgamma", [](const Tensor& x) { return lgamma(x); }, [](double x) { return std::lgamma(x); }, 0.3, 4},
    {"lgamma below 0", [](const Tensor& x) { return lgamma(x); }, [](double x) { return std::lgamma(x); },
     -1.8, -1.2},
    {"frac", [](const Tensor& x) { return frac(x); }, [](double x) { return x - std::trunc(x); }, 1.1, 1.9},
    {"floor", [](const Tensor& x) { return floor(x); }, [](double x) { return std::floor(x); }, -1.9, -1.1},
    {"ceil", [](const Tensor& x) { return ceil(x); }, [](double x) { return std::ceil(x); }, 0.1, 0.9},
    {"trunc", [](const Tensor& x) { return trunc(x); }, [](double x) { return std::trunc(x); }, -1.9, -1.1},
    {"round", [](const Tensor& x) { return round(x); }, [](double x) { return std::nearbyint(x); }, 0.6, 1.4},
    {"sign", [](const Tensor& x) { return sign(x); }, [](double x) { return x < 0 ? -1.0 : 1.0; }, -2, -0.1},
    {"pow 3", [](const Tensor& x) { return pow(x, 3); }, [](double x) { return x * x * x; }, -2, 2},
    {"pow 2.5", [](const Tensor& x) { return pow(x, 2.5); }, [](double x) { return std::pow(x, 2.5); }, 0.3,
     2},
    {"pow -0.5", [](const Tensor& x) { return pow(x, -0.5); }, [](double x) { return std::pow(x, -0.5); },
     0.3, 2},
};

TEST_CASE("functions of one operand against libm") {
  for (const Function1& f : kFunctions) {
    const Tensor x = input({5, 7}, f.low, f.high).detach();
    const std::vector<double> in = x.to_vector(), single_in = x.to(kFloat32).to_vector();
    const std::vector<double> out = f.f(x).to_vector(), single = f.f(x.to(kFloat32)).to_vector();
    for (size_t i = 0; i < in.size(); ++i) {
      INFO(f.name << " of " << in[i]);
      CHECK(out[i] == Approx(f.reference(in[i])).epsilon(1e-13).margin(1e-14));
      CHECK(single[i] == Approx(f.reference(single_in[i])).epsilon(2e-6).margin(1e-6));
    }
  }
}

TEST_CASE("derivatives of functions of one operand") {
  for (const Function1& f : kFunctions) {
    INFO(f.name);
    gradcheck([&](const Tensors& x) { return f.f(x[0]); }, {input({2, 3}, f.low, f.high)});
  }
}

TEST_CASE("digamma and its derivatives") {
  const double pi2 = M_PI * M_PI, zeta3 = 1.2020569031595942;
  const Tensor x = tensor({1, 0.5, -0.5, 3.25}, {kFloat64, kCPU, true});
  const Tensor trigamma = autograd::grad({sum(digamma(x))}, {x}, {}, true, true)[0];
  CHECK(trigamma.to_vector()[0] == Approx(pi2 / 6).epsilon(1e-13));
  CHECK(trigamma.to_vector()[1] == Approx(pi2 / 2).epsilon(1e-13));
  CHECK(trigamma.to_vector()[2] == Approx(pi2 / 2 + 4).epsilon(1e-13));
  const Tensor third = autograd::grad({sum(trigamma)}, {x})[0];
  CHECK(third.to_vector()[0] == Approx(-2 * zeta3).epsilon(1e-13));
  CHECK(third.to_vector()[1] == Approx(-14 * zeta3).epsilon(1e-13));
  CHECK(third.to_vector()[2] == Approx(-14 * zeta3 + 16).epsilon(1e-12));
  gradcheck([](const Tensors& in) { return digamma(in[0]); }, {input({6}, 0.3, 9)});
  gradcheck([](const Tensors& in) { return digamma(in[0]); }, {input({6}, -2.8, -2.2)});
  gradcheck([](const Tensors& in) { return lgamma(in[0]); }, {input({6}, 0.3, 9)});
}

TEST_CASE("derivatives of functions of two operands, with broadcasting") {
  const Tensor a = input({2, 3}, 0.3, 1.5), b = input({3}, 0.4, 1.7, 5), c = input({2, 1}, -1.5, 1.5, 9);
  gradcheck([](const Tensors& x) { return pow(x[0], x[1]); }, {a, b});
  gradcheck([](const Tensors& x) { return pow(2.5, x[0]); }, {a});
  gradcheck([](const Tensors& x) { return atan2(x[0], x[1]); }, {c, b});
  gradcheck([](const Tensors& x) { return hypot(x[0], x[1]); }, {a, c});
  gradcheck([](const Tensors& x) { return logaddexp(x[0], x[1]); }, {a, c});
  gradcheck([](const Tensors& x) { return maximum(x[0], x[1]); }, {a, c});
  gradcheck([](const Tensors& x) { return minimum(x[0], 0.7); }, {a});
  gradcheck([](const Tensors& x) { return fmod(x[0] * 5, x[1]); }, {c, b});
  gradcheck([](const Tensors& x) { return remainder(x[0] * 5, x[1]); }, {c, b});
  gradcheck([](const Tensors& x) { return div(x[0] * 5, x[1], "floor") + x[0]; }, {c, b});
  gradcheck([](const Tensors& x) { return div(x[0], x[1], "trunc") + x[1]; }, {c, b});
}

TEST_CASE("derivatives of functions of three operands") {
  const Tensor a = input({2, 3}), b = input({3}, -1.5, 1.5, 5), c = input({2, 1}, 0.3, 1.5, 9);
  const Tensor yes = gt(input({2, 3}, -1, 1, 11), 0);
  gradcheck([&](const Tensors& x) { return where(yes, x[0], x[1]); }, {a, b});
  gradcheck([&](const Tensors& x) { return where(yes, 2.0, x[0]); }, {b});
  gradcheck([](const Tensors& x) { return lerp(x[0], x[1], 0.3); }, {a, b});
  gradcheck([](const Tensors& x) { return lerp(x[0], x[1], x[2]); }, {a, b, c});
  gradcheck([](const Tensors& x) { return addcmul(x[0], x[1], x[2], 2.5); }, {a, b, c});
  gradcheck([](const Tensors& x) { return addcdiv(x[0], x[1], x[2], 2.5); }, {a, b, c});
  gradcheck([](const Tensors& x) { return clamp(x[0], x[1]); }, {a, b});
  gradcheck([](const Tensors& x) { return clamp(x[0], {}, x[1]); }, {a, b});
  gradcheck([](const Tensors& x) { return clamp(x[0], -x[1], x[1]); }, {a, c});
  gradcheck([](const Tensors& x) { return clamp(x[0], -0.4, 0.6); }, {a});
  gradcheck([](const Tensors& x) { return nan_to_num(x[0]); }, {a});
}

std::vector<double> gradient(const std::function<Tensor(const Tensor&)>& f,
                             std::initializer_list<double> at) {
  const Tensor x = tensor(at, {kFloat64, kCPU, true});
  return autograd::grad({sum(f(x))}, {x})[0].to_vector();
}

TEST_CASE("derivatives at ties and zeros") {
  using Values = std::vector<double>;
  CHECK(gradient([](const Tensor& x) { return abs(x); }, {0, -2}) == Values{0, -1});
  CHECK(gradient(
            [](const Tensor& x) {
              return maximum(x, tensor({1, 1, 1}, {kFloat64}));
            },
            {0, 1, 2}) == Values{0, 0.5, 1});
  CHECK(gradient(
            [](const Tensor& x) {
              return minimum(x, tensor({1, 1, 1}, {kFloat64}));
            },
            {0, 1, 2}) == Values{1, 0.5, 0});
  CHECK(gradient([](const Tensor& x) { return clamp(x, 0.0, 1.0); }, {-1, 0, 0.5, 1, 2}) ==
        Values{0, 0, 1, 0, 0});
  CHECK(gradient([](const Tensor& x) { return clamp(x, full({}, 0.0, kFloat64)); }, {-1, 0, 1}) ==
        Values{0, 0.5, 1});
  CHECK(gradient([](const Tensor& x) { return pow(x, 0); }, {0, 2}) == Values{0, 0});
  CHECK(gradient([](const Tensor& x) { return pow(x, 1); }, {0, 2}) == Values{1, 1});
  CHECK(gradient([](const Tensor& x) { return pow(x, 2); }, {0, 2}) == Values{0, 4});
  CHECK(gradient([](const Tensor& x) { return pow(x, tensor({0, 2}, {kFloat64})); }, {0, 0}) == Values{0, 0});
  CHECK(gradient([](const Tensor& e) { return pow(tensor({0, 1}, {kFloat64}), e); }, {2, 2}) == Values{0, 0});
  // The second derivative of x^1 at 0 is 0, not 0 * inf.
  const Tensor x = tensor({0, 2}, {kFloat64, kCPU, true});
  const Tensor g = autograd::grad({sum(pow(x, 1))}, {x}, {}, true, true)[0];
  CHECK(autograd::grad({sum(g)}, {x})[0].to_vector() == Values{0, 0});
}

TEST_CASE("integers and bool") {
  const Tensor a = tensor({-7, 7, -7, 7, 0}, {kInt32}), b = tensor({2, 2, -2, -2, 5}, {kInt64});
  using Values = std::vector<double>;
  CHECK(div(a, b, "trunc").to_vector() == Values{-3, 3, 3, -3, 0});
  CHECK(div(a, b, "floor").to_vector() == Values{-4, 3, 3, -4, 0});
  CHECK(fmod(a, b).to_vector() == Values{-1, 1, -1, 1, 0});
  CHECK(remainder(a, b).to_vector() == Values{1, 1, -1, -1, 0});
  CHECK(remainder(a, b).dtype() == kInt64);
  CHECK(div(a, b).dtype() == kFloat32);
  CHECK(exp(b).dtype() == kFloat32);
  CHECK(abs(a).to_vector() == Values{7, 7, 7, 7, 0});
  CHECK(sign(a).to_vector() == Values{-1, 1, -1, 1, 0});
  CHECK(maximum(a, b).to_vector() == Values{2, 7, -2, 7, 5});
  CHECK(floor(a).dtype() == kInt32);
  CHECK(round(a, 2).to_vector() == a.to_vector());
  CHECK(pow(a, 2).to_vector() == Values{49, 49, 49, 49, 0});
  CHECK(pow(tensor({2, -1, 1, 3}, {kInt64}), tensor({-1, -3, -5, 4}, {kInt64})).to_vector() ==
        Values{0, -1, 1, 81});
  CHECK(pow(a, 0.5).dtype() == kFloat32);
  CHECK(clamp(a, -1, 3).to_vector() == Values{-1, 3, -1, 3, 0});
  CHECK(clamp(a, -1).to_vector() == Values{-1, 7, -1, 7, 0});
  CHECK(clamp(a, -1.5).dtype() == kFloat32);
  CHECK(isfinite(a).to_vector() == Values(5, 1.0));
  CHECK(logical_not(a).to_vector() == Values{0, 0, 0, 0, 1});
  CHECK(addcmul(b, b, b, 2).to_vector() == Values{10, 10, 6, 6, 55});
  CHECK(neg(tensor({1}, {kUInt8})).to_vector() == Values{255});
  CHECK(add(tensor({1, 0}, {kBool}), tensor({1, 0}, {kBool})).to_vector() == Values{1, 0});
  CHECK(lt(a, 0.5).to_vector() == Values{1, 0, 1, 0, 1});
  CHECK(where(gt(a, 0), a, b).dtype() == kInt64);
  const int64_t big = std::numeric_limits<int64_t>::min();
  CHECK(div(full({1}, big, kInt64), full({1}, -1, kInt64), "trunc").item<int64_t>() == big);
}

TEST_CASE("promotion and the dtype of results") {
  const Tensor h = ones({2}, kFloat16), b = ones({2}, kBFloat16), f = ones({2}), d0 = full({}, 2.0, kFloat64),
               i = ones({2}, kInt64);
  CHECK(maximum(h, b).dtype() == kFloat32);
  CHECK(maximum(f, d0).dtype() == kFloat32);
  CHECK(atan2(i, i).dtype() == kFloat32);
  CHECK(pow(h, 2.5).dtype() == kFloat16);
  CHECK(pow(i, h).dtype() == kFloat16);
  CHECK(where(ones({2}, kBool), h, 2.5).dtype() == kFloat16);
  CHECK(where(ones({2}, kBool), 1.5, 2.5).dtype() == kFloat32);
  CHECK(where(ones({2}, kBool), 1.5, 2.5).to_vector() == std::vector<double>{1.5, 1.5});
  CHECK(exp(h).dtype() == kFloat16);
  CHECK(eq(h, f).dtype() == kBool);
  CHECK(lerp(h, h, 0.5).dtype() == kFloat16);
}

TEST_CASE("the gradient of a conversion is converted back") {
  const Tensor x = tensor({1, 2}, {kFloat64}).requires_grad_(), g = tensor({3, -4}, {kFloat32});
  const Tensor found = autograd::grad({to(x, kFloat32)}, {x}, {g})[0];
  CHECK(found.dtype() == kFloat64);
  CHECK(found.to_vector() == std::vector<double>{3, -4});
}

TEST_CASE("small floats compute in float32 and round once") {
  for (ScalarType dtype : {kFloat16, kBFloat16}) {
    const Tensor x = input({300}, 0.1, 3).detach().to(dtype), wide = x.to(kFloat32);
    CHECK(log(x).to_vector() == log(wide).to(dtype).to_vector());
    CHECK(addcdiv(x, x, x + 1, 3).to_vector() ==
          addcdiv(wide, wide, (x + 1).to(kFloat32), 3).to(dtype).to_vector());
  }
}

// All signs and exponents, infinities and NaN among them, and the lower halves at which rounding turns.
TEST_CASE("a tensor is rounded to bfloat16 as a number is") {
  const uint32_t lows[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  const Tensor x = empty({6, 65536});
  float* const numbers = x.data_ptr<float>();
  for (uint32_t i = 0; i < 6 * 65536; ++i)
    numbers[i] = std::bit_cast<float>(i % 65536 << 16 | lows[i / 65536]);
  const Tensor rounded = to(x, kBFloat16), apart = to(x.t(), kBFloat16).contiguous().t();
  int64_t wrong = 0;
  for (uint32_t i = 0; i < 6 * 65536; ++i) {
    const BFloat16 want(numbers[i]);
    wrong += rounded.data_ptr<BFloat16>()[i].bits != want.bits;
    wrong += apart.data_ptr<BFloat16>()[i % 65536 * 6 + i / 65536].bits != want.bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE("an element has the same bits in any layout") {
  const Tensor x = input({37, 3}).detach().to(kFloat32), y = input({37, 3}, 0.1, 2, 3).detach().to(kFloat32);
  const Tensor xt = x.t().contiguous().t(), yt = y.t().contiguous().t();
  CHECK(tan(xt).to_vector() == tan(x).to_vector());
  CHECK(atan2(xt, y).to_vector() == atan2(x, y).to_vector());
  CHECK(where(gt(xt, 0), yt, x).to_vector() == where(gt(x, 0), y, x).to_vector());
  const Tensor row = x.select(0, 0);
  CHECK(hypot(expand(row, {37, 3}), y).to_vector() == hypot(row, y).to_vector());
}

TEST_CASE("no elements, no dims") {
  const Tensor none = zeros({0, 3});
  CHECK(exp(none).sizes() == IntArray{0, 3});
  CHECK(where(gt(none, 0), none, 1.0).sizes() == IntArray{0, 3});
  CHECK(clamp(none, none, none).sizes() == IntArray{0, 3});
  CHECK(maximum(none, ones({3})).sizes() == IntArray{0, 3});
  const Tensor x = full({}, 4.0);
  CHECK(sqrt(x).item<double>() == 2);
  CHECK(atan2(x, x).dim() == 0);
}

TEST_CASE("infinities and NaN") {
  const Tensor x = tensor({kNan, kInf, -kInf, 0, 1}, {kFloat64});
  using Values = std::vector<double>;
  CHECK(isnan(x).to_vector() == Values{1, 0, 0, 0, 0});
  CHECK(isinf(x).to_vector() == Values{0, 1, 1, 0, 0});
  CHECK(isfinite(x).to_vector() == Values{0, 0, 0, 1, 1});
  CHECK(nan_to_num(x, 5.0, 6.0, 7.0).to_vector() == Values{5, 6, 7, 0, 1});
  CHECK(nan_to_num(x.to(kFloat16)).to_vector() == Values{0, 65504, -65504, 0, 1});
  CHECK(sign(x).to_vector() == Values{0, 1, -1, 0, 1});
  CHECK(logical_and(x, x).to_vector() == Values{1, 1, 1, 0, 1});
  const Tensor two = full({5}, 2.0, kFloat64);
  for (const Tensor& y :
       {maximum(x, two), maximum(two, x), minimum(x, two), clamp(x, 0.0, 1.0), clamp(x, two)})
    CHECK(std::isnan(y.to_vector()[0]));
  CHECK(logaddexp(x, x).to_vector()[1] == kInf);
  CHECK(logaddexp(x, x).to_vector()[2] == -kInf);
  CHECK(clamp(two, 3.0, 1.0).to_vector()[0] == 1);
  CHECK(div(two, full({5}, 0.0, kFloat64), "floor").to_vector()[0] == kInf);
  CHECK(div(full({1}, -7.0), full({1}, 2.0), "floor").item<double>() == -4);
}

TEST_CASE("round to decimals") {
  const Tensor x = tensor({1.25, -2.5, 0.5, 1234.5}, {kFloat64});
  using Values = std::vector<double>;
  CHECK(round(x).to_vector() == Values{1, -2, 0, 1234});
  CHECK(round(x, 1).to_vector() == Values{1.2, -2.5, 0.5, 1234.5});
  CHECK(round(x, -2).to_vector() == Values{0, 0, 0, 1200});
}

// True when a write into `saved` between forward and backward is noticed.
bool is_saved(const Tensor& saved, const Tensor& result) {
  saved.detach().mul_(1.0);
  try {
    sum(result).backward();
  } catch (const Error& e) {
    return e.category() == Category::version_mismatch;
  }
  return false;
}

TEST_CASE("what is saved") {
  const Tensor x = input({3}, 0.2, 0.8), y = input({3}, 0.2, 0.8, 4), constant = y.detach().clone(),
               condition = gt(x, 0.5);
  CHECK(is_saved(x, sin(x)));
  CHECK(is_saved(x, pow(x, 3)));
  CHECK(is_saved(x, clamp(x, 0.0, 1.0)));
  CHECK_FALSE(is_saved(x, exp(x)));
  CHECK_FALSE(is_saved(x, reciprocal(x)));
  for (const auto& f : {+[](const Tensor& a) { return exp(a); }, +[](const Tensor& a) { return rsqrt(a); },
                        +[](const Tensor& a) { return tan(a); }}) {
    const Tensor result = f(x);
    CHECK(is_saved(result, result * 1));
  }
  CHECK(is_saved(x, atan2(x, constant)));
  CHECK(is_saved(constant, atan2(x, constant)));
  CHECK_FALSE(is_saved(x, where(condition, x, y)));
  CHECK_FALSE(is_saved(x, lerp(x, y, 0.5)));
  CHECK_FALSE(is_saved(x, addcmul(y, x, constant)));
  CHECK(is_saved(constant, addcmul(y, x, constant)));
  CHECK_FALSE(is_saved(x, floor(x)));
}

TEST_CASE("errors") {
  const Tensor a = ones({2, 3}), i = ones({3}, kInt64), z = zeros({3}, kInt32);
  CHECK(category_of([&] { maximum(a, ones({2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { where(a, a, a); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { where(gt(a, 0), a, ones({4})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { lerp(a, a.to(kFloat64), 0.5); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { div(a, a, "ceil"); }) == Category::bad_argument);
  CHECK(category_of([&] { clamp(a); }) == Category::bad_argument);
  CHECK(category_of([&] { pow(i, -1); }) == Category::bad_argument);
  CHECK(category_of([&] { div(i, z, "floor"); }) == Category::bad_argument);
  CHECK(category_of([&] { remainder(i, 0); }) == Category::bad_argument);
  CHECK(category_of([&] { neg(ones({2}, kBool)); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { sub(ones({2}, kBool), ones({2}, kBool)); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { addcdiv(i, i, i); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { frac(i); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { sin(ones({2}).to(kFloat8_e5m2)); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { maximum(ones({2}).to(kFloat8_e5m2), a); }) == Category::dtype_mismatch);
  std::string text;
  CHECK(category_of([&] { pow(ones({2}).to(kFloat8_e5m2), -1); }, &text) == Category::dtype_mismatch);
  CHECK_THAT(text, Catch::StartsWith("pow:"));  // not the op of a number in the exponent
}

}  // namespace
}  // namespace retrograd
