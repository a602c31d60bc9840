// Rules of views and of ops that only move elements: no-ops are removed, and chains become one node.
//
// A view of a view has the same strides as a direct view, except for dims of size 1, whose stride no kernel reads. The
// same memory is shared before and after.
#include <algorithm>

#include "engine/bookkeeping.h"
#include "ops/arithmetic.h"
#include "ops/join.h"
#include "ops/rearrange.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/views.h"
#include "rewrites/rules.h"

namespace retrograd::inline v0::rewrites {
namespace {

bool same_list(const IntList& a, const IntList& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

bool alias(Match& m) { return m.become(m.operand(0)); }

template <class Op>  // expand, view: to the same shape, or after another
bool resized(Match& m) {
  const ValueId x = m.operand(0);
  const Shape& size = attrs_of<Op>(m).size;
  if (is_shape_of(m, x, size)) return m.become(x);
  const Node* inner = m.giver(x, op<Op>);
  const ops::ShapeAttrs attrs{size};
  return inner && m.become(op<Op>, {m.operand(*inner, 0)}, &attrs, inner);
}

bool permuted(Match& m) {
  const IntList& outer = attrs_of<ops::Permute>(m).dims;
  if (std::ranges::is_sorted(outer)) return m.become(m.operand(0));
  const Node* inner = m.giver(m.operand(0), op<ops::Permute>);
  if (!inner) return false;
  ops::Permute::Attrs attrs;
  for (int64_t d : outer) attrs.dims.push_back(attrs_of<ops::Permute>(*inner).dims[static_cast<int>(d)]);
  return m.become(op<ops::Permute>, {m.operand(*inner, 0)}, &attrs, inner);
}

// Whether the slice takes all entries of a dim.
bool is_whole(const ops::SliceAttrs& a, const Shape& of) {
  return a.start.raw() == 0 && a.step.raw() == 1 && a.length.raw() == of[static_cast<int>(a.dim)].raw();
}
bool sliced(Match& m) {
  const ValueId x = m.operand(0);
  return is_whole(attrs_of<ops::Slice>(m), m.type(x).shape) && m.become(x);
}
// The operand is the whole result. It is added to zeros, where -0 becomes 0, hence only for integers.
bool put_into_whole(Match& m) {
  const auto& a = attrs_of<ops::Transposed<ops::Slice>>(m);
  return !is_floating(m.type().dtype) && is_whole(a.view, a.size) && become_row_major(m, m.operand(0));
}

bool made_contiguous(Match& m) { return become_row_major(m, m.operand(0)); }

// Over dims of size 1: the element itself. A sum starts from 0, so that the sum of a float -0 is 0.
template <class Op>
bool reduced_nothing(Match& m) {
  const ValueId x = m.operand(0);
  const Shape& shape = m.type(x).shape;
  const auto is_one = [&](int64_t d) { return shape[static_cast<int>(d)].raw() == 1; };
  if (!std::ranges::all_of(attrs_of<Op>(m).dim, is_one) || !is_row_major(m, x)) return false;
  if (m.type(x).dtype != m.type().dtype) return false;
  const ops::ShapeAttrs attrs{m.type().shape};
  return m.become(op<ops::Reshape>, {x}, &attrs);
}

bool summed_nothing(Match& m) { return !is_floating(m.type().dtype) && reduced_nothing<ops::Sum>(m); }

// The value of which v is a row-major copy with dims `dim` and `dim` + 1 merged; kNoValue if there is none. `copy`: the
// node that makes the copy.
ValueId merged_from(const Match& m, ValueId v, int dim, const Node*& copy) {
  const Node* view = m.giver(v, op<ops::Reshape>);
  copy = view ? m.giver(m.operand(*view, 0)) : nullptr;
  if (!copy || (copy->op != &op<ops::Contiguous> && copy->op != &op<ops::Clone>)) return kNoValue;
  const ValueId x = m.operand(*copy, 0);
  const Shape &from = m.type(x).shape, &to = m.type(v).shape;
  return merges(from, to, dim) && !from[dim].is_symbolic() && !from[dim + 1].is_symbolic() ? x : kNoValue;
}

// For concatenated values each of which is a copy that merges this dim and the next one, like the gradients of heads
// when attention is made of products: concatenates the sources instead and copies once. kNoValue otherwise.
ValueId join_unmerged(Match& m, std::span<const ValueId> values, int dim) {
  std::vector<ValueId> sources;
  const Node* earliest = nullptr;
  for (ValueId v : values) {
    const Node* copy;
    const ValueId x = merged_from(m, v, dim, copy);
    if (x == kNoValue || m.type(x).dtype != m.type().dtype) return kNoValue;
    if (!sources.empty() && m.type(x).shape[dim + 1].raw() != m.type(sources[0]).shape[dim + 1].raw())
      return kNoValue;
    sources.push_back(x);
    earliest = earliest ? std::min(earliest, copy) : copy;
  }
  if (sources.empty()) return kNoValue;
  const ops::Cat::Attrs join{dim};
  return m.add(op<ops::Cat>, sources, &join, earliest);
}

// Joins concatenated values without a copy of each, as one value of another shape; kNoValue if a copy is needed.
// `only_here`: nothing else uses the values.
ValueId join_in_place(Match& m, std::span<const ValueId> values, int dim, bool only_here) {
  const ValueId gradients = only_here ? join_gradients(m, values, dim) : kNoValue;
  return gradients == kNoValue ? join_unmerged(m, values, dim) : gradients;
}

bool joined(Match& m) {
  if (m.operands().size() == 1) return become_row_major(m, m.operand(0));
  const ValueId all = join_in_place(m, m.operands(), static_cast<int>(attrs_of<ops::Cat>(m).dim), true);
  const ops::ShapeAttrs attrs{m.type().shape};
  return all != kNoValue && m.become(op<ops::Reshape>, {all}, &attrs);
}

bool flipped(Match& m) {
  const IntList& dims = attrs_of<ops::Flip>(m).dims;
  if (dims.empty()) return become_row_major(m, m.operand(0));
  const Node* inner = m.giver(m.operand(0), op<ops::Flip>);
  return inner && same_list(attrs_of<ops::Flip>(*inner).dims, dims) &&
         become_row_major(m, m.operand(*inner, 0));
}

template <class Op>
bool cut_twice(Match& m) {
  const Node* inner = m.giver(m.operand(0), op<Op>);
  return inner && attrs_of<Op>(*inner).diagonal == attrs_of<Op>(m).diagonal && m.become(m.operand(0));
}

// The gradient of a tensor that was split: the parts, each in zeros at its position, added up. If the parts cover the
// tensor, the result is their concatenation. Where -0 was added to 0 the sum is 0, so 0 is added here, too.
bool sum_of_parts(Match& m) {
  using PutBack = ops::Transposed<ops::Slice>;
  constexpr size_t kMostParts = 64;
  std::vector<const Node*> parts;
  std::vector<ValueId> sums{m.operand(0), m.operand(1)};
  bool only_here = true;
  while (!sums.empty()) {
    const Node* node = m.giver(sums.back());
    only_here = only_here && node && m.is_used_once(sums.back());
    sums.pop_back();
    if (!node || parts.size() + sums.size() > kMostParts) return false;
    if (node->op == &ops::accumulate)
      for (ValueId v : m.operands(*node)) sums.push_back(v);
    else if (node->op == &op<PutBack>)
      parts.push_back(node);
    else
      return false;
  }
  const auto place = [](const Node* part) -> const ops::SliceAttrs& { return attrs_of<PutBack>(*part).view; };
  const int64_t dim = place(parts[0]).dim;
  if (!is_floating(m.type().dtype) || std::ranges::any_of(parts, [&](const Node* part) {
        const ops::SliceAttrs& a = place(part);
        return a.dim != dim || a.step.raw() != 1 || a.start.is_symbolic() || a.length.is_symbolic();
      }))
    return false;
  const Node* earliest = std::ranges::min(parts);
  std::ranges::sort(parts, {}, [&](const Node* part) { return place(part).start.raw(); });
  int64_t end = 0;
  std::vector<ValueId> values;
  for (const Node* part : parts) {
    if (place(part).start.raw() != end) return false;
    end += place(part).length.raw();
    values.push_back(m.operand(*part, 0));
  }
  if (end != m.type().shape[static_cast<int>(dim)].raw()) return false;
  const ops::Cat::Attrs join{dim};
  const ops::ShapeAttrs whole{m.type().shape};
  const ops::ScalarOperand zero{Scalar(0.0)};
  ValueId all = join_in_place(m, values, static_cast<int>(dim), only_here);
  all =
      all == kNoValue ? m.add(op<ops::Cat>, values, &join, earliest) : m.add(op<ops::Reshape>, {all}, &whole);
  return all != kNoValue && m.become(op<ops::Add>, {all, kNoValue}, &zero);
}

constexpr Rewrite kShapeRules[] = {
    {&ops::info<ops::Alias>, alias},
    {&ops::info<ops::Expand>, resized<ops::Expand>},
    {&ops::info<ops::Reshape>, resized<ops::Reshape>},
    {&ops::info<ops::Permute>, permuted},
    {&ops::info<ops::Slice>, sliced},
    {&ops::info<ops::Transposed<ops::Slice>>, put_into_whole},
    {&ops::info<ops::Contiguous>, made_contiguous},
    {&ops::info<ops::Sum>, summed_nothing},
    {&ops::info<ops::Prod>, reduced_nothing<ops::Prod>},
    {&ops::info<ops::Amax>, reduced_nothing<ops::Amax>},
    {&ops::info<ops::Amin>, reduced_nothing<ops::Amin>},
    {&ops::info<ops::Cat>, joined},
    {&ops::accumulate, sum_of_parts},
    {&ops::info<ops::Flip>, flipped},
    {&ops::info<ops::Tril>, cut_twice<ops::Tril>},
    {&ops::info<ops::Triu>, cut_twice<ops::Triu>},
};

}  // namespace

std::span<const Rewrite> shape_rules() { return kShapeRules; }

}  // namespace retrograd::rewrites
