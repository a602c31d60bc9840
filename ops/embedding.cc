// See ops/embedding.h.
#include "ops/embedding.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/attributes.h"
#include "ops/batching.h"
#include "ops/creation.h"
#include "ops/embedding_parts.h"
#include "ops/index_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace ops {

namespace {

// Common checks of all ops of the family. -1: no row is padding.
void check_table(const Call& call, const TensorImpl& index, const EmbeddingAttrs& a, Dim rows) {
  if (index.dtype() != kInt64) fail_call(call, Category::dtype_mismatch, "the index is not int64");
  check_padding(call, a, rows);
}

}  // namespace

void Embedding::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &index = *call.operands[0], &weight = *call.operands[1];
  if (weight.rank() != 2) fail_call(call, Category::bad_dim, "the weight is not a matrix");
  check_table(call, index, call.attrs_as<Attrs>(), weight.shape()[0]);
  Shape shape = index.shape();
  shape.push_back(weight.shape()[1]);
  outputs[0]->set_type(weight.dtype(), weight.device(), shape);
}

void Embedding::vjp(RuleContext& c) {
  const Tensor& index = c.in(0).tensor();
  c.give(1, emit<EmbeddingBackward>({index.get(), c.grad().get()}, {c.attrs<Attrs>(), c.type(1).shape[0]},
                                    c.where()));
}

void Embedding::jvp(TangentContext& c) {
  c.give(0, emit<Embedding>({c.call().operands[0], c.tangent(1).get()}, c.attrs<Attrs>(), c.where()));
}

namespace {

void check_rows(const Call& call, const TensorImpl& index, const TensorImpl& g) {
  Shape expected = index.shape();
  expected.push_back(g.rank() ? g.shape().back() : Dim(0));
  if (!(g.shape() == expected))
    fail_call(call, Category::shape_mismatch, "gradient and index do not fit together");
}

}  // namespace

void EmbeddingBackward::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& g = *call.operands[1];
  const Attrs& a = call.attrs_as<Attrs>();
  check_rows(call, *call.operands[0], g);
  const Shape shape{a.rows, g.shape().back()};
  check_sizes(call, shape);
  check_table(call, *call.operands[0], a.embedding, a.rows);
  outputs[0]->set_type(g.dtype(), g.device(), shape);
}

void EmbeddingBackward::vjp(RuleContext& c) {
  EmbeddingAttrs attrs = c.attrs<Attrs>().embedding;
  attrs.without_padding = true;
  c.give(1, emit<Embedding>({c.in(0).tensor().get(), c.grad().get()}, attrs, c.where()));
}

void EmbeddingBackward::jvp(TangentContext& c) {
  c.give(0, emit<EmbeddingBackward>({c.call().operands[0], c.tangent(1).get()}, c.attrs<Attrs>(), c.where()));
}

void EmbeddingAdd::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &x = *call.operands[0], &g = *call.operands[2];
  check_rows(call, *call.operands[1], g);
  if (x.rank() != 2 || x.dtype() != g.dtype() || !(x.shape()[1] == g.shape().back()))
    fail_call(call, Category::shape_mismatch, "table and gradient do not fit together");
  check_table(call, *call.operands[1], call.attrs_as<Attrs>(), x.shape()[0]);
  outputs[0]->set_type(x.dtype(), x.device(), x.shape());
}

void EmbeddingAdd::vjp(RuleContext& c) {
  if (c.needs(0)) c.give(0, c.grad());
  if (!c.needs(2)) return;
  EmbeddingAttrs attrs = c.attrs<Attrs>();
  attrs.without_padding = true;
  c.give(2, emit<Embedding>({c.in(1).tensor().get(), c.grad().get()}, attrs, c.where()));
}

void EmbeddingAdd::jvp(TangentContext& c) {
  TensorImpl* const index = c.call().operands[1];
  const EmbeddingAttrs& attrs = c.attrs<Attrs>();
  if (!c.needs(2))
    c.give(0, c.tangent(0));
  else if (c.needs(0))
    c.give(0, emit<EmbeddingAdd>({c.tangent(0).get(), index, c.tangent(2).get()}, attrs, c.where()));
  else
    c.give(0, emit<EmbeddingBackward>({index, c.tangent(2).get()}, {attrs, c.type(0).shape[0]}, c.where()));
}

// ---- batches of vmap ------------------------------------------------------------------------------------------------

