// Vec<float> and Vec<double> of cpu/vec/vec.h and the functions of cpu/vec/vec_math.h, at the instruction set level
// that this file is compiled for: results of the basic operations, errors in ulp against long double, special
// values against libm.
//
// Not tested here: speed; that levels agree with each other (they need not); arguments of every float (ranges
// are sampled).
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "cpu/vec/vec_math.h"

namespace retrograd::cpu::RG_ISA {
namespace {

using Long = long double;

// One generic lambda is both the function under test, found next to Vec, and its reference, found in std.
using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atan2, std::atanh, std::ceil,
    std::copysign, std::cos, std::cosh, std::erf, std::erfc, std::exp, std::exp2, std::expm1, std::floor,
    std::fmod, std::hypot, std::lgamma, std::log, std::log10, std::log1p, std::log2, std::nearbyint, std::pow,
    std::sin, std::sinh, std::sqrt, std::tan, std::tanh, std::trunc;

template <class T>
constexpr const char* type_name = sizeof(T) == 4 ? "float" : "double";

template <class T>
Vec<T> ascending(T first, T step) {
  T values[Vec<T>::size];
  for (int i = 0; i < Vec<T>::size; ++i) values[i] = first + i * step;
  return Vec<T>::load(values);
}

/// |got - want| in units of the last place of T near want; infinite if only one of them is NaN or infinite.
template <class T>
double error_in_ulp(T got, Long want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) && std::isnan(rounded) ? 0 : HUGE_VAL;
  if (std::isinf(got) || std::isinf(rounded)) return got == rounded ? 0 : HUGE_VAL;
  int exponent;
  std::frexp(rounded, &exponent);
  using Limits = std::numeric_limits<T>;
  const int last_place = std::max(exponent - Limits::digits, Limits::min_exponent - Limits::digits);
  return static_cast<double>(std::fabs(static_cast<Long>(got) - want) / std::ldexp(Long{1}, last_place));
}

/// Where arguments are drawn from: evenly, or evenly in log2 of the magnitude with either sign.
struct Range {
  double low;
  double high;
  bool logarithmic = false;
};

template <class T>
std::vector<T> sample(Range range, int count) {
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> uniform(range.low, range.high);
  std::vector<T> values(count);
  for (T& value : values) {
    const double u = uniform(generator);
    value = static_cast<T>(!range.logarithmic ? u : std::exp2(u) * (generator() % 2 ? 1 : -1));
  }
  return values;
}

constexpr int kSamples = 1 << 14;

template <class T, class F, class Reference>
void check_range(const std::string& name, double bound, F f, Reference reference, Range range) {
  double worst = 0;
  T worst_x = 0;
  for (const T x : sample<T>(range, kSamples)) {
    T results[Vec<T>::size];
    f(Vec<T>(x)).store(results);
    const double error = error_in_ulp(results[0], reference(static_cast<Long>(x)));
    if (!(error <= worst)) {
      worst = error;
      worst_x = x;
    }
  }
  INFO(name << " of " << type_name<T> << " in [" << range.low << ", " << range.high << "], worst at "
            << worst_x);
  CHECK(worst <= bound);
}

/// Zeros, subnormals, thresholds of the implementations, ends of the range, infinities and NaN, in both
/// signs.
template <class T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           Limits::denorm_min(),
                           Limits::min() / 4,
                           Limits::min(),
                           Limits::max(),
                           Limits::infinity(),
                           Limits::quiet_NaN()};
  for (const double x :
       {1e-10, 0.25,  0.5,   0.625, 0.92,  1.0,   1.5,    2.0,    3.0,    19.0,   20.0,  26.6,  27.4,
        40.0,  88.0,  88.7,  88.8,  89.4,  90.0,  103.9,  104.0,  127.0,  128.0,  149.0, 150.0, 170.0,
        709.7, 709.8, 710.4, 711.0, 745.0, 746.0, 1023.0, 1024.0, 1074.0, 1075.0, 1e5,   1.1e5, 1e30}) {
    values.push_back(static_cast<T>(x));
  }
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}

