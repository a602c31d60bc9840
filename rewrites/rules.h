// Shared by the files of rules.
#pragma once

#include "ir/passes/rewrite.h"
#include "ops/op.h"

namespace retrograd::inline v0::rewrites {

using ir::kNoValue;
using ir::Match;
using ir::Node;
using ir::Rewrite;
using ir::ValueId;

template <class Op>
const OpInfo& op = ops::info<Op>;

/// Attributes of a node of Op.
template <class Op>
const typename Op::Attrs& attrs_of(const Node& node) {
  return *static_cast<const typename Op::Attrs*>(node.attrs);
}
template <class Op>
const typename Op::Attrs& attrs_of(const Match& m) {
  return m.attrs<typename Op::Attrs>();
}

/// v is in row-major memory, for any memory at run time.
bool is_row_major(const Match& m, ValueId v);
/// v replaces a result that is row-major, like those of all ops but views.
inline bool become_row_major(Match& m, ValueId v) { return is_row_major(m, v) && m.become(v); }
/// `size` is the shape of v, symbols included.
bool is_shape_of(const Match& m, ValueId v, const Shape& size);
/// `to` is `from` with dims `dim` and `dim` + 1 merged, as far as the other dims tell.
bool merges(const Shape& from, const Shape& to, int dim);

/// Computes values that are concatenated along a dim directly as one value, of any shape with the same elements in the
/// same order, if they are the gradients of one attention, in order, and their memory is used for nothing else.
/// kNoValue otherwise. The caller must ensure that it is the last user of the values.
ValueId join_gradients(Match& m, std::span<const ValueId> values, int dim);

std::span<const Rewrite> number_rules();
std::span<const Rewrite> shape_rules();
std::span<const Rewrite> table_rules();

}  // namespace retrograd::rewrites
