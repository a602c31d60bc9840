// See tracer/backward/recorded_backward.h.
#include "tracer/backward/recorded_backward.h"

#include <algorithm>
#include <optional>

#include "engine/region.h"
#include "tracer/backward/departure.h"

namespace retrograd::inline v0 {

void RecordedBackward::take(Recorder& recorder) {
  sources = std::move(recorder.sources);
  rules = std::move(recorder.rules);
  recomputed = std::move(recorder.recomputed);
  calls_recomputed = recorder.calls_recomputed;
  if (recorder.log.may_leave) log = std::move(recorder.log);
}

bool RecordedBackward::has_parts() const {
  return std::ranges::any_of(sources, [](const Source& s) { return s.part >= 0; });
}

std::unique_ptr<Plan> RecordedBackward::plan(std::span<const Number> values, Executor& executor) const {
  std::vector<std::optional<SlotPlace>> slots(sources.size());
  for (size_t i = 0; i < sources.size(); ++i)
    if (const Source& s = sources[i]; s.kind == Source::Kind::slot)
      slots[i] = SlotPlace{s.place, SavedSlots::index(s.index, s.part), s.offset};
    else if (s.kind == Source::Kind::region)
      slots[i] = SlotPlace{SavedSlots::kRegions + s.place, s.index, 0};
  std::vector<SlotRelease> releases;
  for (const RuleRun& rule : rules)
    if (rule.leaves_slots) releases.push_back({rule.place, rule.end_node});
  const std::vector<KeptValue> kept = log.kept();
  const std::vector<ir::ValueId> group_outputs = log.values();
  return std::make_unique<Plan>(PlanRequest{.graph = graph,
                                            .values = values,
                                            .executor = executor,
                                            .slots = slots,
                                            .releases = releases,
                                            .may_stop = log.may_leave,
                                            .kept = kept,
                                            .group_outputs = group_outputs});
}

RecordedBackward::Outcome RecordedBackward::run(const Plan& plan, const BackwardRequest& request,
                                                const Reached& reached, const Trail& trail,
                                                std::span<const Number> numbers) const {
  std::vector<ir::Binding> bindings;
  bindings.reserve(sources.size());
  Binder bind(request, reached);
  for (const Source& s : sources)
    if (s.kind != Source::Kind::slot && s.kind != Source::Kind::region) bindings.push_back(bind(s));
  if (calls_recomputed) recompute_counters.recomputed.fetch_add(calls_recomputed, std::memory_order_relaxed);
  if (Region::Observer::current)
    for (uint32_t region : recomputed) Region::Observer::current->recomputes(*reached.regions[region]);
  const std::vector<RefPtr<Region>> alive(reached.regions.begin(), reached.regions.end());  // to the end
  Departure departure(log, request, reached, trail);
  PlanRun run(plan, std::move(bindings), numbers, {reached.records, reached.regions, request.retain_graph},
              &departure);
  if (run.go()) return {run.outputs(), false};
  return {departure.resume(run), true};
}

std::vector<ir::Binding> RecordedBackward::bind(const BackwardRequest& request,
                                                const Reached& reached) const {
  std::vector<ir::Binding> bindings;
  bindings.reserve(sources.size());
  Binder bind(request, reached);
  for (const Source& s : sources) bindings.push_back(bind(s));
  return bindings;
}

void RecordedBackward::release_slots(const Reached& reached, size_t ran) const {
  for (const RuleRun& rule : rules)
    if (rule.end_node <= ran) reached.records[rule.place]->release_slots();
}

}  // namespace retrograd
