// See tracer/compile_backward.h. State::run is a call: look up, capture on a miss, run.
#include "tracer/compile_backward.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/anomaly.h"
#include "engine/runner.h"
#include "tracer/capture.h"
#include "tracer/log.h"
#include "tracer/profile.h"
#include "tracer/trail.h"

namespace retrograd {
namespace {

struct KeyHash {
  size_t operator()(const Key& k) const { return k[0]; }
};

// One structure: how it is recognised, and its graphs. More than one when sizes that were equal by chance differed later.
struct Structure {
  Key key;
  Trail trail;
  std::vector<std::shared_ptr<Capture>> captures;
  int64_t runs = 0;
};

// What a call runs.
struct Found {
  std::shared_ptr<Structure> structure;
  std::shared_ptr<Capture> capture;
  std::shared_ptr<const Capture::Entry> entry;
  std::vector<Number> numbers;  // instead of entry->values, when the graph has numbers
  bool captured = false;        // for this call
  std::span<const Number> values() const { return numbers.empty() ? entry->values : numbers; }
};

}  // namespace

// The mutex guards everything below it; it is not held while a backward is recorded or run.
struct CompiledBackward::State final : BackwardRunner {
  mutable std::mutex mutex;
  std::list<std::shared_ptr<Structure>> structures;  // the last used first
  std::unordered_map<Key, std::list<std::shared_ptr<Structure>>::iterator, KeyHash> by_key;
  std::shared_ptr<Capture> last;
  std::string reason;
  Stats stats;

  Tensors run(const BackwardRequest& request) override;
  bool knows(const BackwardRequest& request, Reached& reached);

