// cse: common subexpression elimination. Of nodes that compute the same, the first stays. They compute the same if op,
// operands, attributes and result types are equal; the two operands of a commutative op may be in either order. Draws
// of random numbers are never merged.
//
// A node becomes a key, a string of bytes that contains all of this; attributes are added field by field, since their
// padding is undefined. Keys are contiguous in one buffer; an open-addressing hash table (XXH3) finds them. O(n).
//
// Memory (memory_classes.h): a node that reads open memory has the number of effects before it in its key, since they
// may write there. After merging, the results of both nodes share one memory, so both must be private. Views of one
// memory share it already: they are merged unless one is handed out, as an output or to an effect, where the cell
// counts, too. The result of `contiguous` may be a copy: it must not be handed out through a view either.
//
// The peak (lifetimes.h): the first value is held from its last use up to the second node. Where that exceeds the peak,
// both nodes stay, and later ones are compared with the second.
#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include <xxhash.h>

#include "engine/each_field.h"
#include "ir/passes/lifetimes.h"
#include "ir/passes/pass.h"
#include "ir/passes/peak_profile.h"

namespace retrograd::inline v0::ir {
namespace {

class Keys {
 public:
  Keys(const Graph& graph, MemoryClasses& classes)
      : graph_(graph),
        classes_(classes),
        first_in_bucket_(std::bit_ceil(graph.nodes().size() * 2 + 1), -1),
        begins_(1, 0) {}

  /// The number of the earlier key that is equal to that of old node `index` with these operands; -1: there is none,
  /// and the key has been added.
  int32_t find_or_add(size_t index, std::span<ValueId> operands) {
    write(index, operands);
    const auto begin = static_cast<size_t>(begins_.back());
    const size_t size = bytes_.size() - begin;
    const size_t mask = first_in_bucket_.size() - 1;
    size_t bucket = XXH3_64bits(bytes_.data() + begin, size) & mask;
    for (; first_in_bucket_[bucket] >= 0; bucket = (bucket + 1) & mask) {
      const auto other = static_cast<size_t>(first_in_bucket_[bucket]);
      const size_t at = begins_[other], length = begins_[other + 1] - at;
      if (length != size || std::memcmp(bytes_.data() + at, bytes_.data() + begin, size) != 0) continue;
      bytes_.resize(begin);
      return first_in_bucket_[bucket];
    }
    first_in_bucket_[bucket] = static_cast<int32_t>(begins_.size()) - 1;
    begins_.push_back(bytes_.size());
    return -1;
  }

 private:
  template <class T>
  void put(const T& value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  void put_attributes(const Node& node) {
    for_each_field(*node.op, node.attrs,
                   Fields{[&](auto, bool& v) { put(v); }, [&](auto, int64_t& v) { put(v); },
                          [&](auto, ScalarType& v) { put(v); }, [&](auto, Device& v) { put(v); }, [&](auto, Dim& v) { put(v.raw()); },
                          [&](auto, Scalar& v) {
                            put(v.id());
                            put(v.kind());
                            put(v.is_symbolic() ? int64_t{0} : std::bit_cast<int64_t>(v.number().i));
                          },
                          [&](auto, Shape& v) {
                            put(v.rank());
                            for (Dim d : v) put(d.raw());
                          },
                          [&](auto, IntList& v) {
                            put(v.count);
                            for (int64_t i : v) put(i);
                          }});
  }
  void write(size_t index, std::span<ValueId> operands) {
    const Node& node = graph_.nodes()[index];
    if (node.op->is(Trait::commutative) && operands.size() == 2 && operands[1] < operands[0])
      std::swap(operands[0], operands[1]);
    put(node.op);
    for (ValueId v : operands) put(v);
    for (int i = 0; i < node.results; ++i) put(graph_.type_index(node.first_result + i));
    put_attributes(node);
    const bool reads_open =
        reads_memory(*node.op) && std::ranges::any_of(graph_.operands(node), [&](ValueId v) {
          return v != kNoValue && !classes_.is_private(v);
        });
    put(reads_open ? classes_.segment(index) : -1);
  }

  const Graph& graph_;
  MemoryClasses& classes_;
  std::vector<int32_t> first_in_bucket_;  // numbers of keys; linear probing
  std::vector<size_t> begins_;            // of each key in bytes_, and the end of the last
  std::vector<std::byte> bytes_;
};

// The values that are outputs or given to an effect: directly, or through a view of them.
struct HandedOut {
  std::vector<uint8_t> directly, as_view;

