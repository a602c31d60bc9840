// Joining tensors: cat and stack.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// Tensors of one dtype, equal in all dims but one, concatenated along that dim.
struct Cat {
  struct Attrs {
    int64_t dim;
    void visit(AttrVisitor& v) { v.field("dim", dim); }
  };
  static constexpr std::string_view name = "cat", doc = "tensors concatenated along a dim";
  static constexpr std::string_view example = "f32[2,3], f32[4,3] {dim=0} : f32[6,3]";
  static constexpr int8_t arity = -1;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c) { op_detail::linear_jvp(c); }
  static constexpr auto batch = batch_dims;
};

using JoinOps = OpList<Cat>;

}  // namespace ops

/// Concatenates tensors along `dim`; dtypes are promoted, 1-dim tensors without elements are skipped. Errors:
/// bad_argument (no tensors), bad_dim (different ranks), shape_mismatch (different sizes), dtype_mismatch.
Tensor cat(const Tensors& tensors, int64_t dim = 0, SourceLocation where = SourceLocation::current());
/// Tensors of one shape along a new dim.
Tensor stack(const Tensors& tensors, int64_t dim = 0, SourceLocation where = SourceLocation::current());

}  // namespace retrograd
#pragma GCC visibility pop
