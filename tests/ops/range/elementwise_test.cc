// Elementwise functions over the range of each dtype.
#include <catch2/catch.hpp>

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "tests/ops/range/walk.h"

namespace range {
namespace {

Numbers join(Numbers a, const Numbers& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
// Both signs.
Numbers signs(const Numbers& x) {
  return join(x, each(x, [](double v) { return -v; }));
}
// 1 - 10^-k for k from 1.
Numbers below_one(int most) {
  return each(positive_powers(-most, -1, 1), [](double v) { return 1 - v; });
}
Numbers above_one(int most) {
  return each(positive_powers(-most, -1, 1), [](double v) { return 1 + v; });
}
const Numbers kMiddle = signs({1.3, 2.1, 3.7, 5.2, 6.6, 8.4}),
              kTail = signs({12.5, 17.3, 20.4, 33.1, 40.4108, 71.9, 88.7, 103.3, 300});

template <class F>
Function of(const F& f) {
  return [&f](const Tensors& x) { return f(x[0]); };
}

void check_all(const std::vector<Walk>& walks) {
  for (const Walk& walk : walks) check(walk);
}

// All pairs of two lists.
std::vector<Numbers> pairs(const Numbers& a, const Numbers& b) {
  std::vector<Numbers> both(2);
  for (double x : a)
    for (double y : b) both[0].push_back(x), both[1].push_back(y);
  return both;
}

}  // namespace

TEST_CASE("powers, roots and logarithms over the range") {
  std::vector<Walk> walks{{"abs", of(rg::abs), {powers(-37, 37)}},
                          {"square", of(rg::square), {powers(-37, 37)}},
                          {"log", of(rg::log), {positive_powers(-37, 37)}},
                          {"log2", of(rg::log2), {positive_powers(-37, 37)}},
                          {"log10", of(rg::log10), {positive_powers(-37, 37)}},
                          {"log1p",
                           of(rg::log1p),
                           {join(positive_powers(-37, 37), each(below_one(6), [](double v) { return -v; }))}},
                          {"sqrt", of(rg::sqrt), {positive_powers(-37, 37)}},
                          {"rsqrt", of(rg::rsqrt), {positive_powers(-37, 37)}},
                          {"reciprocal", of(rg::reciprocal), {powers(-37, 36)}}};
  for (const double e : {2.0, 3.0, 4.0, -1.0, -2.0, 0.5, -0.5, 2.5, -1.7, 7.0})
    walks.push_back({"pow " + std::to_string(e),
                     [e](const Tensors& x) { return rg::pow(x[0], e); },
                     {positive_powers(-12, 12)}});
  walks.push_back(
      {"pow 3 of negatives", [](const Tensors& x) { return rg::pow(x[0], 3.0); }, {powers(-12, 12)}});
  walks.push_back(
      {"pow 5 of negatives", [](const Tensors& x) { return rg::pow(x[0], 5.0); }, {powers(-7, 7)}});
  check_all(walks);
}

TEST_CASE("exponentials and the functions of circles and hyperbolas over the range") {
  const Numbers small = join(powers(-37, -1), kMiddle), unit = join(powers(-37, -1), signs(below_one(7)));
  check_all({
      {"exp", of(rg::exp), {small}},
      {"exp2", of(rg::exp2), {small}},
      {"expm1", of(rg::expm1), {join(powers(-37, -1), {1.3, 2.1, 5.2})}},
      {"sin", of(rg::sin), {small}},
      {"cos", of(rg::cos), {small}},
      {"tan", of(rg::tan), {join(powers(-37, -1), signs({0.3, 0.8, 1.3, 1.57, 1.5707, 1.570796}))}},
      {"asin", of(rg::asin), {unit}},
      {"acos", of(rg::acos), {unit}},
      {"atan", of(rg::atan), {powers(-37, 37)}},
      {"sinh", of(rg::sinh), {small}},
      {"cosh", of(rg::cosh), {small}},
      {"asinh", of(rg::asinh), {powers(-37, 37)}},
      {"acosh", of(rg::acosh), {join(above_one(7), positive_powers(0, 37))}},
      {"atanh", of(rg::atanh), {unit}},
  });
}

TEST_CASE("special functions over the range") {
  check_all({
      {"erf", of(rg::erf), {join(powers(-37, 37), kMiddle)}},
      {"erfc", of(rg::erfc), {join(powers(-37, 37), kMiddle)}},
      {"erfinv", of(rg::erfinv), {join(powers(-37, -1), signs(below_one(5)))}},
      {"lgamma", of(rg::lgamma), {positive_powers(-30, 30)}},
      {"digamma", of(rg::digamma), {positive_powers(-15, 15)}},
  });
}

TEST_CASE("activations over the range") {
  const Numbers all = join(join(powers(-37, 37), kMiddle), kTail);
  check_all({
      {"sigmoid", of(rg::sigmoid), {{-1.3, -2.1, -5.2, -8.4}}},
      {"sigmoid near 0",
       of(rg::sigmoid),
       {powers(-37, -1)},
       true,
       {},
       4,
       16,
       "",
       "1 - 2 y of a saved y near 1/2"},
      {"sigmoid far below 0",
       of(rg::sigmoid),
       {{-12.5, -20.4, -40.4108, -71.9}},
       true,
       {},
       4,
       16,
       "",
       "",
       false,
       {rg::kFloat32, rg::kBFloat16}},
      {"relu", of(rg::relu), {all}},
      {"leaky_relu", of(rg::leaky_relu), {all}},
      {"hardtanh", of(rg::hardtanh), {all}},
      {"hardsigmoid", of(rg::hardsigmoid), {all}},
      {"hardswish", of(rg::hardswish), {all}},
      {"softsign", of(rg::softsign), {all}},
      {"logsigmoid", of(rg::logsigmoid), {all}},
      {"silu", of(rg::silu), {all}},
      {"mish", of(rg::mish), {all}},
      {"softplus", of(rg::softplus), {all}},
      {"softplus of 5 x, threshold 90",
       [](const Tensors& x) { return rg::softplus(x[0], 5.0, 90.0); },
       {all},
       true,
       {},
       4,
       64},
      {"elu", [](const Tensors& x) { return rg::elu(x[0], 1.3); }, {all}},
      {"celu", [](const Tensors& x) { return rg::celu(x[0], 1.7); }, {all}, true, {}, 4, 64},
      {"gelu", [](const Tensors& x) { return rg::gelu(x[0]); }, {all}, true, {}, 4, 400},
      {"gelu tanh", [](const Tensors& x) { return rg::gelu(x[0], "tanh"); }, {all}, true, {}, 4, 400},
  });
}

TEST_CASE("functions of two and three numbers over the range") {
  const Numbers coarse = {-2.3e37, -4.1e20, -3.1e4, -170, -1.7, -2.9e-3, -3.7e-20, -2.3e-37,
                          2.3e37,  4.1e20,  3.1e4,  170,  1.7,  2.9e-3,  3.7e-20,  2.3e-37};
  const auto same_scale = [](double other) {
    std::vector<Numbers> both(2);
    both[0] = powers(-36, 36);
    both[1] = each(both[0], [other](double v) { return v * other; });
    return both;
  };
  check_all({
      {"mul", [](const Tensors& x) { return rg::mul(x[0], x[1]); }, pairs(coarse, coarse)},
      {"atan2", [](const Tensors& x) { return rg::atan2(x[0], x[1]); }, same_scale(0.7)},
      {"atan2 of equals", [](const Tensors& x) { return rg::atan2(x[0], x[1]); }, same_scale(1)},
      {"hypot", [](const Tensors& x) { return rg::hypot(x[0], x[1]); }, same_scale(-0.7)},
      {"logaddexp", [](const Tensors& x) { return rg::logaddexp(x[0], x[1]); }, same_scale(1)},
      {"div", [](const Tensors& x) { return rg::div(x[0], x[1]); }, same_scale(0.7)},
      {"maximum", [](const Tensors& x) { return rg::maximum(x[0], x[1]); }, same_scale(0.7)},
      {"addcdiv", [](const Tensors& x) { return rg::addcdiv(0.0 * x[0], x[0], x[1], 0.7); }, same_scale(0.7)},
  });
}

}  // namespace range
