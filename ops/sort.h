// Sorting along a dim: sort, argsort, topk.
#pragma once

#include "ops/op.h"
#include "ops/values_and_indices.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// (x): the first `count` entries of the sorted dim and their positions. Stable; nan counts as the largest. topk is the
/// same op.
struct Sort {
  struct Attrs {
    int64_t dim;
    Dim count;
    bool descending;
    void visit(AttrVisitor& v) {
      v.field("dim", dim);
      v.field("count", count);
      v.field("descending", descending);
    }
  };
  static constexpr std::string_view name = "sort", doc = "entries of a dim in order, and their places";
  static constexpr std::string_view example =
      "f32[4,3] {dim=0, count=4, descending=false} : f32[4,3], i64[4,3]";
  static constexpr int8_t arity = 1, outputs = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static SaveSet saves_for(const Call&, uint64_t) { return {0, uint64_t{2}}; }  // the positions
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_dims;
};

using SortOps = OpList<Sort>;

}  // namespace ops

/// Entries of `dim` in order. Entries that are equal keep their order, whatever `stable` says.
ValuesAndIndices sort(Operand input, int64_t dim = -1, bool descending = false, bool stable = false);
Tensor argsort(Operand input, int64_t dim = -1, bool descending = false, bool stable = false);
/// The k largest (or smallest) entries of `dim`, in order whatever `sorted` says. Error(index_out_of_range) unless 0 <=
/// k <= size.
ValuesAndIndices topk(Operand input, Dim k, int64_t dim = -1, bool largest = true, bool sorted = true);

}  // namespace retrograd
#pragma GCC visibility pop