/// Equal as to NaN, infinity and the sign of zero, and within a few ulp otherwise.
template <class T>
bool agrees(T got, T want) {
  if (want == 0 || got == 0)
    return got == want ? std::signbit(got) == std::signbit(want) : error_in_ulp<T>(got, want) <= 4;
  return error_in_ulp<T>(got, want) <= 8;
}

template <class T, class F, class Reference>
void check_special(const std::string& name, F f, Reference reference) {
  for (const T x : special_values<T>()) {
    const T got = f(Vec<T>(x)).v[0];
    const T want = static_cast<T>(reference(x));
    INFO(name << " of " << type_name<T> << " " << x << " is " << got << ", libm has " << want);
    CHECK(agrees(got, want));
  }
}

template <class T, class F>
void check_special(const std::string& name, F f) {
  check_special<T>(name, f, f);
}

template <class T, class F>
void check_special_pairs(const std::string& name, F f) {
  for (const T x : special_values<T>()) {
    for (const T y : special_values<T>()) {
      const T got = f(Vec<T>(x), Vec<T>(y)).v[0];
      const T want = static_cast<T>(f(x, y));
      if (agrees(got, want)) continue;
      FAIL_CHECK(name << " of " << type_name<T> << " " << x << ", " << y << " is " << got << ", libm has "
                      << want);
    }
  }
}

/// One function: its bounds in ulp for float and double, and the ranges where they are checked for both.
template <class F, class Reference>
void check_function(const std::string& name, double float_bound, double double_bound,
                    const std::vector<Range>& ranges, F f, Reference reference) {
  for (const Range& range : ranges) {
    check_range<float>(name, float_bound, f, reference, range);
    check_range<double>(name, double_bound, f, reference, range);
  }
  check_special<float>(name, f, reference);
  check_special<double>(name, f, reference);
}

template <class F>
void check_function(const std::string& name, double float_bound, double double_bound,
                    const std::vector<Range>& ranges, F f) {
  check_function(name, float_bound, double_bound, ranges, f, f);
}

template <class F>
void check_double_range(const std::string& name, double bound, Range range, F f) {
  check_range<double>(name, bound, f, f, range);
}

Long sigmoid_reference(Long x) { return 1 / (1 + std::exp(-x)); }

/// Asymptotic series after recurrence, reflected for negative arguments.
Long digamma_reference(Long x) {
  const Long pi = 3.14159265358979323846264338327950288L;
  if (x < 0) return digamma_reference(1 - x) - pi / std::tan(pi * (x - std::round(x)));
  Long sum = 0;
  for (; x < 40; ++x) sum -= 1 / x;
  const Long z = 1 / (x * x);
  const Long series = z * (1 / 12.0L - z * (1 / 120.0L - z * (1 / 252.0L - z * (1 / 240.0L - z / 132))));
  return sum + std::log(x) - 0.5L / x - series;
}

Long erfinv_reference(Long y) {
  const Long two_over_root_pi = 1.12837916709551257389615890312154517L;
  Long low = -8, high = 8;
  for (int i = 0; i < 20; ++i) (std::erf((low + high) / 2) < y ? low : high) = (low + high) / 2;
  Long x = (low + high) / 2;
  for (int i = 0; i < 8; ++i) {
    const Long residual =
        std::fabs(y) < 0.5L ? std::erf(x) - y : (y < 0 ? std::erfc(-x) - (1 + y) : (1 - y) - std::erfc(x));
    x -= residual / (two_over_root_pi * std::exp(-x * x));
  }
  return x;
}

}  // namespace

