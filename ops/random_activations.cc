// See ops/random_activations.h.
#include "ops/random_activations.h"

#include <cmath>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "engine/named_call.h"
#include "engine/runner.h"
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/index_ops.h"
#include "ops/random_ops.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace {

void check_drawn(std::string_view op, Operand x) {
  if (!ops::is_drawn_floating(x.defined_tensor(op).dtype()))
    fail(Category::dtype_mismatch, op, fmt::format("it is not defined for {}", describe(x.tensor())),
         x.where());
}

}  // namespace

Tensor rrelu(Operand x, double lower, double upper, bool training) {
  const NamedCall call("rrelu", x.where());
  check_drawn("rrelu", x);
  if (!(lower <= upper) || !std::isfinite(lower) || !std::isfinite(upper))
    fail(Category::bad_argument, "rrelu", fmt::format("there are no slopes from {} to {}", lower, upper),
         x.where());
  if (!training) return leaky_relu(x, (lower + upper) / 2);
  // A new tensor: a draw for each sample of vmap cannot be written into one that is not batched.
  const TensorImpl& like = x.tensor().impl();
  const Tensor slope = ops::emit<ops::Uniform>(
      {}, {like.shape(), lower, upper, like.dtype(), ops::reserve_draw("rrelu", x.where()), like.device()},
      x.where());
  return where(gt(x, 0), x, mul(x, slope));
}

const Tensor& rrelu_(const Tensor& x, double lower, double upper, bool training, SourceLocation where) {
  const NamedCall call("rrelu_", where);
  return apply_inplace(
      x, [&](const Tensor& old) { return rrelu(Operand(old, where), lower, upper, training); }, "rrelu_",
      where);
}

Tensor gumbel_softmax(Operand logits, double tau, bool hard, int64_t dim) {
  const NamedCall call("gumbel_softmax", logits.where());
  check_drawn("gumbel_softmax", logits);
  if (!(tau > 0))
    fail(Category::bad_argument, "gumbel_softmax", fmt::format("tau {} is not positive", tau),
         logits.where());
  const ops::Widened wide(logits.tensor());
  const Tensor x = wide(logits.tensor());
  const SourceLocation at = logits.where();
  const Tensor drawn = ops::emit<ops::Exponential>(
      {}, {x.impl().shape(), 1.0, x.dtype(), ops::reserve_draw("gumbel_softmax", at), x.device()}, at);
  const Tensor noise = neg(log(drawn));
  const Tensor soft = softmax(div(add(x, noise), tau), dim);
  if (!hard) return wide.back(soft);
  const Tensor largest = argmax(detach(soft), dim, true);
  const Tensor one_hot = scatter(zeros_like(soft), dim, largest, 1);
  return wide.back(add(sub(one_hot, detach(soft)), soft));
}

}  // namespace retrograd
