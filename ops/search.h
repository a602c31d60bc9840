// Where values belong in sorted sequences: searchsorted, bucketize.
//
// The result is a position, so there is no derivative. The comparison is PyTorch's: a NaN value belongs behind
// everything.
#pragma once

#include <optional>

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// (sequences [.., n], values [.., m], sorter or none): one sequence for each row of values, or one dim for all of
/// them. With a sorter, int64 of the sequences' shape, entry i of a sequence is the one at sorter[i].
struct SearchSorted {
  struct Attrs {
    bool right;  // behind equal entries
    bool out_int32;
    void visit(AttrVisitor& v) {
      v.field("right", right);
      v.field("out_int32", out_int32);
    }
  };
  static constexpr std::string_view name = "searchsorted", doc = "the places of values in sorted sequences",
                                    no_derivative = "a place is constant almost everywhere";
  static constexpr std::string_view operands = "sequences, values, sorter";
  static constexpr std::string_view example =
      "f32[2,4], f32[2,3], i64[2,4] {right=false, out_int32=false} : i64[2,3]";
  static constexpr int8_t arity = 3;
  static constexpr uint8_t optional = 4;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void batch(BatchContext& c);
};

using SearchOps = OpList<SearchSorted>;

}  // namespace ops

/// For each element of `input` the number of entries of its sequence that are less, or not greater if `right` (or side
/// "right"): int64, or int32 if out_int32. `sorted_sequence` is [.., n], ascending along the last dim, and `input` [..,
/// m] with the same leading sizes; or it is one dim, for an input of any shape or a number. `sorter` (int64): the order
/// that sorts it. Errors: dtype_mismatch unless both tensors have one dtype, shape_mismatch, bad_dim, bad_argument
/// (side), index_out_of_range (sorter).
Tensor searchsorted(const Tensor& sorted_sequence, Operand input, bool out_int32 = false, bool right = false,
                    std::optional<std::string_view> side = {}, const Tensor& sorter = {});
/// searchsorted() in one dim of boundaries.
Tensor bucketize(Operand input, const Tensor& boundaries, bool out_int32 = false, bool right = false);

}  // namespace retrograd
#pragma GCC visibility pop
