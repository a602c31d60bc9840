// See tracer/plan/register_file.h.
#include "tracer/plan/register_file.h"

#include <numeric>

namespace retrograd::inline v0 {
namespace {

// Which values may share memory: views, and results of user code, with their operands.
class Aliases {
 public:
  explicit Aliases(const ir::Graph& graph)
      : root_(static_cast<size_t>(graph.value_count())),
        producer_(root_.size(), -1),
        last_(root_.size(), -1) {
    std::iota(root_.begin(), root_.end(), 0);
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      const ir::Node& node = graph.nodes()[n];
      const auto operands = graph.operands(node);
      for (ir::ValueId v : operands)
        if (v != ir::kNoValue && root_[static_cast<size_t>(v)] != v) last(v) = static_cast<int32_t>(n);
      for (int i = 0; i < node.results; ++i) {
        producer_[static_cast<size_t>(node.first_result + i)] = static_cast<int32_t>(n);
        const size_t from = node.op->is(Trait::view) ? 0 : static_cast<size_t>(i);
        if ((node.op->is(Trait::view) || (node.op->run_on_host && !node.op->is(Trait::fresh))) &&
            from < operands.size() && operands[from] != ir::kNoValue)
          root_[static_cast<size_t>(node.first_result + i)] = root_[static_cast<size_t>(operands[from])];
      }
    }
    for (ir::ValueId v : graph.outputs())
      if (v != ir::kNoValue && root_[static_cast<size_t>(v)] != v)
        last(v) = static_cast<int32_t>(graph.nodes().size());
  }
  /// The node that made the value; -1: an input.
  int32_t producer(ir::ValueId v) const { return producer_[static_cast<size_t>(v)]; }
  /// The last node that reads another value in the memory of `root`; -1: none.
  int32_t last_of_others(ir::ValueId root) const { return last_[static_cast<size_t>(root)]; }

 private:
  int32_t& last(ir::ValueId v) { return last_[static_cast<size_t>(root_[static_cast<size_t>(v)])]; }
  std::vector<ir::ValueId> root_;
  std::vector<int32_t> producer_, last_;  // last_: by root
};

}  // namespace

void RegisterFile::reserve(std::span<const WrittenInput> writes,
                           const std::function<bool(int32_t, const WrittenInput&)>& may_overwrite) {
  if (writes.empty()) return;
  const Aliases aliases(graph_);
  for (const WrittenInput& w : writes) {
    const int32_t producer = aliases.producer(w.value);
    if (producer < 0 || targets_.contains(w.value)) continue;
    const ir::Node& node = graph_.nodes()[static_cast<size_t>(producer)];
    const int32_t n = step_end(producer);
    if (node.op->is(Trait::view) || node.op->run_on_host || aliases.last_of_others(w.input) >= producer)
      continue;
    const int32_t last_read = last(w.input);
    if (last_read > n || (last_read == n && !may_overwrite(n, w))) continue;
    last(w.input) = n;
    targets_[w.value] = w.input;
  }
}

void RegisterFile::keep(std::span<const KeptValue> values) {
  const auto nodes = static_cast<int32_t>(graph_.nodes().size());
  for (const KeptValue& kept : values) {
    const auto node = static_cast<int32_t>(kept.node);
    last(kept.value) = std::max(last(kept.value), node < nodes ? step_end(node) : node);
  }
  for (size_t v = 0; v < last_.size(); ++v) ends_at_[last_[v]].push_back(static_cast<ir::ValueId>(v));
}

void RegisterFile::keep_viewed() {
  is_kept_.resize(register_.size());
  for (const ir::Node& node : graph_.nodes())
    if (node.op->is(Trait::view)) is_kept_[static_cast<size_t>(graph_.operands(node)[0])] = true;
}

std::vector<int64_t> RegisterFile::place(const Placement& placement) {
  std::vector<int64_t> offsets;
  std::vector<std::unordered_map<int64_t, int32_t>> at(graph_.types().size());
  for (size_t v = 0; v < register_.size(); ++v) {
    const int64_t offset = placement.offsets[v];
    if (offset < 0) continue;
    const int32_t type = graph_.type_index(static_cast<ir::ValueId>(v));
    const auto [it, is_new] =
        at[static_cast<size_t>(type)].try_emplace(offset, static_cast<int32_t>(types_.size()));
    if (is_new) {
      types_.push_back(type);
      offsets.push_back(offset);
    }
    register_[v] = it->second;
    is_placed_[v] = true;
    last_[v] = -1;  // it is never freed
  }
  return offsets;
}

}  // namespace retrograd