TEST_CASE("what a lane gives does not depend on the others") {
  const auto check_lanes = [](auto x, auto other, auto f) {
    using T = decltype(x);
    INFO(x << " beside " << other);
    const T alone = f(Vec<T>(x)).v[0];
    for (int lane = 0; lane < Vec<T>::size; ++lane) {
      Vec<T> lanes(other);
      lanes.v[lane] = x;
      const T beside = f(lanes).v[lane];
      CHECK(alone == beside);
      CHECK(std::signbit(alone) == std::signbit(beside));
    }
  };
  const auto check = [&](const char* name, auto f) {
    INFO(name);
    // `end`: where other formulas begin.
    const auto check_type = [&](auto end, auto far) {
      using T = decltype(end);
      const T inf = std::numeric_limits<T>::infinity();
      for (const T x : {T{-0.1}, T{-0.0}, T{0.3}, T{0.625}, T{0.7}, T{20}, end, std::nextafter(end, inf),
                        std::nextafter(end, T{0})})
        for (const T other : {T{0.5}, far, -far, inf, -inf, std::numeric_limits<T>::quiet_NaN()}) {
          check_lanes(x, other, f);
          check_lanes(-x, other, f);
        }
    };
    check_type(ExpLogConstants<float>::exp_normal, 100.0f);
    check_type(ExpLogConstants<double>::exp_normal, 740.0);
  };
  check("exp", [](auto x) { return exp(x); });
  check("sigmoid", [](auto x) { return sigmoid(x); });
  check("tanh", [](auto x) { return tanh(x); });
}

TEST_CASE("exponentials") {
  check_function("exp", 1.0, 1.0, {{-1, 1}, {-103.9, 88.7}, {-100, -1, true}}, [](auto x) { return exp(x); });
  check_double_range("exp", 1.0, {-745, 709.7}, [](auto x) { return exp(x); });
  check_function("exp2", 1.1, 1.1, {{-1, 1}, {-149, 127.9}}, [](auto x) { return exp2(x); });
  check_double_range("exp2", 1.1, {-1074, 1023.9}, [](auto x) { return exp2(x); });
  check_function("expm1", 0.51, 1.7, {{-2, 2}, {-50, 88.7}, {-100, -1, true}},
                 [](auto x) { return expm1(x); });
  const auto own_sigmoid = [](auto x) { return sigmoid(x); };
  check_function("sigmoid", 2.3, 2.3, {{-2, 2}, {-103.9, 20}, {-100, -1, true}}, own_sigmoid,
                 sigmoid_reference);
}

TEST_CASE("logarithms") {
  const std::vector<Range> ranges = {{0.5, 2}, {0, 1000}, {-149, 119, true}};
  check_function("log", 1.0, 1.0, ranges, [](auto x) { return log(x); });
  check_function("log2", 1.8, 1.8, ranges, [](auto x) { return log2(x); });
  check_function("log10", 0.51, 1.8, ranges, [](auto x) { return log10(x); });
  check_double_range("log", 1.0, {-1074, 1023, true}, [](auto x) { return log(x); });
  check_function("log1p", 1.5, 1.0, {{-1, 2}, {-126, 0, true}, {0, 1e10}}, [](auto x) { return log1p(x); });
}

TEST_CASE("hyperbolic functions") {
  check_function("sinh", 0.51, 1.8, {{-2, 2}, {-89.4, 89.4}, {-100, 0, true}},
                 [](auto x) { return sinh(x); });
  check_double_range("sinh", 1.8, {-710.4, 710.4}, [](auto x) { return sinh(x); });
  check_function("cosh", 0.51, 1.6, {{-2, 2}, {-89.4, 89.4}}, [](auto x) { return cosh(x); });
  check_function("tanh", 1.5, 1.5, {{-2, 2}, {-21, 21}, {-126, 0, true}}, [](auto x) { return tanh(x); });
  check_function("asinh", 0.51, 1.8, {{-2, 2}, {-120, 120, true}}, [](auto x) { return asinh(x); });
  check_function("acosh", 0.51, 2.3, {{1, 3}, {1, 1e12}}, [](auto x) { return acosh(x); });
  check_function("atanh", 1.9, 2.0, {{-1, 1}, {-100, 0, true}}, [](auto x) { return atanh(x); });
}

TEST_CASE("circular functions") {
  const std::vector<Range> ranges = {{-4, 4}, {-1e5, 1e5}, {-100, 60, true}};
  check_function("sin", 1.7, 1.0, ranges, [](auto x) { return sin(x); });
  check_function("cos", 1.7, 1.0, ranges, [](auto x) { return cos(x); });
  check_function("tan", 0.51, 2.2, ranges, [](auto x) { return tan(x); });
  check_function("asin", 1.2, 2.3, {{-1, 1}, {-120, 0, true}}, [](auto x) { return asin(x); });
  check_function("acos", 1.2, 1.5, {{-1, 1}, {-120, 0, true}}, [](auto x) { return acos(x); });
  check_function("atan", 1.4, 1.8, {{-3, 3}, {-100, 100, true}}, [](auto x) { return atan(x); });
}

