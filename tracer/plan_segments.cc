// The segments of a plan: what find_segments() is told of its steps, and what is told of them. See tracer/segments.h and tracer/plan_graphs.h.
#include <algorithm>

#include "tracer/host_node.h"
#include "tracer/plan_graphs.h"

namespace retrograd {
std::string_view Plan::host_work(const Step& s) const {
  const ir::Node& node = graph_.nodes()[s.node];
  switch (s.kind) {
    case Kind::hook:
    case Kind::function: return "it calls code of the user's";
    case Kind::unpack: return "it unpacks a saved value";
    case Kind::accumulate_grad:
    case Kind::retain_grad: return "it gives a gradient to a tensor";
    case Kind::release:
    case Kind::drop: return "it lets go of memory";
    case Kind::host:
      return node.op == &host::give_grad || node.op == &host::write_out
                 ? "it puts a value where code of the user's sees it"
             : node.op->is(Trait::effect) ? "it calls code of the user's"
                                          : "it runs on the host";
    default: break;
  }
  if (s.kind == Kind::view) return {};
  if (!follows_numbers(s)) return "its numbers are others in each run";
  if (s.kind == Kind::fused) return {};
  std::vector<TensorType> operands, results;
  for (ir::ValueId v : graph_.operands(node))
    operands.push_back(v == ir::kNoValue ? TensorType{}
                                         : cell_types_[static_cast<size_t>(graph_.type_index(v))]);
  for (int i = 0; i < s.results; ++i)
    results.push_back(cell_types_[static_cast<size_t>(graph_.type_index(node.first_result + i))]);
  const void* attrs = s.attrs.is_patched ? patched_attrs_.data() + s.attrs.patched_at : s.attrs.fixed;
  return executor_.host_work(*node.op, attrs, operands, results);
}

// Whether a launch finds its numbers anew whenever a graph with it is started, as they are then where its attributes were at the recording.
// Executors that record launches see to that for steps of optimizers, several at once too, and for draws, but for those within groups.
bool Plan::follows_numbers(const Step& s) const {
  const OpInfo& op = *graph_.nodes()[s.node].op;
  if (s.kind != Kind::fused) return !s.attrs.is_patched || op.is(Trait::updates) || op.is(Trait::random);
  return op.is(Trait::updates) || std::ranges::none_of(fused_of(s).attrs, &Attrs::is_patched);
}

SegmentStep Plan::segment_step(const Step& s) const {
  SegmentStep step{s.kind == Kind::view ? SegmentStep::Kind::view : SegmentStep::Kind::launch};
  step.name = graph_.nodes()[s.node].op->name;
  step.why = host_work(s);
  if (!step.why.empty()) step.kind = SegmentStep::Kind::host;
  const std::span<const int32_t> all(registers_.data() + s.first_register,
                                     size_t{s.operands} + s.results + s.dying);
  step.operands = all.first(s.operands);
  step.results = all.subspan(s.operands, s.results);
  step.dying = all.last(s.dying);
  if (s.kind == Kind::fused)
    step.into = fused_of(s).into;
  else
    for (int i = 0; i < s.results; ++i) step.into.push_back(s.computes_into(i));
  return step;
}

void Plan::find_segments() {
  std::vector<SegmentStep> steps;
  steps.reserve(steps_.size());
  for (const Step& s : steps_) steps.push_back(segment_step(s));
  segments_ = retrograd::find_segments(steps, static_cast<int32_t>(arena_offsets_.size()));
  notes_.resize(segments_.list.size());
  stats_.segments = std::ssize(segments_.list);
}

LaunchStats Plan::launch_stats() const {
  std::lock_guard lock(stats_mutex_);
  return stats_;
}

std::string Plan::segments_text() const {
  if (!records_)
    return "no segments: " +
           (executor_.records_launches()
                ? std::string("only a whole step has an arena")
                : "the " + std::string(executor_.name()) + " executor records no launches") +
           "\n";
  std::lock_guard lock(stats_mutex_);
  return to_text(segments_, notes_);
}

Plan::Recordings::Recordings(const Plan& plan)
    : segments(plan.segments_.list.size()),
      memory(plan.register_types_.size()),
      is_copied(plan.register_types_.size()) {
  for (size_t i = 0; i < segments.size(); ++i) {
    segments[i].reads.resize(plan.segments_.list[i].reads.size());
    segments[i].memory.resize(plan.segments_.list[i].memory.size());
  }
}

}  // namespace retrograd
