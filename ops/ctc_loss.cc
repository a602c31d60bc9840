// See ops/ctc_loss.h.
#include "ops/ctc_loss.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/batching.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/index_ops.h"
#include "ops/loss_operands.h"
#include "ops/reduce.h"
#include "ops/ternary.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

// Checks log_probs, targets and lengths, which begin at operand `first`.
void check_loss_operands(const Call& call, size_t first) {
  const TensorImpl &x = *call.operands[first], &targets = *call.operands[first + 1];
  const CtcAttrs& a = call.attrs_as<CtcAttrs>();
  if (!is_floating(x.dtype()) || is_float8(x.dtype()))
    fail_call(call, Category::dtype_mismatch, "log_probs are not floating");
  if (x.rank() != 3) fail_call(call, Category::bad_dim, "log_probs are (steps, batch, classes)");
  for (Dim size : x.shape())
    if (size < 1) fail_call(call, Category::bad_argument, "log_probs are empty");
  if (a.blank < 0 || a.blank >= x.shape()[2].hint())
    fail_call(call, Category::bad_argument, fmt::format("blank {} is not a class", a.blank));
  if (targets.rank() != 1 && targets.rank() != 2)
    fail_call(call, Category::bad_dim, "targets are (batch, labels) or of one dim");
  if (targets.rank() == 2 && !(targets.shape()[0] == x.shape()[1]))
    fail_call(call, Category::shape_mismatch, "targets are of another batch");
  for (size_t i = first + 1; i < first + 4; ++i)
    if (call.operands[i]->dtype() != kInt64)
      fail_call(call, Category::dtype_mismatch, "targets and lengths are int64");
  for (size_t i = first + 2; i < first + 4; ++i)
    if (!(call.operands[i]->shape() == Shape{x.shape()[1]}))
      fail_call(call, Category::shape_mismatch, "a length is needed for each sample");
}

// The operands of ctc_loss in a rule, from number `first`.
struct Operands {
  Tensor x, targets, input_lengths, target_lengths;
  template <class C>
  Operands(C& c, int first)
      : x(c.in(first).tensor()),
        targets(c.in(first + 1).tensor()),
        input_lengths(c.in(first + 2).tensor()),
        target_lengths(c.in(first + 3).tensor()) {}

  Tensor backward(const Tensor& g, const Tensor& v, const CtcAttrs& a, SourceLocation where) const {
    return emit<CtcLossBackward>(
        {g.get(), x.get(), targets.get(), input_lengths.get(), target_lengths.get(), v.get()}, a, where);
  }
  // For each sample the sum of u times the gradient of its loss, or times its Hessian times v.
  Tensor along(const Tensor& u, const Tensor& v, const CtcAttrs& a, SourceLocation where) const {
    const Widened wide(u);
    const TensorType type = u.impl().type();
    const Tensor ones = ones_of({type.dtype, type.device, {type.shape[1]}}, where);
    return wide.back(sum(mul(wide(backward(ones, v, a, where)), wide(u)), {0, 2}));
  }
};

[[noreturn]] void refuse_third(SourceLocation where) {
  fail(Category::unsupported, "ctc_loss", "third derivatives by log_probs are not implemented", where);
}

}  // namespace

void CtcLoss::infer(const Call& call, TensorImpl* const* outputs) {
  check_loss_operands(call, 0);
  const TensorImpl& x = *call.operands[0];
  set_like(x, {x.shape()[1]}, *outputs[0]);
}

void CtcLoss::vjp(RuleContext& c) {
  c.give(0, Operands(c, 0).backward(c.grad(), {}, c.attrs<Attrs>(), c.where()));
}

void CtcLoss::jvp(TangentContext& c) {
  c.give(0, Operands(c, 0).along(c.tangent(0), {}, c.attrs<Attrs>(), c.where()));
}

void CtcLossBackward::infer(const Call& call, TensorImpl* const* outputs) {
  check_loss_operands(call, 1);
  const TensorImpl &g = *call.operands[0], &x = *call.operands[1], *v = call.operands[5];
  if (g.dtype() != x.dtype() || (v && v->dtype() != x.dtype()))
    fail_call(call, Category::dtype_mismatch, "gradient, direction and log_probs differ in dtype");
  if (!(g.shape() == Shape{x.shape()[1]}) || (v && !(v->shape() == x.shape())))
    fail_call(call, Category::shape_mismatch, "gradient, direction and log_probs do not fit together");
  set_like(x, x.shape(), *outputs[0]);
}