TEST_CASE("sin and cos next to multiples of pi/2") {
  for (int n = 1; n < 50000; n = n * 3 / 2 + 1) {
    const double x = n * 0x1.921fb54442d18p+0;
    CHECK(error_in_ulp(sin(Vec<double>(x)).v[0], std::sin(static_cast<Long>(x))) <= 1.0);
    CHECK(error_in_ulp(cos(Vec<double>(x)).v[0], std::cos(static_cast<Long>(x))) <= 1.0);
    const float narrow_x = static_cast<float>(x);
    CHECK(error_in_ulp(sin(Vec<float>(narrow_x)).v[0], std::sin(static_cast<Long>(narrow_x))) <= 1.7);
    CHECK(error_in_ulp(cos(Vec<float>(narrow_x)).v[0], std::cos(static_cast<Long>(narrow_x))) <= 1.7);
  }
}

TEST_CASE("error functions") {
  check_function("erf", 1.6, 1.5, {{-1, 1}, {-6, 6}, {-100, 0, true}}, [](auto x) { return erf(x); });
  check_function("erfc", 0.51, 3.2, {{-1, 1}, {-4, 10.5}}, [](auto x) { return erfc(x); });
  check_range<float>(
      "erfc", 0.51, [](auto x) { return erfc(x); }, [](Long x) { return std::erfc(x); }, {9.1, 10.3});
  check_double_range("erfc", 3.2, {0, 27.2}, [](auto x) { return erfc(x); });
  // Relative, with the rounding of x^2 in the exponent.
  const auto check_below = []<class T>(T x, double bound, double unit, double least) {
    const Long want = std::erfc(-static_cast<Long>(x) * 0.7071067811865475244008443621048490393L) / 2;
    const Long found = static_cast<Long>(normal_cdf(Vec<T>(x)).v[0]), square = static_cast<Long>(x) * x;
    CHECK(std::fabs(found - want) <= (bound + square * unit) * want + least);
  };
  for (double x = -14; x < 14; x += 0.0078) {
    check_below(x, 0x1p-50, 0x1p-52, 0x1p-1022);
    check_below(static_cast<float>(x), 0x1p-21, 0x1p-23, 0x1p-126);
  }
  CHECK(normal_cdf(Vec<float>(-HUGE_VALF)).v[0] == 0);
  CHECK(normal_cdf(Vec<float>(HUGE_VALF)).v[0] == 1);
  CHECK(std::isnan(normal_cdf(Vec<float>(NAN)).v[0]));
  const auto own_erfinv = [](auto x) { return erfinv(x); };
  for (const Range range : {Range{-0.99, 0.99}, Range{0.99, 0.999999}, Range{-100, -1, true}}) {
    check_range<float>("erfinv", 0.51, own_erfinv, erfinv_reference, range);
    check_range<double>("erfinv", 4, own_erfinv, erfinv_reference, range);
  }
  CHECK(erfinv(Vec<double>(1)).v[0] == HUGE_VAL);
  CHECK(erfinv(Vec<float>(-1)).v[0] == -HUGE_VALF);
  CHECK(std::isnan(erfinv(Vec<double>(1.5)).v[0]));
  CHECK(std::isnan(erfinv(Vec<float>(1.5f)).v[0]));
  CHECK(std::isnan(erfinv(Vec<float>(NAN)).v[0]));
  CHECK(std::signbit(erfinv(Vec<float>(-0.0f)).v[0]));
}

