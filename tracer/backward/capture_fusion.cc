// Fused groups of captured backwards (Capture::fuse): on a device, where every kernel is a launch, nodes that can run
// as one step are made adjacent in the graph. The pass `fuse` (ir/passes/fuse.h) finds the groups, and
// RETROGRAD_PASSES_OFF also switches it off here; the kernels are those of compiled functions. No other pass runs on
// a captured backward, and none on the CPU: there a capture must cost only microseconds per node, and kernels need no
// launch.
//
// Groups are valid for all sizes, since the role of a node in a group depends only on symbols and dtypes. That they
// do not raise the peak is known for the sizes of the capture, with the saved values that this backward frees.
//
// A graph that calls user code may be left between two records, and between a rule and its post-hooks
// (tracer/backward/departure.h). At these points, and before an unpack that calls such code, no group is pending: the
// state is the driver's. So in such graphs groups stay within one rule, and values that the driver would hold are
// outputs of their group. In other graphs groups extend over records, up to the next effect; but no node moves into
// an earlier record, since the log only knows where a record's nodes end.
#include <algorithm>
#include <cstdlib>

#include "engine/bookkeeping.h"
#include "engine/region.h"
#include "engine/runner.h"
#include "ir/passes/fuse_within.h"
#include "ir/passes/pipeline.h"
#include "tracer/backward/capture.h"

namespace retrograd::inline v0 {
namespace {

bool fuses(const Executor& executor) {
  if (&executor == &cpu_executor()) return false;
  return !ir::passes_named(secure_getenv(ir::kPassesOffVariable))[ir::pass_number("fuse")];
}

// Of a source of kind slot or region.
const Slot& slot_of(const Source& source, const Reached& reached) {
  return source.kind == Source::Kind::region
             ? reached.regions[source.place]->kept_slot(source.index)
             : reached.records[source.place]->slot(static_cast<int>(source.index));
}

// For each node, whether all groups must end before it.
std::vector<bool> stops_of(const ir::Graph& graph, const std::vector<Source>& sources, const DriveLog& log,
                           const Reached& reached) {
  std::vector<bool> stops(graph.nodes().size() + 1);
  for (const DriveLog::Event& e : log.events)
    if (e.kind != DriveLog::Kind::arrived && e.kind != DriveLog::Kind::captured) stops[e.node] = true;
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    if (const ir::Node& node = graph.nodes()[n]; node.op == &ops::unpack)
      if (const Source& source = sources[static_cast<size_t>(node.handle)];
          source.part < 0 && slot_of(source, reached).packed())
        stops[n] = true;
  return stops;
}

// The slots whose memory is freed with the unpacked value.
std::vector<int32_t> freed_slots(const std::vector<Source>& sources, const BackwardRequest& request,
                                 const Reached& reached) {
  std::vector<int32_t> freed;
  for (size_t i = 0; i < sources.size() && !request.retain_graph; ++i) {
    if (sources[i].kind != Source::Kind::slot) continue;
    const Slot& slot = slot_of(sources[i], reached);
    const TensorImpl* value =
        sources[i].part < 0 ? slot.value()
                            : payload_tensors(*slot.packed())[static_cast<size_t>(sources[i].part)]->get();
    if (value && value->is_unshared()) freed.push_back(static_cast<int32_t>(i));
  }
  return freed;
}

void follow(const ir::Remap& remap, std::vector<RuleRun>& rules, DriveLog& log) {
  const auto follow_value = [&](int32_t& v) {
    if (v != ir::kNoValue) v = remap.values[static_cast<size_t>(v)];
  };
  for (RuleRun& rule : rules) rule.end_node = static_cast<uint32_t>(remap.places[rule.end_node]);
  for (int32_t& v : log.lists) follow_value(v);
  for (DriveLog::Event& e : log.events)
    if (e.kind == DriveLog::Kind::arrived || e.kind == DriveLog::Kind::captured) follow_value(e.value);
}

}  // namespace

// No node moves across a point where groups stop, so the node numbers in the log remain valid.
void Capture::fuse(const BackwardRequest& request, const Reached& reached) {
  auto& [graph, sources, rules, log, recomputed, calls_recomputed] = recorded_;
  Executor& executor = executor_for(graph);
  if (!fuses(executor)) return;
  const std::vector<bool> stops = stops_of(graph, sources, log, reached);
  const std::vector<ir::ValueId> kept = log.values();
  const std::vector<int32_t> freed = freed_slots(sources, request, reached);
  const ir::Grouping grouping =
      ir::find_groups_within_peak(graph,
                                  {.executor = executor,
                                   .stops = [&](size_t node) { return stops[node]; },
                                   .kept = kept,
                                   .looks_ahead = false},
                                  {.given = freed});
  if (grouping.groups > 0) follow(ir::regroup(graph, grouping), rules, log);
}

}  // namespace retrograd
