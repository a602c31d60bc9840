// compose(): finds patterns (cpu/fused/levels/patterns.h) among the instructions of a group and replaces each by one
// instruction.
//
// Instructions are scanned from last to first, so that a pattern begins at the result that others use; of the
// matching patterns, the one with the most ops is taken. Values inside a pattern have no other uses, so nothing is
// computed twice. Operands of a commutative op may be swapped: a sum or a product has the same bits.
#include "cpu/fused/fused_compose.h"

#include <algorithm>

#include "cpu/fused/levels/patterns.h"
#include "cpu/kernels/levels/spans.h"
#include "engine/bookkeeping.h"

namespace retrograd::cpu {
namespace {

// The state of matching an expression: the target and the findings so far.
struct Match {
  const FusedDraft& draft;
  bool wide;
  std::array<int, kMaxSpanInputs> in = {};
  std::vector<int> parts = {}, inner = {};  // nodes; instructions within

  const FusedDraft::Value& value(int v) const { return draft.values[static_cast<size_t>(v)]; }

  // The instruction that computes a value by `op`; null if none may be computed here.
  const FusedDraft::Instruction* enter(int v, const OpInfo* op, bool root) {
    if (v < 0 || value(v).kind != FusedDraft::Value::Kind::result) return nullptr;
    const FusedDraft::Instruction& i = draft.code[static_cast<size_t>(value(v).index)];
    const OpInfo* given = i.op == &ops::accumulate ? &ops::info<ops::Add> : i.op;
    if (given != op || i.wide != wide || i.composed || i.absorbed) return nullptr;
    if (!root && (value(v).uses != 1 || value(v).output >= 0 || value(v).reduced)) return nullptr;
    parts.push_back(i.parts[0]);
    inner.push_back(value(v).index);
    return &i;
  }
};

template <class E>
struct Matcher;
template <int K>
struct Matcher<patterns::In<K>> {
  static bool at(Match& m, int v, bool = false) {
    m.in[K] = v;
    return v >= 0;
  }
};
template <>
struct Matcher<patterns::Num> {
  static bool at(Match&, int v, bool = false) { return v == FusedDraft::kNumber; }
};
template <class Op, class... Args>
struct Matcher<patterns::Apply<Op, Args...>> {
  static bool at(Match& m, int v, bool root = false) {
    const size_t parts = m.parts.size(), inner = m.inner.size();
    const FusedDraft::Instruction* i = m.enter(v, &ops::info<Op>, root);
    if (!i) return false;
    std::array<int, kMaxSpanInputs> in = i->in;
    if (operands(m, in.data())) return true;
    if constexpr (sizeof...(Args) == 2 && (Op::traits & static_cast<uint32_t>(Trait::commutative)) != 0) {
      m.parts.resize(parts + 1);
      m.inner.resize(inner + 1);
      std::swap(in[0], in[1]);
      if (operands(m, in.data())) return true;
    }
    m.parts.resize(parts);
    m.inner.resize(inner);
    return false;
  }

 private:
  static bool operands(Match& m, const int* in) { return (Matcher<Args>::at(m, *in++) && ...); }
};

template <class E>
inline constexpr int ops_in = 0;
template <class Op, class... Args>
inline constexpr int ops_in<patterns::Apply<Op, Args...>> = 1 + (ops_in<Args> + ...);

struct Pattern {
  bool (*match)(Match& m, int v);
  const Spans* spans;
  int ops, inputs;
};

template <class List>
void add_patterns(std::vector<Pattern>& all) {
  int row = 0;
  List::for_each([&]<class E>() {
    static_assert(patterns::inputs<E> <= kMaxSpanInputs);
    all.push_back({[](Match& m, int v) { return Matcher<E>::at(m, v, true); }, &span_table<List>()[row++],
                   ops_in<E>, patterns::inputs<E>});
  });
}
template <class... Lists>
std::vector<Pattern> patterns_of(patterns::ListOfLists<Lists...>) {
  std::vector<Pattern> all;
  (add_patterns<Lists>(all), ...);
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
      Match match{draft, i.wide};
      if (!pattern.match(match, i.out)) continue;
      replace(draft, at, pattern, match);
      break;
    }
  }
}

}  // namespace retrograd::cpu