TEST_CASE("gamma functions") {
  const auto log_gamma = [](auto x) { return lgamma(x); };
  check_range<double>("lgamma", 6, log_gamma, log_gamma, {3, 1000});
  const std::vector<Range> ranges = {{0, 3},    {0.999, 1.001}, {1.999, 2.001},
                                     {3, 1000}, {-20, 0},       {-149, 119, true}};
  for (const Range range : ranges) check_range<float>("lgamma", 0.52, log_gamma, log_gamma, range);
  CHECK(lgamma(Vec<float>(0.0f)).v[0] == HUGE_VALF);
  CHECK(lgamma(Vec<float>(-0.0f)).v[0] == HUGE_VALF);
  CHECK(lgamma(Vec<float>(-3)).v[0] == HUGE_VALF);
  CHECK(lgamma(Vec<float>(-HUGE_VALF)).v[0] == HUGE_VALF);
  CHECK(lgamma(Vec<float>(3e38f)).v[0] == HUGE_VALF);
  CHECK(std::isnan(lgamma(Vec<float>(std::nanf(""))).v[0]));
  for (const double x : sample<double>({-20, 100}, 1000)) {
    const Long want = digamma_reference(x);
    // Next to a negative integer the slope of pi / tan(pi x) turns the rounding of 1 - x into a larger error.
    CHECK(std::fabs(digamma(Vec<double>(x)).v[0] - want) <= 4e-15L * std::max(Long{1}, std::fabs(want)));
    CHECK(std::fabs(digamma(Vec<float>(x)).v[0] - digamma_reference(static_cast<float>(x))) <=
          1e-7L * std::max(Long{1}, std::fabs(want)));
  }
  CHECK(digamma(Vec<double>(0.0)).v[0] == -HUGE_VAL);
  CHECK(digamma(Vec<double>(-0.0)).v[0] == HUGE_VAL);
  CHECK(std::isnan(digamma(Vec<float>(-3)).v[0]));
}

TEST_CASE("pow") {
  for (const float exponent : {-2.0f, 0.5f, 2.7f, 3.0f, -0.1f, 12.0f}) {
    const auto power = [=](Vec<float> x) { return pow(x, Vec<float>(exponent)); };
    const auto reference = [=](Long x) { return std::pow(x, static_cast<Long>(exponent)); };
    check_range<float>("pow", 0.51, power, reference, {0, 100});
    check_range<float>("pow", 0.51, power, reference, {-20, 20, true});
  }
  for (const float base : {0.3f, 0.999f, 1.7f, 20.0f}) {
    const auto power = [=](Vec<float> y) { return pow(Vec<float>(base), y); };
    check_range<float>("pow", 0.51, power, [=](Long y) { return std::pow(static_cast<Long>(base), y); },
                       {-150, 150});
  }
}

TEST_CASE("special pairs of arguments") {
  check_special_pairs<float>("pow", [](auto x, auto y) { return pow(x, y); });
  check_special_pairs<double>("pow", [](auto x, auto y) { return pow(x, y); });
  check_special_pairs<float>("atan2", [](auto x, auto y) { return atan2(x, y); });
  check_special_pairs<double>("atan2", [](auto x, auto y) { return atan2(x, y); });
  check_special_pairs<float>("hypot", [](auto x, auto y) { return hypot(x, y); });
  check_special_pairs<double>("hypot", [](auto x, auto y) { return hypot(x, y); });
  check_special_pairs<float>("fmod", [](auto x, auto y) { return fmod(x, y); });
  check_special_pairs<double>("fmod", [](auto x, auto y) { return fmod(x, y); });
}

TEST_CASE("two arguments") {
  const std::vector<double> xs = sample<double>({-5, 5}, 2000);
  const std::vector<double> ys = sample<double>({-40, 40, true}, 2000);
  for (size_t i = 0; i < xs.size(); ++i) {
    const Vec<double> x = xs[i], y = ys[i];
    CHECK(error_in_ulp(atan2(x, y).v[0], std::atan2(static_cast<Long>(xs[i]), static_cast<Long>(ys[i]))) <=
          2.5);
    CHECK(error_in_ulp(hypot(x, y).v[0], std::hypot(static_cast<Long>(xs[i]), static_cast<Long>(ys[i]))) <=
          1.3);
  }
  CHECK(remainder(Vec<float>(5.5f), Vec<float>(-2)).v[0] == -0.5f);
  CHECK(remainder(Vec<double>(-7), Vec<double>(3)).v[0] == 2);
  CHECK(remainder(Vec<double>(6), Vec<double>(-3)).v[0] == 0);
}

