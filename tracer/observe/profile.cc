// See tracer/observe/profile.h. Its Chrome trace is in tracer/observe/chrome_trace.cc.
#include "tracer/observe/profile.h"

#include <chrono>

#include "engine/allocator.h"
#include "engine/tape.h"

namespace retrograd::inline v0 {
namespace {

int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
int64_t live_bytes() { return memory::stats().live_bytes; }

}  // namespace

// Collects the data of an open scope. As an emitter it notes every call that it passes on; results of bookkeeping ops
// continue existing records. Runs and steps are referenced by index: the vectors grow while a run or step is open.
// The profile may no longer exist after the scope has ended.
struct detail::Profiling final : Emitter::Layer {
  static constexpr size_t kNone = ~size_t{0};

  explicit Profiling(Profile& p) : Layer("Profiling"), profile(p) {}

  std::vector<Profile::Run>& runs() { return profile.runs_; }
  std::vector<Profile::Call>& calls() { return profile.calls_; }
  Profile::Step* step_at(size_t run, size_t step) {
    if (!is_open() || run >= runs().size() || step >= runs()[run].steps.size()) return nullptr;
    return &runs()[run].steps[step];
  }
  void emit(const Call& call, Tensor* results) override {
    const int64_t begin = now();
    below().emit(call, results);
    const int64_t end = now();
    if (is_open())
      calls().push_back({call.op->name, call.where, record_of(call, results), begin, end, live_bytes(),
                         work(call, results)});
  }

  Profile& profile;
  size_t run = kNone;  // the one that steps belong to

 private:
  static uint64_t record_of(const Call& call, const Tensor* results) {
    if (call.op->is(Trait::bookkeeping)) return Profile::kNoRecord;
    for (int i = 0; i < call.outputs; ++i)
      if (results[i].defined() && results[i].impl().grad_fn) return results[i].impl().grad_fn->seq;
    return Profile::kNoRecord;
  }

  // Nothing is known about values that are being recorded.
  Work work(const Call& call, const Tensor* results) const {
    if (below().is_symbolic()) return {};
    std::vector<TensorType> in, out;
    for (const TensorImpl* x : call.operands) in.push_back(x ? x->type() : TensorType());
    for (int i = 0; i < call.outputs; ++i)
      out.push_back(results[i].defined() ? results[i].impl().type() : TensorType());
    return work_of(*call.op, in, out);
  }
};

std::vector<uint32_t> Profile::Run::nodes_of(size_t i) const {
  const std::vector<ir::Node>& nodes = graph->nodes();
  const auto group_of = [&](uint32_t n) { return nodes[n].group; };
  std::vector<uint32_t> all{steps[i].node};
  const int32_t group = group_of(steps[i].node);
  const auto is_of_group = [&](const Step& s) { return !s.frees && group_of(s.node) == group; };
  const bool alone =
      !(i > 0 && is_of_group(steps[i - 1])) && !(i + 1 < steps.size() && is_of_group(steps[i + 1]));
  if (steps[i].frees || group < 0 || !alone) return all;
  while (all.front() > 0 && group_of(all.front() - 1) == group) all.insert(all.begin(), all.front() - 1);
  return all;
}

void Profile::clear() {
  runs_.clear();
  calls_.clear();
}

struct ProfileScope::Opened {
  explicit Opened(RefPtr<detail::Profiling> p)
      : profiling(std::move(p)), guard({RefPtr<Emitter::Layer>(profiling.get()), profiling.get()}) {
    profiling->open();
  }
  ~Opened() { profiling->end(); }

  RefPtr<detail::Profiling> profiling;
  OpenScopes<detail::ProfilingHere>::Guard guard;
};

ProfileScope::ProfileScope(Profile& profile)
    : opened_(new Opened(RefPtr<detail::Profiling>::adopt(new detail::Profiling(profile)))) {}
ProfileScope::~ProfileScope() = default;

ProfileRegion::ProfileRegion(std::string_view name, SourceLocation where)
    : name_(name), where_(where), profiling_(detail::profiling()), begin_(profiling_ ? now() : 0) {}

ProfileRegion::~ProfileRegion() {
  if (!profiling_ || profiling_ != detail::profiling()) return;  // the scope has been closed meanwhile
  profiling_->calls().push_back({name_, where_, Profile::kNoRecord, begin_, now(), live_bytes(), {}});
}

Emitter& emitter_below_profiles() {
  Emitter* emitter = &Emitter::current();
  if (!detail::profiling()) return *emitter;
  while (auto* profiling = dynamic_cast<detail::Profiling*>(emitter)) emitter = &profiling->below();
  return *emitter;
}

void ProfiledRun::begin(std::shared_ptr<const ir::Graph> graph, std::span<Record* const> records,
                        std::span<const Number> numbers) {
  Profile::Run run;
  run.numbers.assign(numbers.begin(), numbers.end());
  for (const Record* r : records) run.records.push_back({r->seq, r->op->name, r->where()});
  run.steps.reserve(graph->nodes().size());
  run.graph = std::move(graph);
  run.live_bytes = live_bytes();
  run.begin = now();
  run.end = 0;
  kept_ = RefPtr<Emitter::Layer>(profiling_);
  if (&Emitter::current() == profiling_) below_.emplace(profiling_->below());
  run_ = profiling_->runs().size();
  profiling_->runs().push_back(std::move(run));
  outer_run_ = std::exchange(profiling_->run, run_);
}

void ProfiledRun::end() {
  if (!profiling_->is_open()) return;
  profiling_->run = outer_run_;
  if (run_ < profiling_->runs().size()) profiling_->runs()[run_].end = now();
}

void ProfiledStep::begin(uint32_t node, bool frees) {
  run_ = profiling_->run;
  if (!profiling_->is_open() || run_ >= profiling_->runs().size()) return;
  auto& steps = profiling_->runs()[run_].steps;
  step_ = steps.size();
  steps.push_back({node, frees, now(), 0, 0});
}

void ProfiledStep::end() {
  Profile::Step* step = profiling_->step_at(run_, step_);
  if (!step) return;
  step->end = now();
  step->live_bytes = live_bytes();
}

}  // namespace retrograd
