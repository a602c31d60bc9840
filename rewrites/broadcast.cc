// Rules of broadcasting: elementwise ops broadcast their operands, so these need not be expanded before.
//
//   mul(expand(a), b)            mul(a, b)                    where b has the shape of the result
//   exp(expand(a))               expand(exp(a))               where only elementwise ops use it
//   add(expand(a), expand(b))    expand(add(a, b))            likewise, a and b of one shape
//
// An element has the same bits at any address, so these are exact. But other ops may add in another order where strides
// are 0, therefore the second and third rule apply only if no such op uses the result. Random ops are excluded: the
// number that an element draws depends on its position.
#include <algorithm>

#include "ops/shape_ops.h"
#include "rewrites/rewrites.h"
#include "rewrites/rules.h"

namespace retrograd::inline v0::rewrites {
namespace {

bool have_same_shape(const Match& m, ValueId a, ValueId b) { return is_shape_of(m, a, m.type(b).shape); }

bool drop_expand(Match& m) {
  if (m.op().is(Trait::random)) return false;
  std::vector<ValueId> operands(m.operands().begin(), m.operands().end());
  const auto is_expanded = [&](ValueId v) { return m.giver(v, op<ops::Expand>) != nullptr; };
  const auto is_full = [&](ValueId v) {
    return v != kNoValue && !is_expanded(v) && is_shape_of(m, v, m.type().shape);
  };
  const auto expanded = std::ranges::find_if(operands, is_expanded);
  if (expanded == operands.end() || std::ranges::none_of(operands, is_full)) return false;
  const Node* inner = m.giver(*expanded);
  *expanded = m.operand(*inner, 0);
  const std::vector<std::byte> attrs(m.attribute_bytes().begin(), m.attribute_bytes().end());
  return m.become(m.op(), std::move(operands), attrs.empty() ? nullptr : attrs.data(), inner);
}

bool expand_afterwards(Match& m) {
  if (m.op().is(Trait::random) || !m.is_used_elementwise()) return false;
  std::vector<ValueId> small;
  ValueId first = kNoValue;
  for (ValueId v : m.operands()) {
    small.push_back(kNoValue);
    if (v == kNoValue) continue;
    const Node* expand = m.giver(v, op<ops::Expand>);
    if (!expand || !is_shape_of(m, v, m.type().shape)) return false;
    small.back() = m.operand(*expand, 0);
    if (first == kNoValue) first = small.back();
    if (!have_same_shape(m, small.back(), first)) return false;
  }
  if (first == kNoValue) return false;
  const ops::ShapeAttrs size{m.type().shape};
  const ValueId result = m.add(m.op(), small, m.attribute_bytes().data());
  return result != kNoValue && have_same_shape(m, result, first) &&
         m.become(op<ops::Expand>, {result}, &size);
}

constexpr Rewrite kRules[] = {{nullptr, drop_expand}, {nullptr, expand_afterwards}};

}  // namespace

std::span<const Rewrite> broadcasts() { return kRules; }

}  // namespace retrograd::rewrites
