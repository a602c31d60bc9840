// More functions that select by positions or values: index, index_fill, put, argwhere, isin.
//
// All but isin are made of the ops of ops/index_ops.h and ops/indexing.h. isin is an op of its own on sorted values.
// Index tensors are int64 (int32 is converted); negative positions count from the end.
#pragma once

#include "ops/indexing.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// (x, sorted): whether each element of x is among the values of a sorted vector, whose NaNs are last; or is not.
struct IsIn {
  struct Attrs {
    bool invert;
    void visit(AttrVisitor& v) { v.field("invert", invert); }
  };
  static constexpr std::string_view name = "isin",
                                    doc = "whether elements are among the values of a sorted vector",
                                    no_derivative = "it gives bool";
  static constexpr std::string_view operands = "x, sorted";
  static constexpr std::string_view example = "f32[2,3], f32[4] {invert=false} : bool[2,3]";
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void batch(BatchContext& c);
};

using IndexFunctionOps = OpList<IsIn>;

}  // namespace ops

/// getitem() by libtorch's name: index(x, {Slice(), t}). Errors as for getitem(). torch.Tensor.index.
Tensor index(Operand input, const Indices& indices);
/// `input` with `value` (a number or a 0-dim tensor, converted to its dtype) in the entries `index` (one dim, or a
/// number) of `dim`. The gradient of a value counts each element once, however often its entry is named. Errors:
/// bad_dim, dtype_mismatch, index_out_of_range. torch.index_fill.
Tensor index_fill(Operand input, int64_t dim, const Tensor& index, Operand value);
/// `input` with the elements of source written (or added) at flat positions; of several for one position the last
/// counts. Errors: dtype_mismatch (source has the dtype of input), shape_mismatch unless index and source have equally
/// many elements, index_out_of_range. torch.put.
Tensor put(Operand input, const Tensor& index, const Tensor& source, bool accumulate = false);
/// nonzero() by NumPy's name. torch.argwhere.
Tensor argwhere(Operand input);
/// Whether each of `elements` equals one of `test_elements` (or, with `invert`, none): bool of the shape of `elements`.
/// One of the two may be a number; dtypes are promoted; NaN equals nothing. `assume_unique` changes nothing. Errors:
/// bad_argument for two numbers, dtype_mismatch. torch.isin.
Tensor isin(Operand elements, Operand test_elements, bool assume_unique = false, bool invert = false);

}  // namespace retrograd
#pragma GCC visibility pop
