// The steps of a program: the kind of work of each node, and the groups of nodes that run as one. See
// tracer/plan/planner.h.
#include "tracer/plan/planner.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "engine/bookkeeping.h"
#include "engine/error.h"
#include "ir/replay.h"

namespace retrograd::inline v0 {
namespace {

bool has_groups(const ir::Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const ir::Node& n) { return n.group >= 0; });
}

// The end of the group that begins at n; n if none does.
size_t end_of_group(const ir::Graph& graph, size_t n) {
  const auto& nodes = graph.nodes();
  if (nodes[n].group < 0 || (n > 0 && nodes[n - 1].group == nodes[n].group)) return n;
  size_t end = n;
  while (end < nodes.size() && nodes[end].group == nodes[n].group) ++end;
  return end;
}

StepKind kind_of(ir::Input::Kind handle) {
  switch (handle) {
    case ir::Input::Kind::slot: return StepKind::unpack;
    case ir::Input::Kind::hook: return StepKind::hook;
    case ir::Input::Kind::function: return StepKind::function;
    case ir::Input::Kind::leaf: return StepKind::accumulate_grad;
    case ir::Input::Kind::box: return StepKind::retain_grad;
    case ir::Input::Kind::code: return StepKind::code;
    case ir::Input::Kind::pair:  // of a backward recorded on a tape: such a graph is replayed
    case ir::Input::Kind::tensor: break;
  }
  RG_ASSERT(false);
  return StepKind::host;
}

StepKind kind_of(const ir::Graph& graph, const ir::Node& node) {
  return node.handle >= 0           ? kind_of(graph.inputs()[static_cast<size_t>(node.handle)].kind)
         : node.op->run_on_host     ? StepKind::host
         : node.op->is(Trait::view) ? StepKind::view
                                    : StepKind::kernel;
}

class StepPlanner {
 public:
  StepPlanner(const PlanRequest& request, Program& program)
      : request_(request), graph_(request.graph), program_(program), bindings_(binding_indices(request)) {}

  void plan(ir::GroupMemories* groups);
  StepEnds step_ends() && { return std::move(step_ends_); }

 private:
  bool plan_group(size_t begin, size_t end, ir::GroupMemories& groups);
  void plan_node(const ir::Node& node);
  void note_group(std::span<const uint32_t> nodes);

  const PlanRequest& request_;
  const ir::Graph& graph_;
  Program& program_;
  const std::vector<int32_t> bindings_;
  StepEnds step_ends_;
};

void StepPlanner::plan(ir::GroupMemories* groups) {
  const auto& nodes = graph_.nodes();
  program_.steps.reserve(nodes.size() + 8);
  program_.registers.reserve(nodes.size() * 4);
  auto release = request_.releases.begin();
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (const size_t end = end_of_group(graph_, n); end > n + 1 && plan_group(n, end, *groups))
      n = end - 1;
    else
      plan_node(nodes[n]);
    const uint32_t last = program_.steps.back().node;
    for (; release != request_.releases.end() && release->node <= last + 1; ++release) {
      Step s{};
      s.kind = StepKind::release;
      s.record = release->record;
      s.node = last;
      program_.steps.push_back(s);
    }
  }
}

// One step for the nodes from `begin` on. False when the executor has no kernel for them.
bool StepPlanner::plan_group(size_t begin, size_t end, ir::GroupMemories& groups) {
  std::vector<uint32_t> nodes(end - begin);
  std::iota(nodes.begin(), nodes.end(), static_cast<uint32_t>(begin));
  ir::GroupMemory made = groups.take(nodes);
  if (!made.kernel) return false;
  FusedStep fused;
  fused.kernel = std::move(made.kernel);
  fused.inputs = std::move(made.inputs);
  fused.outputs = std::move(made.outputs);
  for (uint32_t n : nodes) fused.attrs.push_back(program_.attrs.add(graph_.nodes()[n], request_.values));
  fused.takes.resize(fused.outputs.size(), -1);
  fused.into.resize(fused.outputs.size());
  note_group(nodes);
  Step s{};
  s.kind = StepKind::fused;
  s.node = nodes.back();
  s.operands = static_cast<uint16_t>(fused.inputs.size());
  s.results = static_cast<uint16_t>(fused.outputs.size());
  s.takes = -1;
  s.bound = static_cast<int32_t>(program_.fused.size());
  program_.fused.push_back(std::move(fused));
  program_.steps.push_back(s);
  return true;
}

void StepPlanner::note_group(std::span<const uint32_t> nodes) {
  if (step_ends_.empty()) {
    step_ends_.resize(graph_.nodes().size());
    std::iota(step_ends_.begin(), step_ends_.end(), 0u);
  }
  for (uint32_t n : nodes) step_ends_[n] = nodes.back();
}

void StepPlanner::plan_node(const ir::Node& node) {
  Step s{};
  s.node = static_cast<uint32_t>(&node - graph_.nodes().data());
  s.operands = node.operands;
  s.results = node.results;
  s.takes = -1;
  s.kind = kind_of(graph_, node);
  const Executor& executor = program_.executor;
  if (s.kind == StepKind::kernel && !(s.kernel = executor.find(node.op)))
    throw Error(Category::unsupported, std::string(node.op->name) + ": the " + std::string(executor.name()) +
                                           " executor has no kernel for it");
  if (s.kind == StepKind::unpack) {
    const SlotPlace& place = *request_.slots[static_cast<size_t>(node.handle)];
    s.record = place.record;
    s.slot = place.index;
  } else if (node.handle >= 0) {
    s.bound = bindings_[static_cast<size_t>(node.handle)];
  }
  if (s.kind == StepKind::kernel) s.scratch = -1;
  s.attrs = program_.attrs.add(node, request_.values);
  program_.steps.push_back(s);
}

}  // namespace

std::vector<int32_t> binding_indices(const PlanRequest& request) {
  std::vector<int32_t> indices(request.graph.inputs().size(), -1);
  int32_t next = 0;
  for (size_t i = 0; i < indices.size(); ++i)
    if (i >= request.slots.size() || !request.slots[i]) indices[i] = next++;
  return indices;
}

Program make_program(const PlanRequest& request) {
  Program program(request.graph, request.executor);
  program.records_launches = request.arena_waste && request.executor.records_launches();
  for (const TensorType& t : request.graph.types())
    program.layout.types.push_back(ir::concrete_type(t, request.values));
  std::optional<ir::GroupMemories> own;
  ir::GroupMemories* groups = request.groups;
  if (!groups && has_groups(request.graph))
    groups = &own.emplace(request.graph, request.executor, request.values, request.group_outputs);
  StepPlanner steps(request, program);
  steps.plan(groups);
  assign_registers(program, request, std::move(steps).step_ends());
  choose_spans(program);
  find_own_takes(program);
  if (!request.may_stop) fold_unpacks(program, request.slots);
  find_unpacks(program, request.may_stop);
  if (program.records_launches) find_segments(program);
  return program;
}

}  // namespace retrograd