 private:
  std::shared_ptr<Structure> newest() const;
  std::shared_ptr<Structure> find(const Key& key);
  std::shared_ptr<Structure> add(const Key& key, const BackwardRequest& request, Walk& walk);
  static bool find_plan(const std::shared_ptr<Structure>& structure, const Key& sizes, const Reached& reached,
                        Found& found);
  bool look_up(const std::shared_ptr<Structure>& structure, const BackwardRequest& request,
               const Reached& reached, Found& found, std::string& misfit);
  Found prepare(const BackwardRequest& request, Reached& reached);
  Tensors run_found(const Found& found, const BackwardRequest& request, const Reached& reached);
  Found capture(const std::shared_ptr<Structure>& structure, const BackwardRequest& request, Walk& walk,
                const Reached& reached);
};

std::shared_ptr<Structure> CompiledBackward::State::newest() const {
  std::lock_guard lock(mutex);
  return structures.empty() ? nullptr : structures.front();
}

std::shared_ptr<Structure> CompiledBackward::State::find(const Key& key) {
  std::lock_guard lock(mutex);
  const auto it = by_key.find(key);
  if (it == by_key.end()) return nullptr;
  structures.splice(structures.begin(), structures, it->second);
  return structures.front();
}

std::shared_ptr<Structure> CompiledBackward::State::add(const Key& key, const BackwardRequest& request,
                                                        Walk& walk) {
  auto structure = std::make_shared<Structure>(Structure{key, Trail(request, walk), {}});
  std::lock_guard lock(mutex);
  if (const auto it = by_key.find(key); it != by_key.end()) return *it->second;  // another thread was quicker
  structures.push_front(structure);
  by_key[key] = structures.begin();
  if (structures.size() > kStructures) {
    by_key.erase(structures.back()->key);
    structures.pop_back();
    ++stats.evictions;
  }
  return structure;
}

// A plan that is there. The mutex is held.
bool CompiledBackward::State::find_plan(const std::shared_ptr<Structure>& structure, const Key& sizes,
                                        const Reached& reached, Found& found) {
  for (const auto& capture : structure->captures) {
    found = {structure, capture, capture->find(sizes), {}};
    if (!found.entry) continue;
    if (!capture->has_numbers()) return true;
    found.numbers = found.entry->values;
    if (capture->read_numbers(reached, found.numbers)) return true;
  }
  return false;
}

// A graph and a plan of the structure that fit this call; a new plan of a graph that fits.
bool CompiledBackward::State::look_up(const std::shared_ptr<Structure>& structure,
                                      const BackwardRequest& request, const Reached& reached, Found& found,
                                      std::string& misfit) {
  const Key sizes = sizes_key(request, reached);
  std::vector<std::shared_ptr<Capture>> captures;
  {
    std::lock_guard lock(mutex);
    if (find_plan(structure, sizes, reached, found)) {
      ++stats.hits;
      ++structure->runs;
      return true;
    }
    captures = structure->captures;
  }
  for (const auto& capture : captures) {
    std::vector<Number> values = capture->values(request, reached, misfit);
    if (values.empty()) continue;
    found = {structure, capture, capture->make_plan(sizes, std::move(values)), {}};
    std::lock_guard lock(mutex);
    stats.evictions += capture->keep(found.entry);
    ++stats.plans;
    ++stats.hits;
    ++structure->runs;
    return true;
  }
  return false;
}

Found CompiledBackward::State::capture(const std::shared_ptr<Structure>& structure,
                                       const BackwardRequest& request, Walk& walk, const Reached& reached) {
  std::string misfit;
  std::shared_ptr<Capture> capture = Capture::record(request, walk);
  std::vector<Number> values = capture->values(request, reached, misfit);
  RG_ASSERT(!values.empty());
  Found found{structure, capture, capture->make_plan(sizes_key(request, reached), std::move(values)), {}};
  std::lock_guard lock(mutex);
  capture->keep(found.entry);
  structure->captures.push_back(std::move(capture));
  if (structure->captures.size() > CompiledBackward::kGraphs) {
    structure->captures.erase(structure->captures.begin());
    ++stats.evictions;
  }
  ++structure->runs;
  ++stats.captures;
  ++stats.plans;
  return found;
}

Found CompiledBackward::State::prepare(const BackwardRequest& request, Reached& reached) {
  Found found;
  std::string misfit;
  const std::shared_ptr<Structure> recent = newest();
  if (recent && recent->trail.matches(request, reached) && look_up(recent, request, reached, found, misfit))
    return found;
  Walk walk = request.walk();
  reached = walk.reached();
  const Key key = structure_key(request, walk);
  std::shared_ptr<Structure> structure = find(key);
  if (structure && structure != recent && look_up(structure, request, reached, found, misfit)) return found;
  if (!structure) {
    misfit = recent ? recent->trail.difference(request, walk) : "first call";
    structure = add(key, request, walk);
  }
  {
    std::lock_guard lock(mutex);
    ++stats.misses;
    reason = misfit;
  }
  found = capture(structure, request, walk, reached);
  found.captured = true;
  logging::captured(found.capture->graph(), misfit);
  return found;
}

bool CompiledBackward::State::knows(const BackwardRequest& request, Reached& reached) {
  std::shared_ptr<Structure> structure = newest();
  if (!structure || !structure->trail.matches(request, reached)) {
    Walk walk = request.walk();
    reached = walk.reached();
    structure = find(structure_key(request, walk));
  }
  if (!structure) return false;
  const Key sizes = sizes_key(request, reached);
  Found found;
  std::string misfit;
  std::lock_guard lock(mutex);
  return find_plan(structure, sizes, reached, found) ||
         std::ranges::any_of(structure->captures, [&](const auto& capture) {
           return !capture->values(request, reached, misfit).empty();
         });
}

Tensors CompiledBackward::State::run(const BackwardRequest& request) {
  logging::RunLog log;
  Reached reached;
  const Found found = prepare(request, reached);
  const Capture& capture = *found.capture;
  {
    std::lock_guard lock(mutex);
    last = found.capture;
    stats.nodes = static_cast<int64_t>(capture.graph().nodes().size());
    stats.unpacks += capture.unpack_count();
  }
  const ProfiledRun profiled(found.capture, capture.graph(), reached.records, found.values());
  AutoGradMode mode(request.create_graph);
  CurrentBackward current(request);
  Tensors gradients = run_found(found, request, reached);
  current.run_callbacks();
  log.ran(capture.graph(), found.captured);
  return gradients;
}

// Only the plain eager emitter may be bypassed by a plan: gradients of gradients and tangents need theirs, anomaly mode looks at each node.
// There, a graph that calls code of the user's would have to be left for the driver as soon as that code does something else: the driver
// runs from the start.
Tensors CompiledBackward::State::run_found(const Found& found, const BackwardRequest& request,
                                           const Reached& reached) {
  const bool watched = autograd::DetectAnomalyGuard::is_enabled();
  if (!request.create_graph && !watched && &Emitter::current() == &eager_emitter()) {
    Plan::Outcome outcome = found.entry->plan->run(request, reached, found.structure->trail, found.values());
    if (outcome.left) {
      std::lock_guard lock(mutex);
      ++stats.left;
    }
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
CompiledBackward::CompiledBackward(CompiledBackward&&) noexcept = default;
CompiledBackward& CompiledBackward::operator=(CompiledBackward&&) noexcept = default;

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
  return state_->knows(make_request(roots, cotangents, {}, true, false, false, where), reached);
}

CompiledBackward::Stats CompiledBackward::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->stats;
}

std::shared_ptr<const ir::Graph> CompiledBackward::graph() const {
  std::lock_guard lock(state_->mutex);
  if (!state_->last) return nullptr;
  return {state_->last, &state_->last->graph()};
}

std::string CompiledBackward::last_capture_reason() const {
  std::lock_guard lock(state_->mutex);
  return state_->reason;
}

std::string CompiledBackward::explain() const {
  std::lock_guard lock(state_->mutex);
  const Stats& s = state_->stats;
  std::string text = fmt::format(
      "{} structures, {} captures, {} plans; {} hits, {} misses, {} evictions; {} runs left their graph\n",
      state_->structures.size(), s.captures, s.plans, s.hits, s.misses, s.evictions, s.left);
  for (const auto& structure : state_->structures) {
    text += fmt::format("structure of {} records, ran {} times\n", structure->trail.size(), structure->runs);
    for (const auto& capture : structure->captures) {
      const ir::Graph& g = capture->graph();
      text +=
          fmt::format("  graph of {} nodes: {} inputs, {} of them slots; {} symbols, {} guards; {} plans\n",
                      g.nodes().size(), g.inputs().size(), capture->unpack_count(), g.symbols.symbol_count(),
                      g.symbols.guards().size(), capture->plan_count());
    }
  }
  if (!state_->reason.empty())
    text += fmt::format("the last capture was needed because: {}\n", state_->reason);
  return text;
}

// The object stays usable while it is reset: calls under way keep the state that they began with.
void CompiledBackward::reset() {
  std::lock_guard lock(state_->mutex);
  state_->structures.clear();
  state_->by_key.clear();
  state_->last.reset();
  state_->reason.clear();
  state_->stats = {};
}

struct CompiledBackwardScope::Opened {
  std::shared_ptr<BackwardRunner> runner;
  BackwardRunner::Scope scope{runner.get()};
};

CompiledBackwardScope::CompiledBackwardScope(CompiledBackward& compiled)
    : opened_(new Opened{compiled.state_}) {}
CompiledBackwardScope::CompiledBackwardScope(std::nullptr_t) : opened_(new Opened) {}
CompiledBackwardScope::~CompiledBackwardScope() = default;

}  // namespace retrograd
