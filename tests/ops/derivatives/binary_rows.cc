// Functions of two numbers that broadcast.
#include "ops/binary.h"

#include "ops/arithmetic.h"
#include "ops/op.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;
using rg::Operand;

namespace {

Tensor emit_extremum_backward(const Tensors& x) {
  return rg::ops::emit<rg::ops::ExtremumBackward>({x[0].get(), x[1].get(), x[2].get()}, {}, {});
}

}  // namespace

Rows binary_rows() {
  Rows rows;
  add_binary(rows, "add", [](Operand a, Operand b) { return rg::add(a, b); });
  add_binary(rows, "add with alpha", [](Operand a, Operand b) { return rg::add(a, b, -0.7); });
  add_binary(rows, "sub", [](Operand a, Operand b) { return rg::sub(a, b); });
  add_binary(rows, "sub with alpha", [](Operand a, Operand b) { return rg::sub(a, b, 2); });
  add_binary(rows, "mul", rg::mul);
  add_binary(rows, "div", [](Operand a, Operand b) { return rg::div(a, b); }, {}, {0.4, 2});
  add_binary(rows, "div by negative numbers", [](Operand a, Operand b) { return rg::div(a, b); }, {},
             {-2, -0.4});
  add_binary(rows, "div trunc", [](Operand a, Operand b) { return rg::div(a, b, "trunc"); }, {-5, 5},
             {0.5, 2});
  add_binary(rows, "div floor", [](Operand a, Operand b) { return rg::div(a, b, "floor"); }, {-5, 5},
             {-2, -0.5});
  add_binary(rows, "pow", [](Operand a, Operand b) { return rg::pow(a, b); }, {0.4, 2}, {-2, 3});
  add_binary(rows, "atan2", rg::atan2, {0.3, 2}, {-2, 2});
  add_binary(rows, "hypot", rg::hypot, {0.3, 2}, {-2, 2});
  add_binary(rows, "logaddexp", rg::logaddexp, {-3, 3}, {-3, 3});
  add_binary(rows, "maximum", rg::maximum);
  add_binary(rows, "minimum", rg::minimum);
  add_binary(rows, "fmod", rg::fmod, {-5, 5}, {0.5, 2});
  add_binary(rows, "remainder", rg::remainder, {-5, 5}, {-2, -0.5});
  rows.push_back(row("extremum_backward", emit_extremum_backward, ternary_cases()));
  const Tensor level = fixed(real({3}));
  rows.push_back(row("extremum_backward at ties", emit_extremum_backward, {{real({2, 3}), level, level}}));
  rows.push_back(row(
      "one operand twice", [](const Tensors& x) { return rg::mul(x[0], x[0]); }, unary_cases()));
  return rows;
}

}  // namespace derivatives
