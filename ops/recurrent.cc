// Type rules and public functions of ops/recurrent.h. Derivatives: ops/recurrent_rules.cc.
#include "ops/recurrent.h"

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/batching.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/widened.h"

namespace retrograd::inline v0::ops {
namespace {

// The operands of a call, checked against the sizes that the first of them give.
class CheckedOperands {
 public:
  /// `lengths`: the number of that operand.
  CheckedOperands(const Call& call, size_t lengths) : call_(call), lengths_(lengths) {
    const ScalarType dtype = operand(0).dtype();
    if (dtype != kFloat32 && dtype != kFloat64)
      fail_call(call, Category::dtype_mismatch, "it needs float32 or float64");
    for (size_t i = 1; i < call.operands.size(); ++i)
      if (call.operands[i] && operand(i).dtype() != (i == lengths ? kInt64 : dtype))
        fail_call(call, Category::dtype_mismatch,
                  i == lengths ? "lengths are int64" : "operands have different dtypes");
  }

  void rank_of(size_t i, int rank) const {
    if (operand(i).rank() != rank)
      fail_call(call_, Category::bad_dim, "an operand has another number of dims");
  }
  void shape_of(size_t i, const Shape& wanted) const {
    if (!call_.operands[i]) return;
    rank_of(i, wanted.rank());
    if (!(operand(i).shape() == wanted))
      fail_call(call_, Category::shape_mismatch, "the shapes of operands do not fit each other");
  }
  void lengths(Dim batch) const { shape_of(lengths_, {batch}); }
  void steps(Dim steps) const {
    if (steps == 0) fail_call(call_, Category::bad_argument, "a sequence needs at least one step");
  }
  const TensorImpl& operand(size_t i) const { return *call_.operands[i]; }

 private:
  const Call& call_;
  size_t lengths_;
};

// The first operand is (L, N, gates H), the second (gates H, H); gives (L, N, H).
Shape check_cell(const CheckedOperands& x, Dim gates) {
  x.rank_of(0, 3);
  x.rank_of(1, 2);
  const Dim hidden = x.operand(1).shape()[1];
  const Shape& projected = x.operand(0).shape();
  x.shape_of(0, {projected[0], projected[1], gates * hidden});
  x.shape_of(1, {gates * hidden, hidden});
  x.steps(projected[0]);
  x.lengths(projected[1]);
  return {projected[0], projected[1], hidden};
}

// Operands weight, factors, keep; gives (L, N, S).
Shape check_recurrence(const Call& call, const CheckedOperands& x) {
  const auto& attrs = call.attrs_as<GatedRecurrenceAttrs>();
  if (attrs.gates < 1 + attrs.has_cell || attrs.gates > 4)
    fail_call(call, Category::bad_argument, "the number of gates is not one of a cell");
  if (attrs.has_cell && !call.operands[2]) fail_call(call, Category::bad_argument, "a cell needs `keep`");
  x.rank_of(0, 2);
  x.rank_of(1, 3);
  const Dim hidden = x.operand(0).shape()[1];
  const Shape& factors = x.operand(1).shape();
  x.shape_of(0, {attrs.gates * hidden, hidden});
  x.shape_of(1, {factors[0], factors[1], attrs.gates * hidden});
  const Shape states{factors[0], factors[1], attrs.has_cell ? 2 * hidden : hidden};
  x.shape_of(2, states);
  x.shape_of(3, states);
  x.steps(factors[0]);
  x.lengths(factors[1]);
  return states;
}

Shape without_first(const Shape& shape) { return {shape[1], shape[2]}; }

}  // namespace

void Lstm::infer(const Call& call, TensorImpl* const* outputs) {
  const CheckedOperands x(call, 4);
  const Shape states = check_cell(x, 4);
  for (size_t i : {2, 3}) x.shape_of(i, without_first(states));
  for (int i : {0, 1}) set_like(x.operand(0), states, *outputs[i]);
  set_like(x.operand(0), x.operand(0).shape(), *outputs[2]);
}

void Gru::infer(const Call& call, TensorImpl* const* outputs) {
  const CheckedOperands x(call, 4);
  const Shape states = check_cell(x, 3);
  x.shape_of(2, without_first(states));
  x.shape_of(3, {states[2]});
  set_like(x.operand(0), states, *outputs[0]);
  set_like(x.operand(0), {states[0], states[1], 4 * states[2]}, *outputs[1]);
}

void Rnn::infer(const Call& call, TensorImpl* const* outputs) {
  const CheckedOperands x(call, 3);
  const Shape states = check_cell(x, 1);
  x.shape_of(2, without_first(states));
  set_like(x.operand(0), states, *outputs[0]);
}

void GatedRecurrence::infer(const Call& call, TensorImpl* const* outputs) {
  const CheckedOperands x(call, 5);
  const Shape states = check_recurrence(call, x);
  x.shape_of(4, without_first(states));
  set_like(x.operand(0), states, *outputs[0]);
}

void GatedRecurrenceBackward::infer(const Call& call, TensorImpl* const* outputs) {
  const CheckedOperands x(call, 4);
  const Shape states = check_recurrence(call, x);
  set_like(x.operand(0), states, *outputs[0]);
  set_like(x.operand(0), without_first(states), *outputs[1]);
}

namespace {

// The operands of a layer in the dtype that it is computed in.
class LayerOperands {
 public:
  explicit LayerOperands(Operand projected)
      : cast_(CastPolicy::lower_precision, {&projected.tensor()}),
        projected_(cast_(projected)),
        where_(projected.where()),
        wide_(projected_) {}
  Tensor operator()(const Operand& given) const {
    const Tensor x = cast_(given);
    const ScalarType dtype = projected_.dtype();
    if (x.defined() && x.dtype() != dtype)
      fail(Category::dtype_mismatch, "",
           fmt::format("{} in a layer that computes {}", describe(x), name(dtype)), where_);
    return x.defined() ? wide_(x) : x;
  }
  Tensor back(const Tensor& result) const { return wide_.back(result); }

