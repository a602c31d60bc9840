// compose(): finds patterns (cpu/fused/levels/patterns.h) among the instructions of a group and replaces each by one
// instruction.
//
// Instructions are scanned from last to first, so that a pattern begins at the result that others use; of the
// matching patterns, the one with the most ops is taken. Values inside a pattern have no other uses, so nothing is
// computed twice. Operands of a commutative op may be swapped: a sum or a product has the same bits.
#include "cpu/fused/fused_compose.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpu/fused/levels/patterns.h"
#include "cpu/kernels/levels/spans.h"
#include "engine/bookkeeping.h"

namespace retrograd::inline v0::cpu {
namespace {

// A place of a pattern's expression: an op, an operand In<K>, or a number. An expression is an array of them, each op
// before its operands.
struct Term {
  const OpInfo* op = nullptr;
  int operands = 0;  // of the op
  int input = -1;    // K
};

template <class E>
inline constexpr int terms = 1;
template <class Op, class... Args>
inline constexpr int terms<patterns::Apply<Op, Args...>> = 1 + (terms<Args> + ...);
template <class E>
inline constexpr int ops_in = 0;
template <class Op, class... Args>
inline constexpr int ops_in<patterns::Apply<Op, Args...>> = 1 + (ops_in<Args> + ...);

template <int K>
constexpr void write(Term*& out, std::type_identity<patterns::In<K>>) {
  *out++ = {.input = K};
}
constexpr void write(Term*& out, std::type_identity<patterns::Num>) { *out++ = {}; }
template <class Op, class... Args>
constexpr void write(Term*& out, std::type_identity<patterns::Apply<Op, Args...>>) {
  *out++ = {.op = &ops::info<Op>, .operands = sizeof...(Args)};
  (write(out, std::type_identity<Args>()), ...);
}
template <class E>
constexpr std::array<Term, terms<E>> expression = [] {
  std::array<Term, terms<E>> all;
  Term* out = all.data();
  write(out, std::type_identity<E>());
  return all;
}();

// Compares an expression with the instructions of a group. What is found is right after at() returned true.
class Match {
 public:
  Match(const FusedDraft& draft, bool wide) : draft_(draft), wide_(wide) {}

  std::array<int, kMaxSpanInputs> in = {};
  std::vector<int> parts = {}, inner = {};  // nodes; instructions within

  // Whether value v is what is written from `term` on, which is moved behind it.
  bool at(const Term*& term, int v, bool root = false) {
    const Term& t = *term++;
    if (!t.op && t.input < 0) return v == FusedDraft::kNumber;
    if (!t.op) return (in[static_cast<size_t>(t.input)] = v) >= 0;
    const size_t had_parts = parts.size(), had_inner = inner.size();
    const FusedDraft::Instruction* i = enter(v, t.op, root);
    if (!i) return false;
    const Term* const first = term;
    std::array<int, kMaxSpanInputs> values = i->in;
    if (operands(term, t.operands, values)) return true;
    if (t.operands == 2 && t.op->is(Trait::commutative)) {
      parts.resize(had_parts + 1);
      inner.resize(had_inner + 1);
      term = first;
      std::swap(values[0], values[1]);
      if (operands(term, 2, values)) return true;
    }
    parts.resize(had_parts);
    inner.resize(had_inner);
    return false;
  }

 private:
  bool operands(const Term*& term, int n, const std::array<int, kMaxSpanInputs>& values) {
    for (size_t k = 0; k < static_cast<size_t>(n); ++k)
      if (!at(term, values[k])) return false;
    return true;
  }

  const FusedDraft::Value& value(int v) const { return draft_.values[static_cast<size_t>(v)]; }

  // The instruction that computes a value by `op`; null if none may be computed here.
  const FusedDraft::Instruction* enter(int v, const OpInfo* op, bool root) {
    if (v < 0 || value(v).kind != FusedDraft::Value::Kind::result) return nullptr;
    const FusedDraft::Instruction& i = draft_.code[static_cast<size_t>(value(v).index)];
    const OpInfo* given = i.op == &ops::accumulate ? &ops::info<ops::Add> : i.op;
    if (given != op || i.wide != wide_ || i.composed || i.absorbed) return nullptr;
    if (!root && (value(v).uses != 1 || value(v).output >= 0 || value(v).reduced)) return nullptr;
    parts.push_back(i.parts[0]);
    inner.push_back(value(v).index);
    return &i;
  }

  const FusedDraft& draft_;
  bool wide_;
};

struct Pattern {
  const Term* expression;
  const Spans* spans;
  int ops, inputs;
};

template <class... E>
void add_patterns(std::vector<Pattern>& all, ops::OpList<E...>) {
  static_assert(((patterns::inputs<E> <= kMaxSpanInputs) && ...));
  const SpanTable spans = span_table<ops::OpList<E...>>();
  size_t row = 0;
  (all.push_back({expression<E>.data(), &spans[row++], ops_in<E>, patterns::inputs<E>}), ...);
}
template <class... Lists>
std::vector<Pattern> patterns_of(patterns::ListOfLists<Lists...>) {
  std::vector<Pattern> all;
  (add_patterns(all, Lists()), ...);
  std::ranges::stable_sort(all, [](const Pattern& a, const Pattern& b) { return a.ops > b.ops; });
  return all;
}

const std::vector<Pattern>& all_patterns() {
  static const std::vector<Pattern> all = patterns_of(patterns::AllPatterns());
  return all;
}

void replace(FusedDraft& draft, size_t at, const Pattern& pattern, const Match& match) {
  for (int inner : match.inner) draft.code[static_cast<size_t>(inner)].absorbed = true;
  FusedDraft::Instruction& i = draft.code[at];
  i.absorbed = false;
  i.composed = true;
  i.span = i.wide ? pattern.spans->f64 : pattern.spans->f32;
  i.inputs = pattern.inputs;
  i.in = match.in;
  i.parts = match.parts;
}

}  // namespace

void compose(FusedDraft& draft) {
  for (size_t at = draft.code.size(); at-- > 0;) {
    const FusedDraft::Instruction& i = draft.code[at];
    if (!i.op || i.absorbed) continue;
    for (const Pattern& pattern : all_patterns()) {
      Match match(draft, i.wide);
      const Term* term = pattern.expression;
      if (!match.at(term, i.out, true)) continue;
      replace(draft, at, pattern, match);
      break;
    }
  }
}

}  // namespace retrograd::cpu
