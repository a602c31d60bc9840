// See ir/passes/group_memory.h.
#include "ir/passes/group_memory.h"

#include <algorithm>
#include <limits>

#include "ir/replay.h"

namespace retrograd::inline v0::ir {

bool GroupMemory::may_overwrite(ValueId input, ValueId output) const {
  const auto index_of = [](const auto& list, ValueId v) {
    return static_cast<int>(std::ranges::find(list, v) - list.begin());
  };
  const int in = index_of(inputs, input), out = index_of(outputs, output);
  return kernel && in < static_cast<int>(inputs.size()) && out < static_cast<int>(outputs.size()) &&
         kernel->may_overwrite(in, out);
}

GroupMemories::GroupMemories(const Graph& graph, Executor& executor, std::span<const Number> values,
                             std::span<const ValueId> kept)
    : graph_(graph),
      executor_(executor),
      values_(values.begin(), values.end()),
      uses_(count_uses(graph, kept)) {
  for (auto id = static_cast<int32_t>(values_.size()); id < graph.symbols.size(); ++id)
    values_.push_back(graph.symbols.expr(id).hint);
  if (values_.empty()) values_.resize(1);
}

const GroupMemory& GroupMemories::of(std::span<const uint32_t> nodes) { return *known(nodes).memory; }

GroupMemory GroupMemories::take(std::span<const uint32_t> nodes) {
  Known& found = known(nodes);
  GroupMemory given = std::move(*found.memory);
  const auto [begin, end] = known_.equal_range(nodes[0]);
  known_.erase(std::find_if(begin, end, [&](const auto& entry) { return &entry.second == &found; }));
  return given;
}

GroupMemories::Known& GroupMemories::known(std::span<const uint32_t> nodes) {
  for (auto [it, end] = known_.equal_range(nodes[0]); it != end; ++it)
    if (std::ranges::equal(it->second.nodes, nodes)) return it->second;
  const GroupDescription description(graph_, nodes, uses_, values_);
  auto memory = std::make_unique<GroupMemory>();
  memory->kernel = group_kernel(executor_, description.group());
  memory->inputs.assign(description.inputs().begin(), description.inputs().end());
  memory->outputs.assign(description.outputs().begin(), description.outputs().end());
  if (memory->kernel) memory->scratch_bytes = memory->kernel->scratch_bytes();
  return known_.emplace(nodes[0], Known{{nodes.begin(), nodes.end()}, std::move(memory)})->second;
}

int64_t GroupMemories::scratch_bytes(uint32_t number) {
  const Node& node = graph_.nodes()[number];
  const FusedRole role = fused_role(graph_, node, executor_);
  return role == FusedRole::none || role == FusedRole::elementwise ? 0 : kernel_scratch_bytes(number);
}

int64_t GroupMemories::kernel_scratch_bytes(uint32_t number) {
  const Node& node = graph_.nodes()[number];
  if (!executor_.has_scratch(node.op)) return 0;
  std::vector<RefPtr<TensorImpl>> cells;
  std::vector<TensorImpl*> operands, results;
  const auto outline = [&](ValueId v) {
    const TensorType type = concrete_type(graph_.type(v), values_);
    cells.push_back(TensorImpl::make());
    cells.back()->set_type(type.dtype, type.device, type.shape);
    contiguous_strides(type.shape, cells.back()->mutable_strides());
    cells.back()->set_storage(Storage::wrap(nullptr, std::numeric_limits<int64_t>::max(), nullptr, nullptr));
    return cells.back().get();
  };
  for (ValueId v : graph_.operands(node)) operands.push_back(v == kNoValue ? nullptr : outline(v));
  for (int r = 0; r < node.results; ++r) results.push_back(outline(node.first_result + r));
  std::vector<std::byte> copy;
  void* attrs = node.attrs ? concrete_attrs(*node.op, node.attrs, values_, copy) : nullptr;
  return executor_.scratch_bytes(executor_.find(node.op),
                                 {node.op, operands, attrs, node.where, node.results}, results.data());
}

}  // namespace retrograd::ir
