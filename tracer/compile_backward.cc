// See tracer/compile_backward.h. State::execute is a call: look up, capture on a miss, run.
#include "tracer/compile_backward.h"

#include <unordered_map>

#include "engine/driver.h"
#include "engine/runner.h"
#include "tracer/capture.h"

namespace retrograd {
namespace {

struct KeyHash {
  size_t operator()(const std::array<uint64_t, 2>& k) const { return k[0]; }
};

// A run that was not to be retained leaves no slot usable, also those that no rule asked for.
void release_all(const Walk& walk) {
  for (const Walk::Item& item : walk.order())
    if (item.runs) item.record->release_slots();
}

}  // namespace

struct CompiledBackward::State {
  std::unordered_map<std::array<uint64_t, 2>, std::vector<std::unique_ptr<Capture>>, KeyHash> captures;
  const Capture* last = nullptr;
  std::string reason;
  Stats stats;

  // The capture and plan for this call, made when there is none.
  std::pair<Capture*, Capture::Entry*> prepare(const BackwardRequest& request, Walk& walk);
  Tensors execute(const BackwardRequest& request);
};

std::pair<Capture*, Capture::Entry*> CompiledBackward::State::prepare(const BackwardRequest& request, Walk& walk) {
  const BackwardKey key = make_key(request, walk);
  auto& known = captures[key.structure];
  for (auto& capture : known)
    if (Capture::Entry* entry = capture->find(key.sizes); entry && capture->update_numbers(walk, entry->values)) {
      ++stats.hits;
      return {capture.get(), entry};
    }
  std::string misfit = captures.size() == 1 && known.empty() ? "first call" : "new structure";
  for (auto& capture : known)
    if (std::vector<Number> values = capture->values(request, walk, misfit); !values.empty()) {
      ++stats.hits;
      ++stats.plans;
      return {capture.get(), &capture->add(key.sizes, std::move(values))};
    }
  reason = misfit;
  known.push_back(Capture::record(request, walk));
  ++stats.captures;
  Capture& capture = *known.back();
  std::vector<Number> values = capture.values(request, walk, misfit);
  RG_ASSERT(!values.empty());
  ++stats.plans;
  return {&capture, &capture.add(key.sizes, std::move(values))};
}

Tensors CompiledBackward::State::execute(const BackwardRequest& request) {
  Walk walk(request.roots, request.inputs ? &*request.inputs : nullptr);
  auto [capture, entry] = prepare(request, walk);
  last = capture;
  stats.nodes = static_cast<int64_t>(capture->graph().nodes().size());
  stats.unpacks += capture->unpack_count();
  std::vector<ir::Binding> bindings = capture->bind(request, walk);
  AutoGradMode mode(request.create_graph);
  CurrentBackward current(walk);
  Tensors outputs;
  // Only the plain eager emitter may be bypassed by a plan: gradients of gradients and tangents need theirs.
  const bool plain = !request.create_graph && &Emitter::current() == &eager_emitter();
  if (!plain) outputs = ir::replay(capture->graph(), Emitter::current(), bindings, entry->values);
  else outputs = entry->plan->run(bindings, entry->values, request.retain_graph);
  if (!request.retain_graph && (request.create_graph || capture->unpack_count() < walk.slot_count())) release_all(walk);
  return outputs;
}

CompiledBackward::CompiledBackward() : state_(std::make_unique<State>()) {}
CompiledBackward::~CompiledBackward() = default;
CompiledBackward::CompiledBackward(CompiledBackward&&) noexcept = default;
CompiledBackward& CompiledBackward::operator=(CompiledBackward&&) noexcept = default;

void CompiledBackward::operator()(const Tensor& loss, SourceLocation where) { backward({loss}, {}, {}, false, {}, where); }

void CompiledBackward::backward(const Tensors& roots, const Tensors& cotangents, std::optional<bool> retain_graph, bool create_graph,
                                const std::optional<Tensors>& inputs, SourceLocation where) {
  state_->execute(make_request(roots, cotangents, inputs, true, retain_graph, create_graph, where));
}

Tensors CompiledBackward::grad(const Tensors& roots, const Tensors& inputs, const Tensors& cotangents, std::optional<bool> retain_graph,
                               bool create_graph, bool allow_unused, SourceLocation where) {
  Tensors gradients = state_->execute(make_request(roots, cotangents, inputs, false, retain_graph, create_graph, where));
  check_unused(gradients, allow_unused, where);
  return gradients;
}

CompiledBackward::Stats CompiledBackward::stats() const { return state_->stats; }
const ir::Graph* CompiledBackward::graph() const { return state_->last ? &state_->last->graph() : nullptr; }
std::string CompiledBackward::last_capture_reason() const { return state_->reason; }
void CompiledBackward::reset() { *state_ = State(); }

}  // namespace retrograd
