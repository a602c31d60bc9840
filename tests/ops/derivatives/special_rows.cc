// Special functions, functions of the float format, shrinkage. Ranges avoid poles, jumps and kinks, which are covered
// by tests/ops/edges.
#include "ops/special.h"

#include "ops/composed.h"
#include "ops/float_ops.h"
#include "ops/op.h"
#include "ops/shrinkage.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

Tensor emit_prelu_backward(const Tensors& x) {
  return rg::ops::emit<rg::ops::PreluBackward>({x[0].get(), x[1].get(), x[2].get()}, {}, {});
}

Tensor emit_fextremum_backward(const Tensors& x) {
  return rg::ops::emit<rg::ops::FextremumBackward>({x[0].get(), x[1].get(), x[2].get()}, {}, {});
}

/// A function of two tensors, neither of which may be a number.
Row of_two(std::string name, Tensor (*f)(rg::Operand, rg::Operand), Range a = {}, Range b = {}) {
  return row(
      std::move(name), [f](const Tensors& x) { return f(x[0], x[1]); }, binary_cases(a, b));
}

void add_special(Rows& rows) {
  rows.push_back(unary("entr", rg::special::entr, {0.4, 3}));
  rows.push_back(unary("erfcx", rg::special::erfcx));
  rows.push_back(unary("erfcx far", rg::special::erfcx, {7, 12}));
  rows.push_back(unary("i0", rg::special::i0, {-9, 9}));
  rows.push_back(unary("i0e", rg::special::i0e, {1, 9}));
  rows.push_back(unary("i0e far", rg::special::i0e, {29, 33}));
  rows.push_back(unary("i1", rg::special::i1, {-9, 9}));
  rows.push_back(unary("i1e", rg::special::i1e, {-9, -1}));
  rows.push_back(unary("ndtr", rg::special::ndtr, {-3, 3}));
  rows.push_back(unary("ndtri", rg::special::ndtri, {0.1, 0.9}));
  rows.push_back(unary("log_ndtr", rg::special::log_ndtr, {-6, 3}));
  rows.push_back(unary("sinc", rg::sinc, {0.1, 3}));
  rows.push_back(row(
      "logit", [](const Tensors& x) { return rg::logit(x[0]); }, unary_cases({0.1, 0.9})));
  rows.push_back(row(
      "logit within bounds", [](const Tensors& x) { return rg::logit(x[0], 0.05); },
      unary_cases({0.1, 0.9})));
  rows.push_back(row(
      "polygamma", [](const Tensors& x) { return rg::polygamma(2, x[0]); }, unary_cases({0.6, 4})));
  add_binary(rows, "xlogy", rg::xlogy, {}, {0.4, 3});
  add_binary(rows, "xlog1py", rg::special::xlog1py, {}, {-0.6, 3});
  rows.push_back(row(
      "logaddexp2", [](const Tensors& x) { return rg::logaddexp2(x[0], x[1]); },
      binary_cases({-3, 3}, {-3, 3})));
}

void add_float_ops(Rows& rows) {
  add_binary(rows, "copysign", rg::copysign);
  rows.push_back(of_two("ldexp", rg::ldexp));
  rows.push_back(of_two("nextafter", rg::nextafter));
  rows.back().dtypes = {rg::kFloat32, rg::kBFloat16};
  rows.push_back(row(
      "fmax", [](const Tensors& x) { return rg::fmax(x[0], x[1]); }, binary_cases()));
  rows.push_back(row(
      "fmin", [](const Tensors& x) { return rg::fmin(x[0], x[1]); }, binary_cases()));
  rows.push_back(row("fextremum_backward", emit_fextremum_backward, ternary_cases()));
  const Tensor level = fixed(real({3}));
  rows.push_back(row("fextremum_backward at ties", emit_fextremum_backward, {{real({2, 3}), level, level}}));
}

void add_activations(Rows& rows) {
  rows.push_back(unary("tanhshrink", rg::tanhshrink, {0.2, 3}));
  rows.push_back(row(
      "softshrink", [](const Tensors& x) { return rg::softshrink(x[0], 0.7); }, unary_cases({0.8, 3})));
  rows.push_back(row(
      "hardshrink", [](const Tensors& x) { return rg::hardshrink(x[0], 0.7); }, unary_cases({-3, -0.8})));
  rows.push_back(row("prelu", [](const Tensors& x) { return rg::prelu(x[0], x[1]); },
                     {{real({2, 3}), real({3})},
                      {real({4}), real({})},
                      {transposed({3, 2, 2}), real({2})},
                      {real({}), real({1})},
                      {real({0, 3}), real({3})}}));
  rows.push_back(row("prelu_backward", emit_prelu_backward, ternary_cases()));
  rows.push_back(row("glu", [](const Tensors& x) { return rg::glu(x[0], 1); },
                     {{real({2, 6})}, {transposed({3, 4}, {-4, 4})}, {real({2, 0})}, {strided({2, 2, 3})}}));
}

void add_composed(Rows& rows) {
  rows.push_back(unary("deg2rad", rg::deg2rad));
  rows.push_back(unary("rad2deg", rg::rad2deg));
  rows.push_back(row(
      "rsub", [](const Tensors& x) { return rg::rsub(x[0], x[1], -0.7); }, binary_cases()));
  rows.push_back(row(
      "clamp_min and clamp_max",
      [](const Tensors& x) { return rg::clamp_max(rg::clamp_min(x[0], x[1]), 0.9); }, binary_cases()));
  rows.push_back(row("softmin", [](const Tensors& x) { return rg::softmin(x[0], 1); },
                     {{real({2, 3})}, {transposed({4, 3})}}));
  for (const double p : {1.0, 2.0, 3.0})
    rows.push_back(row("normalize by norm " + std::to_string(p),
                       [p](const Tensors& x) { return rg::normalize(x[0], p); },
                       {{real({2, 3}, {0.3, 2})}, {transposed({4, 3}, {-2, -0.3})}}));
}

}  // namespace

Rows special_rows() {
  Rows rows;
  add_special(rows);
  add_float_ops(rows);
  add_activations(rows);
  add_composed(rows);
  return rows;
}

}  // namespace derivatives
