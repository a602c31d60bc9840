// See rewrites/rewrites.h and rewrites/rules.h.
#include "rewrites/rewrites.h"

#include <array>

#include "engine/error.h"
#include "ops/shape_ops.h"
#include "rewrites/rules.h"

namespace retrograd::inline v0::rewrites {

std::span<const Rewrite> simplifications() {
  constexpr size_t kMost = 256;
  struct Rules {
    std::array<Rewrite, kMost> rules;
    size_t count = 0;
  };
  static const Rules all = [] {
    Rules made{};
    for (const auto some : {number_rules(), shape_rules(), table_rules()})
      for (const Rewrite& rule : some) {
        RG_ASSERT(made.count < kMost);
        made.rules[made.count++] = rule;
      }
    return made;
  }();
  return {all.rules.data(), all.count};
}

bool is_row_major(const Match& m, ValueId v) {
  for (const Node* node = m.giver(v); node; node = m.giver(m.operand(*node, 0))) {
    if (ir::makes_memory(*node->op) || node->op == &op<ops::Contiguous>) return true;
    if (!node->op->is(Trait::row_major)) return false;
  }
  return false;
}

bool is_shape_of(const Match& m, ValueId v, const Shape& size) {
  const Shape& shape = m.type(v).shape;
  return std::equal(shape.begin(), shape.end(), size.begin(), size.end(),
                    [](Dim a, Dim b) { return a.raw() == b.raw(); });
}

bool merges(const Shape& from, const Shape& to, int dim) {
  if (from.rank() != to.rank() + 1) return false;
  for (int d = 0; d < to.rank(); ++d)
    if (d != dim && to[d].raw() != from[d < dim ? d : d + 1].raw()) return false;
  return true;
}

}  // namespace retrograd::rewrites
