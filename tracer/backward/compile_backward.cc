// See tracer/backward/compile_backward.h. State::run is a call; the BackwardCache finds the graph and plan.
#include "tracer/backward/compile_backward.h"

#include "engine/anomaly.h"
#include "engine/autocast.h"
#include "engine/batching.h"
#include "engine/runner.h"
#include "tracer/backward/backward_cache.h"
#include "tracer/backward/check_pairs.h"
#include "tracer/observe/checks.h"
#include "tracer/observe/log.h"
#include "tracer/observe/profile.h"

namespace retrograd::inline v0 {

struct CompiledBackward::State final : BackwardRunner {
  BackwardCache cache;
  bool checks_pairs = false;

  Tensors run(const BackwardRequest& request) override;

 private:
  Tensors run_found(const BackwardCache::Found& found, const BackwardRequest& request,
                    const Reached& reached);
};

Tensors CompiledBackward::State::run(const BackwardRequest& request) {
  if (Emitter::current().is_symbolic() || Batching::innermost())  // part of the current recording, or of vmap
    return run_backward(request);
  logging::RunLog log;
  const detail::AutocastOff no_casts;
  Reached reached;
  const BackwardCache::Found found = cache.prepare(request, reached);
  const Capture& capture = *found.capture;
  const ProfiledRun profiled(found.capture, capture.graph(), reached.records, found.values());
  AutoGradMode mode(request.create_graph);
  CurrentBackward current(request);
  Tensors gradients = run_found(found, request, reached);
  current.end();
  log.ran(capture.graph(), found.captured);
  return gradients;
}

// A plan may bypass only the plain eager emitter: gradients of gradients and tangents need their own emitter, anomaly
// mode inspects each node. With another emitter, a graph that calls user code would have to be left for the driver as
// soon as that code changes something: so the driver runs from the start.
Tensors CompiledBackward::State::run_found(const BackwardCache::Found& found, const BackwardRequest& request,
                                           const Reached& reached) {
  const RecordedBackward& recorded = found.capture->recorded();
  if (checks_pairs) check_inlined_pairs(request);
  const bool watched = autograd::DetectAnomalyGuard::is_enabled();
  if (!request.create_graph && !watched && &Emitter::current() == &eager_emitter()) {
    RecordedBackward::Outcome outcome =
        recorded.run(*found.entry->plan, request, reached, found.structure->trail, found.values());
    if (outcome.left) cache.count_left();
    return std::move(outcome.gradients);
  }
  Watcher watcher(Emitter::current());
  Emitter& emitter = watched ? watcher : Emitter::current();
  if (watched && request.accumulate) check_leaves(reached.leaves);
  if (recorded.log.may_leave || recorded.has_parts()) {
    Walk walk = request.walk();
    return run_backward(request, walk, emitter);
  }
  size_t ran = 0;
  const auto release = [&] {
    if (!request.retain_graph) recorded.release_slots(reached, ran);
  };
  try {
    Tensors gradients =
        ir::replay(recorded.graph, emitter, recorded.bind(request, reached), found.values(), &ran);
    release();
    return gradients;
  } catch (...) {
    release();
    throw;
  }
}

CompiledBackward::CompiledBackward(const BackwardOptions& options) : state_(std::make_shared<State>()) {
  state_->checks_pairs = options.check_pairs || checks_of_environment().pairs;
}
CompiledBackward::~CompiledBackward() = default;
CompiledBackward::CompiledBackward(CompiledBackward&& o)
    : state_(std::exchange(o.state_, std::make_shared<State>())) {}
CompiledBackward& CompiledBackward::operator=(CompiledBackward&& o) {
  state_ = std::exchange(o.state_, std::make_shared<State>());
  return *this;
}

void CompiledBackward::operator()(const Tensor& loss, SourceLocation where) {
  backward({loss}, {}, {}, false, {}, where);
}

void CompiledBackward::backward(const Tensors& roots, const Tensors& cotangents,
                                std::optional<bool> retain_graph, bool create_graph,
                                const std::optional<Tensors>& inputs, SourceLocation where) {
  const std::shared_ptr<State> state = state_;
  state->run(make_request(roots, cotangents, inputs, true, retain_graph, create_graph, where));
}

Tensors CompiledBackward::grad(const Tensors& roots, const Tensors& inputs, const Tensors& cotangents,
                               std::optional<bool> retain_graph, bool create_graph, bool allow_unused,
                               bool materialize_grads, SourceLocation where) {
  const std::shared_ptr<State> state = state_;
  Tensors gradients =
      state->run(make_request(roots, cotangents, inputs, false, retain_graph, create_graph, where));
  finish_gradients(gradients, inputs, allow_unused, materialize_grads, where);
  return gradients;
}

bool CompiledBackward::knows(const Tensors& roots, const Tensors& cotangents, SourceLocation where) const {
  Reached reached;
  return state_->cache.knows(make_request(roots, cotangents, {}, true, false, false, where), reached);
}

CompiledBackward::Stats CompiledBackward::stats() const { return state_->cache.stats(); }
std::string CompiledBackward::last_capture_reason() const { return state_->cache.reason(); }
std::string CompiledBackward::explain() const { return state_->cache.explain(); }

std::shared_ptr<const ir::Graph> CompiledBackward::graph() const {
  const std::shared_ptr<Capture> last = state_->cache.last();
  if (!last) return nullptr;
  return {last, &last->graph()};
}

// The object stays usable while it is reset: running calls keep their graphs and plans.
void CompiledBackward::reset() { state_->cache.reset(); }

struct CompiledBackwardScope::Opened {
  BackwardRunner::Scopes::Guard guard;
};

CompiledBackwardScope::CompiledBackwardScope(CompiledBackward& compiled)
    : opened_(new Opened{BackwardRunner::Scopes::Guard(compiled.state_)}) {}
CompiledBackwardScope::CompiledBackwardScope(std::nullptr_t)
    : opened_(new Opened{BackwardRunner::Scopes::Guard(nullptr)}) {}
CompiledBackwardScope::~CompiledBackwardScope() = default;

}  // namespace retrograd
