// In-place operations: a function's result is written into the memory of its first operand, and gradients follow.
//
// In this order: the checks; the function runs on a stand-in for the old value; its result is written into self's
// memory and the version is raised; self takes over the result's place in the graph.
//   * The stand-in shares self's memory through a storage of its own. If a record still holds that storage after the
//     call (its formula needs the overwritten value), it is given a private copy before the write.
//   * A saved result refers to self's memory, so that a later write makes backward fail with version_mismatch.
//   * Hooks stay with the record of the old value; retain_grad moves along with the tensor.
//   * A write through a view gives the base a new record (as_strided_scatter). Raising the base's epoch makes all its
//     views stale: refresh_view() gives a view a new record (as_strided of the base) when it is next used. So many
//     views, a slice of a slice and the base itself agree without references to one another. Tangents of forward mode
//     follow the same two steps.
//   * Slots of the new history that hold self (x.copy_(x.sin()): sin saved x) get a cell of their own, else self would
//     keep itself alive.
// While a function is recorded nothing is written: the memory gets a new value (Emitter::write). While a backward is
// recorded in-place writes are refused.
#pragma once

#include <functional>
#include <string_view>

#include "engine/op.h"
#include "engine/tensor.h"

namespace retrograd::inline v0 {

/// Writes op(self) into self and returns self; `name` is the op's name, with its underscore.
/// Errors: leaf_inplace (a leaf that requires a gradient, or a view of one, with gradients on), view_inplace_forbidden
/// (a view made by split, chunk or unbind, or under no_grad, when a gradient would follow), overlapping_write (self
/// shows an element twice, or another operand overlaps it in part, or at all where elements are written at indices),
/// dtype_mismatch (the result cannot be cast to self's dtype), shape_mismatch (it has another shape). On an error
/// nothing has been written.
const Tensor& apply_inplace(const Tensor& self, const std::function<Tensor(const Tensor&)>& op,
                            std::string_view name, SourceLocation where = SourceLocation::current());

/// Gives self the sizes, strides and offset of op(self), which is a view of it (transpose_, squeeze_), and returns self.
/// No value is written, but the version is raised: whoever saved self knows it as it was. The gradient goes back through
/// the view. Errors: leaf_inplace for a leaf that requires a gradient, also under no_grad, since its .grad has its
/// shape; view_inplace_forbidden as above. A recorded function does this to tensors of its own only.
const Tensor& change_geometry(const Tensor& self, const std::function<Tensor(const Tensor&)>& op,
                              std::string_view name, SourceLocation where = SourceLocation::current());

/// The fast path of an elementwise op: when nothing is recorded, no tangent is carried and all operands have self's
/// type, runs the op with self as its output. Otherwise does nothing and returns false.
bool write_directly(const OpInfo& op, const Tensor& self, std::span<TensorImpl* const> operands, void* attrs,
                    SourceLocation where);

/// Completes a write into `self` that a user-defined function has made: self takes over the place of `result` in the
/// graph, and its base and views follow. Errors as above: leaf_inplace, view_inplace_forbidden.
void take_over_history(const Tensor& self, const Tensor& result, std::string_view name, SourceLocation where);

/// Brings the record and tangents of a view up to date with its base, before it is used where gradients are on.
/// Error(view_inplace_forbidden) when its memory was written to and it was made by split, chunk or unbind, or under
/// no_grad.
void refresh_view(TensorImpl& view);

/// Whether several indices of `x` show the same element.
bool shows_an_element_twice(const TensorImpl& x);

/// Whether refresh_view would refuse it.
bool is_outdated(const TensorImpl& view);

}  // namespace retrograd
