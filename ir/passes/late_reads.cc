// See ir/passes/late_reads.h. One backward pass finds the nodes: all users of a moved node are moved.
#include "ir/passes/late_reads.h"

#include <algorithm>

#include "ir/passes/memory_classes.h"
#include "ir/rewriter.h"

namespace retrograd::inline v0::ir {
namespace {

bool is_on_cpu(const Graph& graph, ValueId v) { return graph.type(v).device.type() == DeviceType::CPU; }

// Whether each node moves to the end.
std::vector<bool> late_nodes(const Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<bool> is_late(nodes.size()), is_used_early(static_cast<size_t>(graph.value_count()));
  MemoryClasses classes(graph);
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& n = nodes[i];
    const auto operands = graph.operands(n);
    const auto may_be_read_late = [&](ValueId v) {
      return v == kNoValue || (classes.is_private(v) && bytes_of(graph.type(v)) <= kLateBytes);
    };
    bool late = n.op->is(Trait::pure) && !n.op->is(Trait::checks) && n.group < 0 &&
                std::ranges::all_of(operands, may_be_read_late);
    for (int r = 0; r < n.results; ++r)
      late = late && is_on_cpu(graph, n.first_result + r) &&
             !is_used_early[static_cast<size_t>(n.first_result + r)];
    is_late[i] = late;
    for (ValueId v : operands)
      if (v != kNoValue && !late) is_used_early[static_cast<size_t>(v)] = true;
  }
  return is_late;
}

}  // namespace

bool late_reads(Graph& graph) {
  if (std::ranges::all_of(graph.types(),
                          [](const TensorType& t) { return t.device.type() == DeviceType::CPU; }))
    return false;
  const std::vector<bool> is_late = late_nodes(graph);
  if (std::ranges::is_sorted(is_late)) return false;  // they are there already
  Rewriter rewriter(graph);
  for (const bool late : {false, true})
    for (size_t i = 0; i < is_late.size(); ++i)
      if (is_late[i] == late) rewriter.keep(i);
  rewriter.finish();
  return true;
}

}  // namespace retrograd::ir