 private:
  const AutocastFunction cast_;
  const Tensor projected_;
  SourceLocation where_;
  Widened wide_;
};

}  // namespace

SequenceStates lstm(Operand projected, const Tensor& weight_hh, const SequenceStates& before,
                    const Tensor& lengths, bool reverse) {
  const NamedCall name("lstm", projected.where());
  const LayerOperands wide(projected);
  const Tensor p = wide(projected), w = wide(weight_hh), h = wide(before.h), c = wide(before.c);
  TensorImpl* const operands[] = {p.get(), w.get(), h.get(), c.get(), lengths.get()};
  Lstm::Attrs attrs{reverse};
  Tensor results[3];
  Emitter::current().emit({&info<Lstm>, operands, &attrs, effective_location(projected.where()), 3}, results);
  return {wide.back(results[0]), wide.back(results[1])};
}

Tensor gru(Operand projected, const Tensor& weight_hh, const Tensor& bias, const Tensor& before,
           const Tensor& lengths, bool reverse) {
  const NamedCall name("gru", projected.where());
  const LayerOperands wide(projected);
  const Tensor p = wide(projected), w = wide(weight_hh), h = wide(before), b = wide(bias);
  TensorImpl* const operands[] = {p.get(), w.get(), h.get(), b.get(), lengths.get()};
  Gru::Attrs attrs{reverse};
  Tensor results[2];
  Emitter::current().emit({&info<Gru>, operands, &attrs, effective_location(projected.where()), 2}, results);
  return wide.back(results[0]);
}

Tensor rnn(Operand projected, const Tensor& weight_hh, const Tensor& before, const Tensor& lengths, bool relu,
           bool reverse) {
  const NamedCall name("rnn", projected.where());
  const LayerOperands wide(projected);
  const Tensor p = wide(projected), w = wide(weight_hh), h = wide(before);
  const Rnn::Attrs attrs{{reverse}, relu};
  return wide.back(emit<Rnn>({p.get(), w.get(), h.get(), lengths.get()}, attrs, projected.where()));
}

Tensor steps_within(Dim steps, const Tensor& lengths) {
  const Tensor step = arange(Scalar(steps), TensorOptions{kInt64, lengths.device()});
  return lt(unsqueeze(step, 1), lengths);
}

// ---- batches of vmap ------------------------------------------------------------------------------------------------

namespace {

// Operands and results are sequences s (steps, samples, ...), states n (samples, ...) and weights w. The batch becomes
// part of the samples, which have one weight; with a weight for each, the op is called for each.
void batch_sequences(BatchContext& c, std::string_view operand_roles, std::string_view result_roles) {
  Tensors operands;
  for (int i = 0; i < c.operands(); ++i) {
    const char role = operand_roles[static_cast<size_t>(i)];
    if (role == 'w' && c.is_batched(i)) return batch_by_loop(c);
    const Tensor x = role == 'w' ? c.value(i) : c.all(i);
    operands.push_back(role == 'w' || !x.defined() ? x
                       : role == 'n'               ? fold(x, c.where())
                                                   : fold_second(x, c.where()));
  }
  const Tensors results = c.run(operands);
  for (size_t i = 0; i < results.size(); ++i) {
    const Shape& sample = c.out_type(static_cast<int>(i)).shape;
    c.give(static_cast<int>(i), result_roles[i] == 'n'
                                    ? unfold_first(results[i], c.size(), sample[0], c.where())
                                    : unfold_second(results[i], c.size(), sample[1], c.where()));
  }
}

}  // namespace

void Lstm::batch(BatchContext& c) { batch_sequences(c, "swnnn", "sss"); }
void Gru::batch(BatchContext& c) { batch_sequences(c, "swnwn", "ss"); }
void Rnn::batch(BatchContext& c) { batch_sequences(c, "swnn", "s"); }
void GatedRecurrence::batch(BatchContext& c) { batch_sequences(c, "wsssnn", "s"); }
void GatedRecurrenceBackward::batch(BatchContext& c) { batch_sequences(c, "wsssn", "sn"); }

}  // namespace retrograd::inline v0::ops