namespace {

// Operand i, an index of each sample, as one of rows of a table of its own, (batch, entries, width).
Tensor row_index(BatchContext& c, int i, Dim width) {
  const Tensor flat = reshape_to(Operand(c.all(i), c.where()), {c.size(), c.shape(i).numel(), 1});
  return expand_to(Operand(flat, c.where()), {c.size(), c.shape(i).numel(), width});
}

bool skips_padding(const EmbeddingAttrs& a) { return a.padding_idx >= 0; }
bool adds_all_rows(const EmbeddingAttrs& a) { return !skips_padding(a) && !a.scale_grad_by_freq; }

// The tables (batch, rows, width) plus the gradients of each sample, the operand after the index.
Tensor with_rows_added(BatchContext& c, const Tensor& tables, int index) {
  const Dim width = c.shape(index + 1).back();
  const Tensor entries =
      reshape_to(Operand(c.all(index + 1), c.where()), {c.size(), c.shape(index).numel(), width});
  return scatter_add(Operand(tables, c.where()), 1, row_index(c, index, width), entries);
}

}  // namespace

void Embedding::batch(BatchContext& c) {
  const SourceLocation where = c.where();
  if (!c.is_batched(1)) {
    const Tensor operands[] = {c.value(0), c.value(1)};
    return c.give(c.run(operands));
  }
  const Attrs& a = c.attrs<Attrs>();
  if (a.without_padding && skips_padding(a)) return batch_by_loop(c);
  const Tensor rows = gather(Operand(c.all(1), where), 1, row_index(c, 0, c.shape(1)[1]));
  c.give(0, reshape_to(Operand(rows, where), c.with_batch(c.out_type().shape)));
}

// One index for all samples: their gradients are columns of one table.
void EmbeddingBackward::batch(BatchContext& c) {
  const SourceLocation where = c.where();
  const Shape& g = c.shape(1);
  const Dim width = g.back();
  if (!c.is_batched(0)) {
    Shape wide = g;
    wide[g.rank() - 1] = c.size() * width;
    const Tensor columns = move_dim(c.value(1), 0, g.rank() - 1, where);
    const Tensor operands[] = {c.value(0), reshape_to(Operand(columns, where), wide)};
    const Tensor table = c.run(operands)[0];
    const Tensor tables = reshape_to(Operand(table, where), {c.out_type().shape[0], c.size(), width});
    return c.give(0, transpose(Operand(tables, where), 0, 1));
  }
  if (!adds_all_rows(c.attrs<Attrs>().embedding)) return batch_by_loop(c);
  const Tensor zeros =
      zeros_of({c.out_type().dtype, c.out_type().device, c.with_batch(c.out_type().shape)}, where);
  c.give(0, with_rows_added(c, zeros, 0));
}

void EmbeddingAdd::batch(BatchContext& c) {
  if (!adds_all_rows(c.attrs<Attrs>())) return batch_by_loop(c);
  c.give(0, with_rows_added(c, c.all(0), 1));
}

}  // namespace ops

Tensor embedding(Operand weight, const Tensor& indices, std::optional<int64_t> padding_idx,
                 bool scale_grad_by_freq) {
  const SourceLocation where = weight.where();
  const NamedCall call("embedding", where);
  const Tensor& table = weight.defined_tensor("embedding");
  const Tensor i = ops::as_index(indices, "embedding", where);
  const int64_t padding = ops::padding_row("embedding", table, padding_idx, where);
  return ops::emit<ops::Embedding>({i.get(), table.get()}, {padding, scale_grad_by_freq, false}, where);
}

Tensor one_hot(Operand index, int64_t num_classes) {
  const NamedCall call("one_hot", index.where());
  const Tensor& i = index.tensor();
  if (i.dtype() != kInt64)
    fail(Category::dtype_mismatch, "one_hot", fmt::format("the index must be int64, this is {}", describe(i)),
         index.where());
  if (num_classes < -1 || num_classes == 0)
    fail(Category::bad_argument, "one_hot", fmt::format("{} classes", num_classes), index.where());
  if (num_classes < 0) {
    const std::vector<int64_t> values = i.to_vector<int64_t>(index.where());
    if (values.empty())
      fail(Category::bad_argument, "one_hot", "no classes can be found in an empty index", index.where());
    num_classes = Dim::checked_add(*std::max_element(values.begin(), values.end()), 1);
    if (*std::min_element(values.begin(), values.end()) < 0)
      fail(Category::bad_argument, "one_hot", "an entry is negative", index.where());
  }
  Shape shape = i.impl().shape();
  shape.push_back(num_classes);
  const Tensor none = expand_to(full({}, 0, {kInt64, i.device()}, index.where()), shape);
  return scatter(Operand(none, index.where()), -1, unsqueeze(index, -1), Operand(Scalar(1), index.where()));
}

}  // namespace retrograd
