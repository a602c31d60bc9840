// Rules of sums over rows of tables.
//
// If a table is both looked up in and multiplied with, as when it is tied to a model's last layer, its gradient is the
// sum of a product and of rows added into zeros. The rule adds the rows to the product instead: no second table is
// written and read.
#include "engine/bookkeeping.h"
#include "ops/arithmetic.h"
#include "ops/embedding.h"
#include "rewrites/rules.h"

namespace retrograd::inline v0::rewrites {
namespace {

bool plus_rows(Match& m) {
  for (const size_t i : {1, 0}) {
    if (m.operand(0) == kNoValue || m.operand(1) == kNoValue) return false;
    const Node* rows = m.giver(m.operand(i), op<ops::EmbeddingBackward>);
    const ValueId table = m.operand(1 - i);
    if (!rows || m.type(table).dtype != m.type().dtype || !is_shape_of(m, table, m.type().shape) ||
        !is_row_major(m, table))
      continue;
    ops::EmbeddingAdd::Attrs attrs = attrs_of<ops::EmbeddingBackward>(*rows).embedding;
    return m.become(op<ops::EmbeddingAdd>, {table, m.operand(*rows, 0), m.operand(*rows, 1)}, &attrs, rows);
  }
  return false;
}

constexpr Rewrite kTableRules[] = {
    {&ops::info<ops::Add>, plus_rows},
    {&ops::accumulate, plus_rows},
};

}  // namespace

std::span<const Rewrite> table_rules() { return kTableRules; }

}  // namespace retrograd::rewrites
