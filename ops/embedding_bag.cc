// See ops/embedding_bag.h.
#include "ops/embedding_bag.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/batching.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/embedding_parts.h"
#include "ops/family_parts.h"
#include "ops/index_ops.h"
#include "ops/reduce.h"
#include "ops/ternary.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

// Checks what both ops have in common; the number of bags.
Dim check_bags(const Call& call) {
  const TensorImpl &index = *call.operands[0], &weight = *call.operands[1], *offsets = call.operands[2];
  const auto& a = call.attrs_as<EmbeddingBagAttrs>();
  if (index.dtype() != kInt64 || (offsets && offsets->dtype() != kInt64))
    fail_call(call, Category::dtype_mismatch, "index and offsets are int64");
  if (!is_floating(weight.dtype()) || is_float8(weight.dtype()))
    fail_call(call, Category::dtype_mismatch, "the weight is not floating");
  if (weight.rank() != 2) fail_call(call, Category::bad_dim, "the weight is not a matrix");
  if (index.rank() != (offsets ? 1 : 2) || (offsets && offsets->rank() != 1))
    fail_call(call, Category::bad_dim,
              "an index of one dim with offsets is needed, or one of two dims without");
  check_padding(call, a.embedding, weight.shape()[0]);
  if (!offsets) return index.shape()[0];
  if (!a.include_last_offset) return offsets->shape()[0];
  if (offsets->shape()[0] < 1) fail_call(call, Category::bad_argument, "the last offset is missing");
  return offsets->shape()[0] - Dim(1);
}

// The first of the op's results.
template <class Op>
Tensor bags(std::initializer_list<TensorImpl*> operands, EmbeddingBagAttrs attrs, SourceLocation where) {
  Tensor results[Op::outputs];
  Emitter::current().emit({&info<Op>, {operands.begin(), operands.size()}, &attrs, where, Op::outputs},
                          results);
  return results[0];
}

Tensor column(const Tensor& x, SourceLocation where) {
  return reshape_to(Operand(x, where), {x.impl().numel(), 1});
}

}  // namespace

SaveSet EmbeddingBag::saves_for(const Call& call, uint64_t wants) {
  SaveSet saved{1, 6};  // the index; bags and scales
  if (wants & 8) saved.operands |= 2;
  if ((wants & 2) && call.operands[3]) saved.operands |= 8;
  return saved;
}

void EmbeddingBag::infer(const Call& call, TensorImpl* const* outputs) {
  const Dim count = check_bags(call);
  const TensorImpl &index = *call.operands[0], &weight = *call.operands[1], *factors = call.operands[3];
  if (factors && factors->dtype() != weight.dtype())
    fail_call(call, Category::dtype_mismatch, "weight and per_sample_weights have different dtypes");
  if (factors && !(factors->shape() == index.shape()))
    fail_call(call, Category::shape_mismatch, "per_sample_weights do not have the shape of the index");
  set_like(weight, {count, weight.shape()[1]}, *outputs[0]);
  set_like(index, index.shape(), *outputs[1]);
  outputs[2]->set_type(wide_dtype(weight.dtype()), weight.device(), index.shape());
}

void EmbeddingBag::vjp(RuleContext& c) {
  const Tensor& g = c.grad();
  if (!g.defined()) return;
  const EmbeddingBagAttrs& a = c.attrs<Attrs>();
  const SourceLocation where = c.where();
  const Widened wide(g);
  const Tensor index = flat(c.in(0).tensor(), where), scale = column(c.out(2), where);
  // The gradient of each entry's bag.
  const Tensor of_bag = mul(index_select(Operand(wide(g), where), 0, flat(c.out(1), where)), scale);
  if (c.needs(1)) {
    const Tensor rows = c.has_operand(3) ? mul(of_bag, column(wide(c.in(3).tensor()), where)) : of_bag;
    c.give(1, emit<EmbeddingBackward>({index.get(), wide.back(rows).get()}, {a.embedding, c.type(1).shape[0]},
                                      where));
  }
  if (c.has_operand(3) && c.needs(3)) {
    const Tensor rows = wide(index_select(Operand(c.in(1).tensor(), where), 0, index));
    c.give(3, wide.back(reshape_to(Operand(sum(mul(of_bag, rows), 1), where), c.type(0).shape)));
  }
}