void CtcLossBackward::vjp(RuleContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Operands in(c, 1);
  const bool is_hessian = c.has_operand(5);
  const Tensor u = c.grad(), g = c.in(0).tensor();
  if (c.needs(0)) c.give(0, in.along(u, is_hessian ? c.in(5).tensor() : Tensor(), a, c.where()));
  if (c.needs(1) && is_hessian) refuse_third(c.where());
  if (c.needs(1)) c.give(1, in.backward(g, u, a, c.where()));
  if (is_hessian && c.needs(5)) c.give(5, in.backward(g, u, a, c.where()));
}

void CtcLossBackward::jvp(TangentContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Operands in(c, 1);
  const bool is_hessian = c.has_operand(5);
  Tensor t;
  if (c.needs(0)) t = in.backward(c.tangent(0), is_hessian ? c.in(5).tensor() : Tensor(), a, c.where());
  if (c.needs(1) && is_hessian) refuse_third(c.where());
  if (c.needs(1)) t = plus(t, in.backward(c.in(0).tensor(), c.tangent(1), a, c.where()));
  if (is_hessian && c.needs(5)) t = plus(t, in.backward(c.in(0).tensor(), c.tangent(5), a, c.where()));
  c.give(0, t);
}

// ---- batches of vmap ------------------------------------------------------------------------------------------------

namespace {

bool are_rows(BatchContext& c, int targets) { return c.rank(targets) == 2; }

// The call on all sequences, those of one sample of vmap after those of another.
Tensor of_all_sequences(BatchContext& c) {
  Tensors operands = all_operands(c);
  for (int i = 0; i < c.operands(); ++i) {
    Tensor& x = operands[static_cast<size_t>(i)];
    if (x.defined()) x = c.rank(i) == 3 ? fold_second(x, c.where()) : fold(x, c.where());
  }
  return c.run(operands)[0];
}

}  // namespace

void CtcLoss::batch(BatchContext& c) {
  if (!are_rows(c, 1))
    return batch_by_loop(c);  // targets one after the other need not be used up by each sample
  c.give(0, unfold_first(of_all_sequences(c), c.size(), c.out_type().shape[0], c.where()));
}

void CtcLossBackward::batch(BatchContext& c) {
  if (!are_rows(c, 2)) return batch_by_loop(c);
  c.give(0, unfold_second(of_all_sequences(c), c.size(), c.out_type().shape[1], c.where()));
}

}  // namespace ops

Tensor ctc_loss(Operand log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, LossReduction reduction, bool zero_infinity) {
  constexpr std::string_view op = "ctc_loss";
  const NamedCall call(op, log_probs.where());
  const SourceLocation where = log_probs.where();
  const auto averaging = ops::parse_reduction(reduction, op, where);
  const bool is_single = shape_of(log_probs).rank() == 2;
  const ops::LossOperands wide({&log_probs.tensor()});
  // One sample becomes a batch of one.
  const auto batched = [&](const Tensor& t, int rank, int64_t dim) {
    return is_single && t.impl().rank() == rank ? unsqueeze(Operand(t, where), dim) : t;
  };
  const auto indices = [&](const Tensor& t, int rank) {
    return ops::as_index(batched(t, rank, 0), op, where);
  };
  const Tensor x = batched(wide(log_probs), 2, 1), labels = indices(targets, 1),
               steps = indices(input_lengths, 0), lengths = indices(target_lengths, 0);
  Tensor loss = ops::emit<ops::CtcLoss>({x.get(), labels.get(), steps.get(), lengths.get()},
                                        {blank, zero_infinity}, where);
  if (averaging == ops::Averaging::mean) loss = div(loss, to(clamp(lengths, Operand(Scalar(1))), x.dtype()));
  if (is_single) loss = reshape_to(Operand(loss, where), {});
  return wide.reduce(loss, averaging);
}

}  // namespace retrograd
