// See ops/likelihood_losses.h.
#include "ops/likelihood_losses.h"

#include <limits>
#include <numbers>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/batching.h"
#include "ops/comparison.h"
#include "ops/family_parts.h"
#include "ops/loss_operands.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0 {
namespace ops {

void CheckRange::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  if (!is_floating(x.dtype()) || is_float8(x.dtype()))
    fail_call(call, Category::dtype_mismatch, "floating elements are needed");
  outputs[0]->set_type(kBool, x.device(), {});
}

void check_range(Operand x, const CheckRange::Attrs& range) {
  emit<CheckRange>({x.tensor().get()}, range, x.where());
}

// One answer for all samples: the call fails if any is out of range.
void CheckRange::batch(BatchContext& c) {
  const Tensor x = c.value(0);
  c.give_same(0, c.run({&x, 1})[0]);
}

}  // namespace ops

namespace {

using ops::LossOperands;
using ops::parse_reduction;

constexpr double kLog2Pi = 1.8378770664093454836;

// Of log(t!). Where it does not count, the logarithms are of 1: a gradient there would be 0 times infinity.
Tensor stirling(const Tensor& target) {
  const Tensor counts = gt(target, 1), t = where(counts, target, 1.0);
  const Tensor log_t = log(t);
  return where(counts, add(sub(mul(t, log_t), t), mul(add(log_t, kLog2Pi), 0.5)), 0.0);
}

}  // namespace

Tensor poisson_nll_loss(Operand input, const Tensor& target, bool log_input, bool full, Scalar eps,
                        LossReduction reduction) {
  const NamedCall call("poisson_nll_loss", input.where());
  const auto averaging = parse_reduction(reduction, "poisson_nll_loss", input.where());
  const LossOperands wide({&input.tensor(), &target});
  const Tensor x = wide(input), t = wide(target);
  Tensor loss = log_input ? sub(exp(x), mul(t, x)) : sub(x, mul(t, log(add(x, eps))));
  if (full) loss = add(loss, stirling(t));
  return wide.reduce(loss, averaging);
}

namespace {

// The variance with the input's number of dims.
Tensor spread_variance(Operand input, const Tensor& var) {
  const Shape &x = shape_of(input), &v = var.impl().shape();
  if (x == v) return var;
  if (x.rank() > 0 && v == ops::without_last(x)) {
    Shape column = v;
    column.push_back(1);
    return reshape_to(var, column);
  }
  int other = 0;
  for (int i = 0; x.rank() == v.rank() && i < x.rank(); ++i)
    if (!(x[i] == v[i])) other += v[i] == Dim(1) ? 1 : 2;
  if (x.rank() != v.rank() || other != 1)
    fail(Category::bad_argument, "gaussian_nll_loss",
         fmt::format("var {} does not fit the input {}", describe(var), describe(input.tensor())),
         input.where());
  return var;
}

}  // namespace

Tensor gaussian_nll_loss(Operand input, const Tensor& target, const Tensor& var, bool full, Scalar eps,
                         LossReduction reduction) {
  constexpr std::string_view op = "gaussian_nll_loss";
  const NamedCall call(op, input.where());
  const auto averaging = parse_reduction(reduction, op, input.where());
  if (!is_floating(var.dtype()))
    fail(Category::dtype_mismatch, op, fmt::format("var {} is not floating", describe(var)), input.where());
  ops::check_range(Operand(var, input.where()), {0.0, std::numeric_limits<double>::infinity(), false});
  const LossOperands wide({&input.tensor(), &target, &var});
  const Tensor given = spread_variance(input, wide(Operand(var, input.where())));
  // The clamp is added as a constant.
  const Tensor v = add(given, detach(sub(clamp(given, eps), given)));
  const Tensor d = sub(wide(input), wide(target));
  Tensor loss = mul(add(log(v), mul(d, div(d, v))), 0.5);
  if (full) loss = add(loss, kLog2Pi / 2);
  return wide.reduce(loss, averaging);
}

}  // namespace retrograd
