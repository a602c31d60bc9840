// See tracer/compile_backward.h. State::run is a call; what it runs is found by the BackwardCache.
#include "tracer/compile_backward.h"

#include "engine/anomaly.h"
#include "engine/runner.h"
#include "tracer/backward_cache.h"
#include "tracer/log.h"
#include "tracer/profile.h"

namespace retrograd {

struct CompiledBackward::State final : BackwardRunner {
  BackwardCache cache;

  Tensors run(const BackwardRequest& request) override;

 private:
  Tensors run_found(const BackwardCache::Found& found, const BackwardRequest& request,
                    const Reached& reached);
};

Tensors CompiledBackward::State::run(const BackwardRequest& request) {
  if (Emitter::current().is_symbolic()) return run_backward(request);  // part of what is being recorded
  logging::RunLog log;
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

// Only the plain eager emitter may be bypassed by a plan: gradients of gradients and tangents need theirs, anomaly mode looks at each node.
// There, a graph that calls code of the user's would have to be left for the driver as soon as that code does something else: the driver
// runs from the start.
Tensors CompiledBackward::State::run_found(const BackwardCache::Found& found, const BackwardRequest& request,
                                           const Reached& reached) {
  const bool watched = autograd::DetectAnomalyGuard::is_enabled();
  if (!request.create_graph && !watched && &Emitter::current() == &eager_emitter()) {
    Plan::Outcome outcome = found.entry->plan->run(request, reached, found.structure->trail, found.values());
    if (outcome.left) cache.count_left();
    return std::move(outcome.gradients);
  }
  Watcher watcher(Emitter::current());
  Emitter& emitter = watched ? watcher : Emitter::current();
  if (watched && request.accumulate) check_leaves(reached.leaves);
  const Capture& capture = *found.capture;
  if (capture.may_leave()) {
    Walk walk = request.walk();
    return run_backward(request, walk, emitter);
  }
  size_t ran = 0;
  const auto release = [&] {
    if (!request.retain_graph) capture.release_slots(reached, ran);
  };
  try {
    Tensors gradients =
        ir::replay(capture.graph(), emitter, capture.bind(request, reached), found.values(), &ran);
    release();
    return gradients;
  } catch (...) {
    release();
    throw;
  }
}

CompiledBackward::CompiledBackward() : state_(std::make_shared<State>()) {}
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

// The object stays usable while it is reset: calls under way keep what they found.
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