  explicit HandedOut(const Graph& graph) : directly(static_cast<size_t>(graph.value_count())) {
    const auto mark = [](auto& list, ValueId v) {
      if (v != kNoValue) list[static_cast<size_t>(v)] = 1;
    };
    for (ValueId v : graph.outputs()) mark(directly, v);
    for (const Node& node : graph.nodes())
      if (!node.op->is(Trait::pure))
        for (ValueId v : graph.operands(node)) mark(directly, v);
    as_view = directly;
    for (size_t i = graph.nodes().size(); i-- > 0;) {
      const Node& node = graph.nodes()[i];
      bool out = false;
      for (int r = 0; r < node.results; ++r) out |= as_view[static_cast<size_t>(node.first_result + r)] != 0;
      if (out && !makes_memory(*node.op))
        for (ValueId v : graph.operands(node)) mark(as_view, v);
    }
  }
};

bool may_be_merged(const Node& node) {
  return node.op->is(Trait::pure) && !node.op->is(Trait::random) && node.results > 0 &&
         (node.op->visit_attrs || !node.op->attrs_size);
}

// Whether the results of two nodes that compute the same may be merged.
bool may_be_one(const Node& first, const Node& second, MemoryClasses& classes, const HandedOut& out) {
  const bool own = makes_memory(*first.op);
  const auto& handed = first.op->is(Trait::view) ? out.directly : out.as_view;
  for (int i = 0; i < first.results; ++i) {
    const ValueId a = first.first_result + i, b = second.first_result + i;
    if (own ? !classes.may_share(a, b) : handed[static_cast<size_t>(a)] || handed[static_cast<size_t>(b)])
      return false;
  }
  return true;
}

// Tracks the live memory while lifetimes of values are extended.
class Holds {
 public:
  Holds(const Graph& graph, const PassInput& input) : graph_(graph), input_(input) {}

  /// From now on the results of `first` replace those of `second`, at this position. False, with nothing done, if that
  /// exceeds the present peak.
  bool extend(const Node& first, const Node& second, int32_t place) {
    if (!profile_) begin();
    for (int r = 0; r < first.results; ++r)
      if (!hold(block(first, r), place)) {
        while (r-- > 0) let_go(block(first, r), place);
        return false;
      }
    for (int r = 0; r < first.results; ++r)
      if (Block* b = block(first, r)) b->last = std::max(b->last, block(second, r)->last);
    return true;
  }

 private:
  void begin() {
    LifetimeOptions options{.values = input_.values, .writes = input_.writes, .given = input_.given};
    profile_.emplace(lifetimes(graph_, options).live_bytes());
    most_ = profile_->most();
    options.in_place = false;
    alone_ = lifetimes(graph_, options);
  }
  // The block of a result that is no view. A view uses its operand's block, which is live at both positions.
  Block* block(const Node& node, int r) {
    const int32_t b = alone_.block_of[static_cast<size_t>(node.first_result + r)];
    return node.op->is(Trait::view) ? nullptr : &alone_.blocks[static_cast<size_t>(b)];
  }
  // Counts from the last use on, since a value that took over the memory there needs other memory now.
  bool hold(const Block* b, int32_t place) {
    if (!b || b->last >= place) return true;
    if (profile_->most(b->last, place - 1) + b->bytes > most_) return false;
    profile_->add(b->last, place - 1, b->bytes);
    return true;
  }
  void let_go(const Block* b, int32_t place) {
    if (b && b->last < place) profile_->add(b->last, place - 1, -b->bytes);
  }

  const Graph& graph_;
  const PassInput& input_;
  std::optional<PeakProfile> profile_;
  Lifetimes alone_;  // each value in a block of its own
  int64_t most_ = 0;
};

}  // namespace

bool cse(Graph& graph, const PassInput& input, Remap& remap) {
  const auto& nodes = graph.nodes();
  MemoryClasses classes(graph);
  Keys keys(graph, classes);
  const HandedOut out(graph);
  Rewriter rewriter(graph);
  Holds holds(graph, input);
  std::vector<size_t> node_of_key;
  std::vector<ValueId> operands, sorted;
  bool changed = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    operands.clear();
    for (ValueId v : graph.operands(node)) operands.push_back(rewriter.now(v));
    sorted = operands;
    const int32_t same = may_be_merged(node) ? keys.find_or_add(i, sorted) : -1;
    const Node* equal = same < 0 ? nullptr : &nodes[node_of_key[static_cast<size_t>(same)]];
    if (equal && !may_be_one(*equal, node, classes, out)) equal = nullptr;
    if (equal && !holds.extend(*equal, node, static_cast<int32_t>(i))) {
      node_of_key[static_cast<size_t>(same)] = i;
      equal = nullptr;
    }
    if (equal) {
      const Node& first = *equal;
      for (int r = 0; r < node.results; ++r) {
        classes.merge(first.first_result + r, node.first_result + r);
        rewriter.replace(node.first_result + r, rewriter.now(first.first_result + r));
      }
      changed = true;
      continue;
    }
    if (same < 0 && may_be_merged(node)) node_of_key.push_back(i);
    rewriter.keep(i, operands);
  }
  if (changed) remap = rewriter.finish();
  return changed;
}

}  // namespace retrograd::ir
