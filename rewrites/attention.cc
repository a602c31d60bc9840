// Joined gradients of attention. If one projection gives query, key and value, it needs their gradients joined along
// the last dim: attention computes them that way, so that they need not be copied.
#include "ops/attention.h"

#include "ops/shape_ops.h"
#include "rewrites/rules.h"

namespace retrograd::inline v0::rewrites {

ValueId join_gradients(Match& m, std::span<const ValueId> values, int dim) {
  if (values.size() != 3) return kNoValue;
  const Node* backward = nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    const Node* view = m.giver(values[i], op<ops::Reshape>);
    const ValueId x = view ? m.operand(*view, 0) : kNoValue;
    const Node* giver = m.giver(x, op<ops::AttentionBackward>);
    if (!giver || x != giver->first_result + static_cast<ValueId>(i) || (backward && giver != backward))
      return kNoValue;
    const Shape& seen = m.type(values[i]).shape;  // (..., L, H * E)
    if (dim != seen.rank() - 1 || !merges(m.type(x).shape, seen, dim) || !m.is_used_in_line(x))
      return kNoValue;
    backward = giver;
  }
  const std::span<const ValueId> given = m.operands(*backward);
  const auto is_like_query = [&](ValueId v) { return ir::same_type(m.type(v), m.type(given[0])); };
  if (!is_like_query(given[1]) || !is_like_query(given[2])) return kNoValue;
  return m.add(op<ops::AttentionBackwardJoined>, {given.begin(), given.end()}, backward->attrs, backward);
}

}  // namespace retrograd::rewrites
