// Gradients of attention beside each other. Where one projection gives query, key and value, it takes back their
// gradients joined along the last dim: there attention computes them, and they are not copied.
#include "ops/attention.h"

#include "ops/shape_ops.h"
#include "rewrites/rules.h"

namespace retrograd::rewrites {
namespace {

// `to` is `from`, (..., H, E), with the last two dims as one.
bool merges_heads(const Shape& from, const Shape& to) {
  const int kept = to.rank() - 1;
  return from.rank() == to.rank() + 1 && kept >= 0 &&
         std::equal(to.begin(), to.begin() + kept, from.begin(),
                    [](Dim a, Dim b) { return a.raw() == b.raw(); });
}

}  // namespace

ValueId join_gradients(Match& m, std::span<const ValueId> values, int dim) {
  const Node* backward = nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    const Node* view = m.giver(values[i], op<ops::Reshape>);
    const ValueId x = view ? m.operand(*view, 0) : kNoValue;
    const Node* giver = m.giver(x, op<ops::AttentionBackward>);
    if (!giver || x != giver->first_result + static_cast<ValueId>(i) || (backward && giver != backward))
      return kNoValue;
    if (!merges_heads(m.type(x).shape, m.type(values[i]).shape) || dim != m.type(values[i]).shape.rank() - 1)
      return kNoValue;
    if (!m.is_used_in_line(x)) return kNoValue;
    backward = giver;
  }
  if (values.size() != 3) return kNoValue;
  const std::span<const ValueId> given = m.operands(*backward);
  const auto is_like_query = [&](ValueId v) { return ir::same_type(m.type(v), m.type(given[0])); };
  if (!is_like_query(given[1]) || !is_like_query(given[2])) return kNoValue;
  return m.add(op<ops::AttentionBackwardJoined>, {given.begin(), given.end()}, backward->attrs, backward);
}

}  // namespace retrograd::rewrites