void EmbeddingBag::jvp(TangentContext& c) {
  const EmbeddingBagAttrs& a = c.attrs<Attrs>();
  const auto operands = c.call().operands;
  Tensor t;
  if (c.needs(1))
    t = bags<EmbeddingBag>({operands[0], c.tangent(1).get(), operands[2], operands[3]}, a, c.where());
  if (c.needs(3))
    t = plus(t,
             bags<EmbeddingBag>({operands[0], operands[1], operands[2], c.tangent(3).get()}, a, c.where()));
  c.give(0, t);
}

void EmbeddingBagMax::infer(const Call& call, TensorImpl* const* outputs) {
  const Dim count = check_bags(call);
  const TensorImpl& weight = *call.operands[1];
  set_like(weight, {count, weight.shape()[1]}, *outputs[0]);
  set_like(*call.operands[0], {count, weight.shape()[1]}, *outputs[1]);
}

void EmbeddingBagMax::vjp(RuleContext& c) {
  if (!c.grad().defined()) return;
  const Tensor& rows = c.out(1);
  const Tensor g = where(lt(rows, 0), 0, c.grad());
  c.give(1, scatter_add(zeros_of(c.type(1), c.where()), 0, clamp(rows, Operand(Scalar(0))), g));
}

void EmbeddingBagMax::jvp(TangentContext& c) {
  const Tensor& rows = c.out(1);
  c.give(0, where(lt(rows, 0), 0, gather(c.tangent(1), 0, clamp(rows, Operand(Scalar(0))))));
}

// ---- batches of vmap ------------------------------------------------------------------------------------------------

namespace {

// Whether only the table differs between samples: then the tables are columns of one.
bool only_tables_differ(const BatchContext& c) {
  for (int i = 0; i < c.operands(); ++i)
    if (c.is_batched(i) != (i == 1)) return false;
  return true;
}

// The results on one table that has the columns of all; those after the first `wide` are the same for each sample.
void bags_of_columns(BatchContext& c, int wide) {
  const SourceLocation where = c.where();
  Tensors operands;
  for (int i = 0; i < c.operands(); ++i) operands.push_back(c.value(i));
  const Dim rows = c.shape(1)[0], width = c.shape(1)[1];
  operands[1] = reshape_to(Operand(move_dim(operands[1], 0, 1, where), where), {rows, c.size() * width});
  const Tensors results = c.run(operands);
  for (int i = 0; i < c.call().outputs; ++i) {
    const Tensor& y = results[static_cast<size_t>(i)];
    if (i >= wide) {
      c.give_same(i, y);
    } else {
      const Tensor split = reshape_to(Operand(y, where), {c.out_type(i).shape[0], c.size(), width});
      c.give(i, move_dim(split, 1, 0, where));
    }
  }
}

// Whether one table and one list of offsets serve all samples: then their bags are bags of one call. Offsets of each
// sample would have to be checked one by one, that each begins with 0. Frequencies of rows are those of a sample.
bool have_joined_bags(const BatchContext& c) {
  const bool counts_rows = c.attrs<EmbeddingBagAttrs>().embedding.scale_grad_by_freq;
  return !c.is_batched(1) && !c.is_batched(2) && !counts_rows;
}

// The bags that the offsets or the index of a sample list; with an end of the last one one more, of what is in no bag.
Dim listed_bags(const BatchContext& c) { return c.shape(c.has_operand(2) ? 2 : 0)[0]; }

// `count` times the number of samples before each: (batch).
Tensor before_each(const BatchContext& c, Dim count) {
  const Tensor sample = arange(Scalar(c.size()), TensorOptions{kInt64, c.out_type().device}, c.where());
  return mul(Operand(sample, c.where()), Operand(Scalar(count), c.where()));
}

// The results for the listed bags of all samples, one after the other.
Tensors joined_bags(BatchContext& c) {
  Tensors operands = all_operands(c);
  operands[1] = c.value(1);
  if (c.has_operand(2)) {
    const Tensor before = unsqueeze(Operand(before_each(c, c.shape(0)[0]), c.where()), 1);
    operands[2] = add(Operand(before, c.where()), Operand(c.value(2), c.where()));
  }
  for (size_t i = 0; i < operands.size(); ++i)
    if (i != 1 && operands[i].defined()) operands[i] = fold(operands[i], c.where());
  EmbeddingBagAttrs attrs = c.attrs<EmbeddingBagAttrs>();
  attrs.include_last_offset = false;
  return c.run(operands, &attrs);
}

// Of the listed bags of all samples, the bags of each.
Tensor bags_of_each(const BatchContext& c, const Tensor& all) {
  const Tensor listed = unfold_first(all, c.size(), listed_bags(c), c.where());
  return narrow(Operand(listed, c.where()), 1, 0, c.out_type().shape[0]);
}

}  // namespace

