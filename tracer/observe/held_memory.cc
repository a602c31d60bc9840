// See tracer/observe/held_memory.h; start reading at HeldFinder::run().
#include "tracer/observe/held_memory.h"

#include <algorithm>

#include "ir/passes/lifetimes.h"

namespace retrograd::inline v0 {
namespace {

class HeldFinder {
 public:
  explicit HeldFinder(const Profile::Run& run)
      : run_(run),
        graph_(*run.graph),
        lifetimes_(ir::lifetimes(graph_, {.values = run.numbers, .in_place = false})),
        kinds_(lifetimes_.blocks.size(), HeldFor::others),
        is_gradient_(static_cast<size_t>(graph_.value_count())),
        changes_(graph_.nodes().size() + 1) {}

  std::vector<HeldBytes> run() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) look_at(n);
    find_changes();
    std::vector<HeldBytes> all;
    for (const Profile::Step& step : run_.steps)
      if (step.end) all.push_back(held_after(step));
    return all;
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  HeldFor* kind(ir::ValueId v) {
    const int32_t block = v == ir::kNoValue ? -1 : lifetimes_.block_of[at(v)];
    return block < 0 ? nullptr : &kinds_[at(block)];
  }

  void look_at(size_t number) {
    const ir::Node& node = graph_.nodes()[number];
    bool is_gradient = node.origin >= 0;
    for (ir::ValueId v : graph_.operands(node)) is_gradient |= v != ir::kNoValue && is_gradient_[at(v)];
    if (is_gradient)
      for (ir::ValueId v : graph_.operands(node))
        if (HeldFor* k = kind(v); k && *k == HeldFor::others) *k = HeldFor::saved;
    for (int r = 0; r < node.results; ++r) {
      const ir::ValueId v = node.first_result + r;
      is_gradient_[at(v)] = is_gradient;
      HeldFor* const k = kind(v);
      if (!k || node.op->is(Trait::view)) continue;  // a view is of its operand's kind
      if (is_gradient) *k = HeldFor::gradients;
      if (!is_gradient && seen_gradient_) *k = HeldFor::recomputed;
    }
    seen_gradient_ |= is_gradient;
  }

  // Of each value, whether it never leaves its group.
  std::vector<bool> inside_groups() const {
    std::vector<int32_t> groups(at(graph_.value_count()), -1);
    for (const ir::Node& node : graph_.nodes())
      for (int r = 0; r < node.results; ++r) groups[at(node.first_result + r)] = node.group;
    std::vector<bool> is_inside(groups.size());
    for (size_t v = 0; v < groups.size(); ++v) is_inside[v] = groups[v] >= 0;
    for (const ir::Node& node : graph_.nodes())
      for (ir::ValueId v : graph_.operands(node))
        if (v != ir::kNoValue && groups[at(v)] != node.group) is_inside[at(v)] = false;
    for (ir::ValueId v : graph_.outputs())
      if (v != ir::kNoValue) is_inside[at(v)] = false;
    return is_inside;
  }

  // What an optimizer's step gives lies in memory from outside.
  void find_changes() {
    const std::vector<bool> is_inside = inside_groups();
    for (const ir::Node& node : graph_.nodes())
      for (int r = 0; r < node.results; ++r) {
        const ir::ValueId v = node.first_result + r;
        const int32_t b = lifetimes_.block_of[at(v)];
        if (b < 0 || is_inside[at(v)] || node.op->is(Trait::view) || node.op->is(Trait::updates)) continue;
        const ir::Block& block = lifetimes_.blocks[at(b)];
        changes_[at(block.first)][static_cast<size_t>(kinds_[at(b)])] += block.bytes;
        changes_[at(block.last)][static_cast<size_t>(kinds_[at(b)])] -= block.bytes;
      }
  }

  HeldBytes held_after(const Profile::Step& step) {
    for (; next_ <= step.node; ++next_)
      for (size_t k = 0; k < now_.size(); ++k) now_[k] += changes_[next_][k];
    HeldBytes held{};
    int64_t made = 0, left = step.live_bytes;
    for (size_t k = 1; k < now_.size() - 1; ++k) made += now_[k];
    const auto take = [&](HeldFor kind, int64_t bytes) {
      left -= held[static_cast<size_t>(kind)] = std::clamp<int64_t>(bytes, 0, left);
    };
    take(HeldFor::before, std::min(run_.live_bytes, step.live_bytes - made));
    for (HeldFor kind : {HeldFor::saved, HeldFor::gradients, HeldFor::recomputed})
      take(kind, now_[static_cast<size_t>(kind)]);
    held[static_cast<size_t>(HeldFor::others)] = left;
    return held;
  }

  const Profile::Run& run_;
  const ir::Graph& graph_;
  const ir::Lifetimes lifetimes_;
  std::vector<HeldFor> kinds_;  // of blocks
  std::vector<bool> is_gradient_;
  bool seen_gradient_ = false;
  std::vector<HeldBytes> changes_;  // of each node: made there, less what dies there
  HeldBytes now_{};
  uint32_t next_ = 0;  // node
};

}  // namespace

std::vector<HeldBytes> held_memory(const Profile::Run& run) { return HeldFinder(run).run(); }

}  // namespace retrograd
