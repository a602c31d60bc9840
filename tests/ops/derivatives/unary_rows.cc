// Functions of one number. Ranges avoid poles, jumps and kinks, which are covered by tests/ops/edges.
#include "ops/unary.h"

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/op.h"
#include "ops/shape_ops.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

// The public function emits clone when it must copy; the op is for graphs, which do not know the layout of values.
Tensor emit_contiguous(const Tensors& x) { return rg::ops::emit<rg::ops::Contiguous>({x[0].get()}, {}, {}); }

}  // namespace

Rows unary_rows() {
  Rows rows;
  rows.push_back(unary("neg", rg::neg));
  rows.push_back(unary("abs", rg::abs));
  rows.push_back(unary("square", rg::square));
  rows.push_back(unary("exp", rg::exp));
  rows.push_back(unary("exp2", rg::exp2));
  rows.push_back(unary("expm1", rg::expm1));
  rows.push_back(unary("log", rg::log, {0.3, 3}));
  rows.push_back(unary("log2", rg::log2, {0.3, 3}));
  rows.push_back(unary("log10", rg::log10, {0.3, 3}));
  rows.push_back(unary("log1p", rg::log1p, {-0.6, 3}));
  rows.push_back(unary("sqrt", rg::sqrt, {0.3, 3}));
  rows.push_back(unary("rsqrt", rg::rsqrt, {0.3, 3}));
  rows.push_back(unary("reciprocal", rg::reciprocal, {-3, -0.4}));
  rows.push_back(unary("sin", rg::sin, {-4, 4}));
  rows.push_back(unary("cos", rg::cos, {-4, 4}));
  rows.push_back(unary("tan", rg::tan, {-1, 1}));
  rows.push_back(unary("asin", rg::asin, {-0.8, 0.8}));
  rows.push_back(unary("acos", rg::acos, {-0.8, 0.8}));
  rows.push_back(unary("atan", rg::atan, {-3, 3}));
  rows.push_back(unary("sinh", rg::sinh));
  rows.push_back(unary("cosh", rg::cosh));
  rows.push_back(unary("asinh", rg::asinh, {-3, 3}));
  rows.push_back(unary("acosh", rg::acosh, {1.3, 4}));
  rows.push_back(unary("atanh", rg::atanh, {-0.8, 0.8}));
  rows.push_back(unary("erf", rg::erf));
  rows.push_back(unary("erfc", rg::erfc));
  rows.push_back(unary("erfinv", rg::erfinv, {-0.8, 0.8}));
  rows.push_back(unary("lgamma", rg::lgamma, {0.4, 5}));
  rows.push_back(unary("lgamma between poles", rg::lgamma, {-1.7, -1.3}));
  rows.push_back(unary("digamma", rg::digamma, {0.4, 5}));
  rows.push_back(unary("digamma between poles", rg::digamma, {-1.7, -1.3}));
  rows.push_back(unary("sign", rg::sign));
  rows.push_back(unary("floor", rg::floor, {-3, 3}));
  rows.push_back(unary("ceil", rg::ceil, {-3, 3}));
  rows.push_back(unary("trunc", rg::trunc, {-3, 3}));
  rows.push_back(unary("round", [](const rg::Tensor& x) { return rg::round(x); }, {-3, 3}));
  rows.push_back(row(
      "round to two decimals", [](const Tensors& x) { return rg::round(x[0], 2); }, unary_cases({-3, 3})));
  rows.push_back(unary("frac", rg::frac, {-3, 3}));
  rows.push_back(row(
      "nan_to_num", [](const Tensors& x) { return rg::nan_to_num(x[0]); }, unary_cases()));
  rows.push_back(row(
      "clone", [](const Tensors& x) { return rg::clone(x[0]); }, unary_cases()));
  rows.push_back(row("contiguous", emit_contiguous, unary_cases()));
  rows.push_back(row(
      "alias", [](const Tensors& x) { return rg::alias(x[0]); }, unary_cases()));
  for (const double exponent : {2.0, 3.0, 1.0, 0.0, -1.0, -2.0, 0.5, -0.5, 2.5})
    rows.push_back(row(
        "pow to the number " + std::to_string(exponent),
        [exponent](const Tensors& x) { return rg::pow(x[0], exponent); }, unary_cases({0.4, 2})));
  rows.push_back(row(
      "pow of negative numbers", [](const Tensors& x) { return rg::pow(x[0], 3); }, unary_cases({-2, -0.4})));
  rows.push_back(row(
      "pow of a number", [](const Tensors& x) { return rg::pow(2.5, x[0]); }, unary_cases()));
  return rows;
}

}  // namespace derivatives