TEMPLATE_TEST_CASE("arithmetic, comparison and selection", "", float, double) {
  using V = Vec<TestType>;
  const V x = ascending<TestType>(-1, TestType(0.75));
  const auto formula = [](auto v) { return select(v > 0, 1 - v * 0.5, -v / 4 + abs(v)); };
  TestType results[V::size];
  formula(x).store(results);
  for (int i = 0; i < V::size; ++i) {
    const TestType s = x.v[i];
    CHECK(results[i] == (s > 0 ? 1 - s * TestType(0.5) : -s / 4 + std::fabs(s)));
  }
  CHECK(any(x < 0));
  CHECK_FALSE(any(x < -1));
  CHECK(all(x >= -1));
  CHECK_FALSE(all(x > -1));
  CHECK(all(!(x == 100)));
  CHECK(all((x < 0) ^ (x >= 0)));
  CHECK(std::signbit(V(TestType(-0.0)).v[V::size - 1]));
}

TEMPLATE_TEST_CASE("rounding, roots and signs follow libm", "", float, double) {
  check_special<TestType>("floor", [](auto x) { return floor(x); });
  check_special<TestType>("ceil", [](auto x) { return ceil(x); });
  check_special<TestType>("trunc", [](auto x) { return trunc(x); });
  check_special<TestType>("nearbyint", [](auto x) { return nearbyint(x); });
  check_special<TestType>("sqrt", [](auto x) { return sqrt(x); });
  check_special_pairs<TestType>("copysign", [](auto x, auto y) { return copysign(x, y); });
  for (const TestType x : sample<TestType>({-60, 60, true}, 2000)) {
    CHECK(nearbyint(Vec<TestType>(x)).v[0] == std::nearbyint(x));
    CHECK(floor(Vec<TestType>(x)).v[0] == std::floor(x));
    CHECK(ceil(Vec<TestType>(x)).v[0] == std::ceil(x));
  }
}

TEMPLATE_TEST_CASE("NaN goes through maximum, minimum and the reductions", "", float, double) {
  using V = Vec<TestType>;
  const TestType nan = std::numeric_limits<TestType>::quiet_NaN();
  CHECK(std::isnan(maximum(V(nan), V(1)).v[0]));
  CHECK(std::isnan(maximum(V(1), V(nan)).v[0]));
  CHECK(std::isnan(minimum(V(nan), V(1)).v[0]));
  CHECK(std::isnan(minimum(V(1), V(nan)).v[0]));
  CHECK(maximum(V(2), V(-3)).v[0] == 2);
  CHECK(minimum(V(2), V(-3)).v[0] == -3);
  CHECK(std::isnan(clamp(V(nan), 0, 1).v[0]));
  CHECK(clamp(V(7), 0, 1).v[0] == 1);
  for (int lane = 0; lane < V::size; ++lane) {
    V x = ascending<TestType>(1, 1);
    CHECK(reduce_max(x) == V::size);
    CHECK(reduce_min(x) == 1);
    CHECK(reduce_add(x) == V::size * (V::size + 1) / 2);
    x.v[lane] = nan;
    CHECK(std::isnan(reduce_max(x)));
    CHECK(std::isnan(reduce_min(x)));
  }
}

TEST_CASE("a sum of lanes folds halves onto each other") {
  // 2^24 + 1 rounds back to 2^24: the order of the additions shows in the result.
  float lanes[Vec<float>::size] = {};
  lanes[0] = 0x1p24f;
  lanes[1] = 1;
  lanes[Vec<float>::size - 1] = 1;
  CHECK(reduce_add(Vec<float>::load(lanes)) == 0x1p24f + 2);
}

TEST_CASE("float vectors widen and narrow") {
  const Vec<float> x = ascending<float>(0.1f, 1.3f);
  const WidePair wide = widen(x);
  const Vec<float> back = narrow(wide);
  for (int i = 0; i < Vec<float>::size; ++i) {
    const int half = Vec<double>::size;
    CHECK((i < half ? wide.low.v[i % half] : wide.high.v[i % half]) == static_cast<double>(x.v[i]));
    CHECK(back.v[i] == x.v[i]);
  }
}

}  // namespace retrograd::cpu::RG_ISA