void EmbeddingBag::batch(BatchContext& c) {
  if (only_tables_differ(c)) return bags_of_columns(c, 1);
  if (!have_joined_bags(c)) return batch_by_loop(c);
  const Tensors all = joined_bags(c);
  c.give(0, bags_of_each(c, all[0]));
  const Dim entries = c.shape(0)[0];
  const Tensor listed = unfold_first(all[1], c.size(), entries, c.where());
  const Tensor bag = sub(listed, align(before_each(c, listed_bags(c)), listed.impl().rank(), c.where()));
  const Tensor is_in_bag = lt(bag, Operand(Scalar(c.out_type().shape[0]), c.where()));
  c.give(1, where(is_in_bag, bag, 0));
  c.give(2, where(is_in_bag, unfold_first(all[2], c.size(), entries, c.where()), 0));
}

void EmbeddingBagMax::batch(BatchContext& c) {
  if (only_tables_differ(c)) return bags_of_columns(c, 2);
  if (!have_joined_bags(c)) return batch_by_loop(c);
  const Tensors all = joined_bags(c);
  for (int i = 0; i < 2; ++i) c.give(i, bags_of_each(c, all[static_cast<size_t>(i)]));
}

}  // namespace ops

namespace {

[[noreturn]] void refuse(Operand index, Category category, std::string_view text) {
  fail(category, "embedding_bag", text, index.where());
}

void check_operands(Operand index, const Tensor& offsets, std::string_view mode, bool scale_grad_by_freq,
                    const Tensor& per_sample_weights) {
  const int rank = shape_of(index).rank();
  if (rank != 1 && rank != 2)
    refuse(index, Category::bad_dim,
           fmt::format("the index {} is not of one or two dims", describe(index.tensor())));
  if ((rank == 2) == offsets.defined())
    refuse(index, Category::bad_argument,
           "offsets are needed with an index of one dim, and not with one of two");
  if (mode != "sum" && mode != "mean" && mode != "max")
    refuse(index, Category::bad_argument, fmt::format("there is no mode \"{}\"", mode));
  if (mode == "max" && scale_grad_by_freq)
    refuse(index, Category::bad_argument, "mode max has no scale_grad_by_freq");
  if (mode != "sum" && per_sample_weights.defined())
    refuse(index, Category::bad_argument, "per_sample_weights need mode sum");
}

}  // namespace

Tensor embedding_bag(Operand given, const Tensor& weight, const Tensor& given_offsets,
                     bool scale_grad_by_freq, std::string_view mode, const Tensor& per_sample_weights,
                     bool include_last_offset, std::optional<int64_t> padding_idx) {
  const NamedCall call("embedding_bag", given.where());
  check_operands(given, given_offsets, mode, scale_grad_by_freq, per_sample_weights);
  const Tensor index = ops::as_index(given.tensor(), "embedding_bag", given.where());
  const Tensor offsets =
      given_offsets.defined() ? ops::as_index(given_offsets, "embedding_bag", given.where()) : Tensor();
  const ops::EmbeddingBagAttrs attrs{
      {ops::padding_row("embedding_bag", weight, padding_idx, given.where()), scale_grad_by_freq, false},
      include_last_offset && offsets.defined(),
      mode == "mean"};
  const SourceLocation where = effective_location(given.where());
  if (mode == "max")
    return ops::bags<ops::EmbeddingBagMax>({index.get(), weight.get(), offsets.get()}, attrs, where);
  return ops::bags<ops::EmbeddingBag>({index.get(), weight.get(), offsets.get(), per_sample_weights.get()},
                                      attrs, where);
}

}  // namespace retrograd
