// Special functions and shrinkage over the range of each dtype.
#include <catch2/catch.hpp>

#include "ops/composed.h"
#include "ops/float_ops.h"
#include "ops/shrinkage.h"
#include "ops/special.h"
#include "ops/unary.h"
#include "tests/ops/range/walk.h"

namespace range {
namespace {

Numbers join(Numbers a, const Numbers& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Numbers negated(const Numbers& x) {
  return each(x, [](double v) { return -v; });
}

const Numbers kMiddle{0.3, 0.9, 1.3, 2.1, 3.7, 5.2, 7.7, 8.4}, kFar{12.5, 17.3, 28.7, 31.2, 40.4108, 71.9};

template <class F>
Function of(const F& f) {
  return [&f](const Tensors& x) { return f(x[0]); };
}

// Two numbers, the second `ratio` times the first.
std::vector<Numbers> same_scale(double ratio) {
  const Numbers a = powers(-36, 36);
  return {a, each(a, [ratio](double v) { return v * ratio; })};
}

}  // namespace

TEST_CASE("error functions and the normal distribution over the range") {
  const Numbers small = powers(-37, -1), far = positive_powers(1, 36);
  for (const Walk& walk : std::vector<Walk>{
           {"entr", of(rg::special::entr), {positive_powers(-36, 36)}},
           {"erfcx", of(rg::special::erfcx), {join(join(small, kMiddle), join(kFar, far))}},
           {"ndtr", of(rg::special::ndtr), {join(small, {-3.7, -2.1, 1.3, 2.1})}},
           {"log_ndtr", of(rg::special::log_ndtr), {join(join(small, negated(kMiddle)), negated(kFar))}},
           {"ndtri", of(rg::special::ndtri), {{1e-6, 1.7e-3, 0.1, 0.3, 0.49, 0.7, 0.9, 0.99}}},
       })
    check(walk);
}

TEST_CASE("Bessel functions over the range") {
  const Numbers near = join(powers(-37, -1), kMiddle), all = join(join(near, kFar), positive_powers(2, 36));
  for (const Walk& walk : std::vector<Walk>{
           {"i0", of(rg::special::i0), {near}},
           {"i1", of(rg::special::i1), {near}},
           {"i0e", of(rg::special::i0e), {all}},
           {"i1e", of(rg::special::i1e), {all}},
       })
    check(walk);
}

TEST_CASE("sinc, logit and shrinkage over the range") {
  const Numbers near = join(powers(-37, -1), kMiddle), all = join(near, powers(0, 37));
  for (const Walk& walk : std::vector<Walk>{
           {"sinc", of(rg::sinc), {near}},
           {"logit",
            [](const Tensors& x) { return rg::logit(x[0]); },
            {join(positive_powers(-36, -1), {0.4, 0.499, 0.501, 0.6, 0.9, 0.99})}},
           {"tanhshrink", of(rg::tanhshrink), {all}},
           {"softshrink", [](const Tensors& x) { return rg::softshrink(x[0], 0.7); }, {all}},
           {"hardshrink", [](const Tensors& x) { return rg::hardshrink(x[0], 0.7); }, {all}},
           {"deg2rad", [](const Tensors& x) { return rg::deg2rad(x[0]); }, {powers(-30, 30)}},
       })
    check(walk);
}

TEST_CASE("functions of two numbers and the float format over the range") {
  for (const Walk& walk : std::vector<Walk>{
           {"xlogy", [](const Tensors& x) { return rg::xlogy(x[0], rg::abs(x[1])); }, same_scale(0.7)},
           {"logaddexp2", [](const Tensors& x) { return rg::logaddexp2(x[0], x[1]); }, same_scale(1)},
           {"fmax", [](const Tensors& x) { return rg::fmax(x[0], x[1]); }, same_scale(0.7)},
           {"copysign", [](const Tensors& x) { return rg::copysign(x[0], x[1]); }, same_scale(-0.7)},
           {"prelu",
            [](const Tensors& x) { return rg::prelu(x[0], x[1]); },
            {{1.7, -2.3, 3e4, -4e4}, {0.3, 0.3, 2.1, 0.7}}},
       })
    check(walk);
}

}  // namespace range
