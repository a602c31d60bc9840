// Rows of elementwise ops: with one, two and three operands, any of which may broadcast or be a number if the op
// accepts one.
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/float_ops.h"
#include "ops/join.h"
#include "ops/reduce.h"
#include "ops/shrinkage.h"
#include "ops/special.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "tests/fuzz/chooser.h"
#include "tests/fuzz/op_table.h"

namespace fuzz {
namespace {

using Domain = Tensor (*)(const Tensor&);

template <class F>
void unary(OpRows& rows, std::string_view name, F f, Domain domain = nullptr) {
  rows.push_back({name, [](Chooser& c) { c.value(); },
                  [f, domain](const Args& a) { return Tensors{f(domain ? domain(a[0]) : a[0])}; }, false,
                  true});
}

/// With `numbers`: either operand may be a number between 0.25 and 2.
template <class F>
void binary(OpRows& rows, std::string_view name, F f, bool numbers, Domain left = nullptr,
            Domain right = nullptr) {
  const auto choose = [numbers](Chooser& c) {
    c.value();
    if (!numbers || !c.random.chance(0.3)) {
      c.partner();
    } else {
      c.number(0.25, 2);
      c.flag();
    }
  };
  const auto in = [](Domain domain, const Tensor& x) { return domain ? domain(x) : x; };
  rows.push_back({name, choose,
                  [f, left, right, in](const Args& a) {
                    if (a.numbers.empty()) return Tensors{f(in(left, a[0]), in(right, a[1]))};
                    if (a.i(0)) return Tensors{f(a.x(0), in(right, a[0]))};
                    return Tensors{f(in(left, a[0]), a.x(0))};
                  },
                  false, true});
}

void add_functions(OpRows& rows) {
  unary(rows, "neg", rg::neg);
  unary(rows, "abs", rg::abs);
  unary(rows, "square", rg::square);
  unary(rows, "exp", rg::exp);
  unary(rows, "exp2", rg::exp2);
  unary(rows, "expm1", rg::expm1);
  unary(rows, "log", rg::log, positive);
  unary(rows, "log2", rg::log2, positive);
  unary(rows, "log10", rg::log10, positive);
  unary(rows, "log1p", rg::log1p, positive);
  unary(rows, "sqrt", rg::sqrt, positive);
  unary(rows, "rsqrt", rg::rsqrt, positive);
  unary(rows, "reciprocal", rg::reciprocal, positive);
  unary(rows, "sin", rg::sin);
  unary(rows, "cos", rg::cos);
  unary(rows, "tan", rg::tan, unit);
  unary(rows, "asin", rg::asin, unit);
  unary(rows, "acos", rg::acos, unit);
  unary(rows, "atan", rg::atan);
  unary(rows, "sinh", rg::sinh, unit);
  unary(rows, "cosh", rg::cosh, unit);
  unary(rows, "asinh", rg::asinh);
  unary(rows, "acosh", rg::acosh, beyond_one);
  unary(rows, "atanh", rg::atanh, unit);
  unary(rows, "erf", rg::erf);
  unary(rows, "erfc", rg::erfc);
  unary(rows, "erfinv", rg::erfinv, unit);
  unary(rows, "lgamma", rg::lgamma, positive);
  unary(rows, "digamma", rg::digamma, positive);
  unary(rows, "sign", rg::sign);
  unary(rows, "floor", rg::floor);
  unary(rows, "ceil", rg::ceil);
  unary(rows, "trunc", rg::trunc);
  unary(rows, "frac", rg::frac);
  unary(rows, "round", [](const Tensor& x) { return rg::round(x, int64_t{1}); });
  unary(rows, "nan_to_num", [](const Tensor& x) { return rg::nan_to_num(x, 0.5); });
  unary(rows, "isfinite", [](const Tensor& x) { return rg::isfinite(x).to(x.dtype()); });
}

void add_activations(OpRows& rows) {
  unary(rows, "sigmoid", rg::sigmoid);
  unary(rows, "tanh", rg::tanh);
  unary(rows, "relu", rg::relu);
  unary(rows, "leaky_relu", [](const Tensor& x) { return rg::leaky_relu(x, 0.3); });
  unary(rows, "threshold", [](const Tensor& x) { return rg::threshold(x, 0.2, -0.75); });
  unary(rows, "hardtanh", rg::hardtanh);
  unary(rows, "hardsigmoid", rg::hardsigmoid);
  unary(rows, "hardswish", rg::hardswish);
  unary(rows, "softsign", rg::softsign);
  unary(rows, "logsigmoid", rg::logsigmoid);
  unary(rows, "silu", rg::silu);
  unary(rows, "mish", rg::mish);
  unary(rows, "gelu", [](const Tensor& x) { return rg::gelu(x); });
  unary(rows, "gelu_tanh", [](const Tensor& x) { return rg::gelu(x, "tanh"); });
  unary(rows, "elu", [](const Tensor& x) { return rg::elu(x, 1.25); });
  unary(rows, "selu", rg::selu);
  unary(rows, "softplus", [](const Tensor& x) { return rg::softplus(x, 2.0, 3.0); });
}

void add_special_functions(OpRows& rows) {
  using namespace rg::special;
  unary(rows, "special_entr", entr, positive);
  unary(rows, "special_ndtr", ndtr);
  unary(rows, "special_log_ndtr", log_ndtr);
  unary(rows, "special_ndtri", ndtri, fraction);
  unary(rows, "special_erfcx", erfcx, unit);
  unary(rows, "special_i0", i0, unit);
  unary(rows, "special_i0e", i0e);
  unary(rows, "special_i1", i1, unit);
  unary(rows, "special_i1e", i1e);
  unary(rows, "sinc", rg::sinc);
  unary(
      rows, "logit", [](const Tensor& x) { return rg::logit(x); }, fraction);
  unary(rows, "tanhshrink", rg::tanhshrink);
  unary(rows, "softshrink", [](const Tensor& x) { return rg::softshrink(x, 0.25); });
  unary(rows, "hardshrink", [](const Tensor& x) { return rg::hardshrink(x, 0.25); });
  unary(rows, "prelu", [](const Tensor& x) { return rg::prelu(x, rg::sum(x)); });
  unary(rows, "glu", [](const Tensor& x) { return rg::glu(rg::stack({x, x * 0.5}), 0); });
  binary(rows, "xlogy", rg::xlogy, true, nullptr, positive);
  binary(rows, "special_xlog1py", xlog1py, true, nullptr, positive);
  binary(rows, "logaddexp2", rg::logaddexp2, false);
  binary(
      rows, "copysign", [](auto a, auto b) { return rg::copysign(a, b); }, false);
  binary(
      rows, "fmax", [](auto a, auto b) { return rg::fmax(a, b); }, false);
  binary(
      rows, "fmin", [](auto a, auto b) { return rg::fmin(a, b); }, false);
  binary(
      rows, "ldexp", [](auto a, auto b) { return rg::ldexp(a, b); }, false);
  binary(
      rows, "nextafter", [](auto a, auto b) { return rg::nextafter(a, b); }, false);
}

void add_two_operands(OpRows& rows) {
  binary(
      rows, "add", [](auto a, auto b) { return rg::add(a, b, 0.5); }, true);
  binary(
      rows, "sub", [](auto a, auto b) { return rg::sub(a, b); }, true);
  binary(rows, "mul", rg::mul, true);
  binary(
      rows, "div", [](auto a, auto b) { return rg::div(a, b); }, true, nullptr, positive);
  binary(
      rows, "div_trunc", [](auto a, auto b) { return rg::div(a, b, "trunc"); }, true, nullptr, positive);
  binary(
      rows, "div_floor", [](auto a, auto b) { return rg::div(a, b, "floor"); }, true, nullptr, positive);
  binary(
      rows, "pow", [](auto a, auto b) { return rg::pow(a, b); }, true, positive, unit);
  binary(rows, "atan2", rg::atan2, false, nullptr, positive);
  binary(rows, "hypot", rg::hypot, false, positive);
  binary(rows, "logaddexp", rg::logaddexp, false);
  binary(rows, "maximum", rg::maximum, false);
  binary(rows, "minimum", rg::minimum, false);
  binary(rows, "fmod", rg::fmod, true, nullptr, positive);
  binary(rows, "remainder", rg::remainder, true, nullptr, positive);
  rows.push_back({"copy",
                  [](Chooser& c) {
                    c.value();
                    c.partner();
                  },
                  [](const Args& a) { return Tensors{rg::copy(a[0], a[1])}; }, false, true});
  binary(
      rows, "lt", [](auto a, auto b) { return rg::lt(a, b).to(rg::kFloat32); }, true);
}

void add_three_operands(OpRows& rows) {
  rows.push_back({"where",
                  [](Chooser& c) {
                    const Tensor x = c.value();
                    c.partner();
                    c.mask(x.sizes());
                  },
                  [](const Args& a) { return Tensors{rg::where(a[2], a[0], a[1])}; }, false, true});
  rows.push_back({"clamp",
                  [](Chooser& c) {
                    c.value();
                    c.number(-1, 0);
                    c.number(0, 1);
                    if (c.random.chance(0.5)) c.shaped(c.machine().find(c.step.operands[0])->sizes());
                  },
                  [](const Args& a) {
                    if (a.operands.size() > 1) return Tensors{rg::clamp(a[0], a[1], a.x(1))};
                    return Tensors{rg::clamp(a[0], a.x(0), a.x(1))};
                  },
                  false, true});
  const auto three = [](Chooser& c) {
    const Tensor x = c.value();
    c.shaped(x.sizes());
    if (c.random.chance(0.7)) c.shaped(x.sizes());
    c.number(-1, 1);
  };
  rows.push_back({"lerp", three,
                  [](const Args& a) {
                    if (a.operands.size() > 2) return Tensors{rg::lerp(a[0], a[1], a[2])};
                    return Tensors{rg::lerp(a[0], a[1], a.x(0))};
                  },
                  false, true});
  rows.push_back({"addcmul", three,
                  [](const Args& a) { return Tensors{rg::addcmul(a[0], a[1], a.operands.back(), a.x(0))}; },
                  false, true});
  rows.push_back(
      {"addcdiv", three,
       [](const Args& a) { return Tensors{rg::addcdiv(a[0], a[1], positive(a.operands.back()), a.x(0))}; },
       false, true});
}

}  // namespace

void add_elementwise_rows(OpRows& rows) {
  add_functions(rows);
  add_activations(rows);
  add_special_functions(rows);
  add_two_operands(rows);
  add_three_operands(rows);
}

}  // namespace fuzz
