// See tracer/plan/plan.h. The program is made by tracer/plan/planner.h.
#include "tracer/plan/plan.h"

#include <algorithm>

#include "engine/runner.h"
#include "ir/passes/memory_classes.h"
#include "tracer/plan/frame.h"
#include "tracer/plan/planner.h"

namespace retrograd::inline v0 {
namespace {

Device device_of_types(std::span<const TensorType> types) {
  const auto elsewhere = std::ranges::find_if(types, [](const TensorType& t) { return t.device != kCPU; });
  return elsewhere == types.end() ? Device(kCPU) : elsewhere->device;
}

}  // namespace

Device device_for(const ir::Graph& graph) { return device_of_types(graph.types()); }
Executor& executor_for(const ir::Graph& graph) { return executor_of(device_for(graph)); }

bool Program::may_overwrite(const Step& s, int operand, int result) const {
  if (s.kind == StepKind::fused) return fused_of(s).kernel->may_overwrite(operand, result);
  return ir::may_lie_over(*node(s).op, graph.operands(node(s)), static_cast<size_t>(operand), result);
}

Device Program::device() const { return device_of_types(layout.types); }

Plan::Plan(const PlanRequest& request)
    : program_(make_program(request)), notes_(program_.segments.list.size()) {
  stats_.segments = std::ssize(program_.segments.list);
}

Plan::~Plan() { delete spare_.load(); }

std::unique_ptr<Frame> Plan::lease_frame() const {
  std::unique_ptr<Frame> frame(spare_.exchange(nullptr, std::memory_order_acquire));
  return frame ? std::move(frame) : std::make_unique<Frame>(program_);
}

// Keeps at most one frame. The one that it replaces was used by another thread.
void Plan::give_back(std::unique_ptr<Frame> frame) const {
  delete spare_.exchange(frame.release(), std::memory_order_acq_rel);
}

void Plan::count(const LaunchStats& of_run) const {
  std::lock_guard lock(stats_mutex_);
  stats_.add(of_run);
}

void Plan::note(size_t number, std::string why) const {
  std::lock_guard lock(stats_mutex_);
  notes_[number] = std::move(why);
}

LaunchStats Plan::launch_stats() const {
  std::lock_guard lock(stats_mutex_);
  return stats_;
}

std::string Plan::segments_text() const {
  if (!program_.records_launches)
    return "no segments: " +
           (program_.executor.records_launches()
                ? std::string("only a whole step has an arena")
                : "the " + std::string(program_.executor.name()) + " executor records no launches") +
           "\n";
  std::lock_guard lock(stats_mutex_);
  return to_text(program_.segments, notes_);
}

}  // namespace retrograd
