// What the files of rules share.
#pragma once

#include "ir/passes/rewrite.h"
#include "ops/op.h"

namespace retrograd::rewrites {

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

/// v lies in row-major memory, whatever lies there at a run.
bool is_row_major(const Match& m, ValueId v);
/// v in place of a result that is row-major, as those of all ops but views are.
inline bool become_row_major(Match& m, ValueId v) { return is_row_major(m, v) && m.become(v); }
/// `size` is the shape of v, symbols included.
bool is_shape_of(const Match& m, ValueId v, const Shape& size);
/// `to` is `from` with dim number `dim` and the next one as one, as far as the other dims tell.
bool merges(const Shape& from, const Shape& to, int dim);

/// Values behind each other along a dim, computed so, as a value of whatever shape has their elements in that order, if
/// they are the gradients of one attention, in order, and their memory is used for nothing else. kNoValue where it is
/// not so. That whoever calls it uses the values as the last is the caller's care.
ValueId join_gradients(Match& m, std::span<const ValueId> values, int dim);

std::span<const Rewrite> number_rules();
std::span<const Rewrite> shape_rules();
std::span<const Rewrite> table_rules();

}  // namespace retrograd::rewrites
