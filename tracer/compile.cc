// See tracer/compile.h; start reading at FunctionCache::run.
#include "tracer/compile.h"

#include <list>
#include <mutex>

#include "engine/inplace.h"
#include "engine/nesting.h"
#include "engine/runner.h"
#include "tracer/function_capture.h"
#include "tracer/profile.h"

namespace retrograd {

struct FunctionCache::State {
  explicit State(FunctionKind k) : kind(k) {}
  static std::unique_ptr<State> without_function(const FunctionCache& moved) {
    auto state = std::make_unique<State>(moved.state_->kind);
    state->has_function = false;
    return state;
  }
  std::string_view name() const { return kind == FunctionKind::step ? "compile_step" : "compile"; }
  const FunctionKind kind;
  bool has_function = true;
  // Recordings of a step, and its runs without code of the user's, change what others see, .grad of leaves and the memory of parameters: they
  // take turns. Nothing that runs meanwhile comes back here, unless the function waits for another thread that does.
  std::mutex turn;
  std::mutex mutex;
  std::list<std::shared_ptr<FunctionCapture>> captures;  // the last used first
  std::shared_ptr<FunctionCapture> last;
  Stats stats;
  std::string reason, eager_reason;
  // What is known of calls before they are recorded: what their opaque functions give, or why they cannot be recorded.
  struct Known {
    CallLook look;
    FunctionRecorder::KnownCalls calls;
    std::string not_recordable = {};
  };
  std::list<Known> known;  // the last noted first

  std::shared_ptr<FunctionCapture> find(const CallLook& look, const Tensors& arguments, std::string& why) {
    std::lock_guard lock(mutex);
    why = "first call";
    for (auto it = captures.begin(); it != captures.end(); ++it) {
      std::string misfit = (*it)->misfit(look, arguments);
      if (misfit.empty()) {
        captures.splice(captures.begin(), captures, it);
        ++stats.hits;
        return captures.front();
      }
      if (it == captures.begin()) why = std::move(misfit);
    }
    return nullptr;
  }
  static void add(Stats& stats, const FunctionCapture& capture) {
    const auto [hits, misses] = capture.guesses();
    stats.ahead += hits;
    stats.ahead_missed += misses;
    stats.launches.add(capture.plan().launch_stats());
  }
  std::optional<Known> what_is_known(const CallLook& look) {
    std::lock_guard lock(mutex);
    for (const Known& k : known)
      if (k.look.difference(look).empty()) return k;
    return {};
  }
  void note(Known now) {
    std::lock_guard lock(mutex);
    std::erase_if(known, [&](const Known& k) { return k.look.difference(now.look).empty(); });
    known.push_front(std::move(now));
    if (known.size() > kCaptures) known.pop_back();
  }
  void keep(std::shared_ptr<FunctionCapture> capture, std::string why) {
    std::lock_guard lock(mutex);
    ++stats.captures;
    reason = std::move(why);
    captures.push_front(std::move(capture));
    if (captures.size() <= kCaptures) return;
    add(stats, *captures.back());
    captures.pop_back();
    ++stats.evictions;
  }
};

FunctionCache::FunctionCache(FunctionKind kind) : state_(std::make_unique<State>(kind)) {}
FunctionCache::~FunctionCache() = default;
FunctionCache::FunctionCache(FunctionCache&& o)
    : state_(std::exchange(o.state_, State::without_function(o))) {}
FunctionCache& FunctionCache::operator=(FunctionCache&& o) {
  state_ = std::exchange(o.state_, State::without_function(o));
  return *this;
}

namespace {

// Why a call cannot be recorded, nor run as a plan: something else wants to see each operation. Empty: nothing does.
std::string_view why_eager() {
  if (Emitter::current().values() == Emitter::Values::of_function) return "inside another recorded function";
  if (&emitter_below_profiles() != &eager_emitter()) return "forward mode, or another emitter, is on";
  if (autograd::DetectAnomalyGuard::is_enabled()) return "anomaly mode is on";
  if (FunctionCall::Observer::current()) return "inside another function that is called as it is";
  if (WriteWatcher::Scopes::innermost()) return "AllowMutationOnSavedTensors is to see each write in place";
  return {};
}

// Notes what the opaque functions give that are called.
class Rehearsal final : public FunctionCall::Observer {
 public:
  FunctionRecorder::KnownCalls calls;

  void called(FunctionCall::Signature signature, std::shared_ptr<std::atomic<uint64_t>> missing) override {
    calls.push_back({std::move(signature), std::move(missing)});
  }
};

}  // namespace

Tensors FunctionCache::rehearse(const Function& function, const Tensors& arguments, std::string why) {
  CallLook look(arguments);
  Rehearsal rehearsal;
  Tensors results;
  {
    FunctionCall::Observer::Scope scope(&rehearsal);
    results = run_eagerly(function, arguments, std::move(why));
  }
  state_->note({std::move(look), std::move(rehearsal.calls)});
  return results;
}

// The function itself. A step's results have no history.
Tensors FunctionCache::run_eagerly(const Function& function, const Tensors& arguments, std::string why) {
  {
    std::lock_guard lock(state_->mutex);
    ++state_->stats.eager;
    state_->eager_reason = std::move(why);
  }
  Tensors results = function(arguments);
  if (state_->kind == FunctionKind::step && &emitter_below_profiles() == &eager_emitter())
    for (Tensor& t : results)
      if (t.defined() && !t.is_leaf()) t = t.detach();
  return results;
}

Tensors FunctionCache::run(const Function& function, const Tensors& arguments, SourceLocation where) {
  if (!state_->has_function)
    fail(Category::bad_argument, state_->name(), "this compiled function has been moved to another place",
         where);
  const Nesting nesting(state_->name(), where);
  if (const std::string_view why = why_eager(); !why.empty())
    return run_eagerly(function, arguments, std::string(why));
  for (const Tensor& a : arguments)
    if (!is_outdated(a.impl())) refresh_view(a.impl());  // else it is refused where it is used
  std::unique_lock turn(state_->turn, std::defer_lock);
  if (state_->kind == FunctionKind::step) turn.lock();
  const CallLook look(arguments);
  std::string why;
  std::shared_ptr<FunctionCapture> capture = state_->find(look, arguments, why);
  const bool first = !capture;
  if (first) {
    const std::optional<State::Known> known = state_->what_is_known(look);
    if (known && !known->not_recordable.empty()) {
      if (turn) turn.unlock();
      return run_eagerly(function, arguments, known->not_recordable);
    }
    try {
      capture = std::make_shared<FunctionCapture>(function, arguments, look, state_->kind,
                                                  known ? &known->calls : nullptr, where);
    } catch (const RehearsalNeeded& e) {
      if (turn) turn.unlock();
      return rehearse(function, arguments, e.what());
    } catch (const NotRecordable& e) {
      state_->note({look, {}, e.what()});
      if (turn) turn.unlock();
      return run_eagerly(function, arguments, e.what());
    }
    state_->keep(capture, std::move(why));
  }
  {
    std::lock_guard lock(state_->mutex);
    state_->last = capture;
    state_->stats.nodes = static_cast<int64_t>(capture->graph().nodes().size());
  }
  if (turn && capture->calls_code()) turn.unlock();
  return capture->run(arguments, first, where);
}

FunctionCache::Stats FunctionCache::stats() const {
  std::lock_guard lock(state_->mutex);
  Stats stats = state_->stats;
  for (const auto& capture : state_->captures) State::add(stats, *capture);
  stats.launches.segments = state_->last ? state_->last->plan().launch_stats().segments : 0;
  return stats;
}

std::string FunctionCache::segments() const {
  std::lock_guard lock(state_->mutex);
  return state_->last ? state_->last->plan().segments_text() : "";
}

std::shared_ptr<const ir::Graph> FunctionCache::graph() const {
  std::lock_guard lock(state_->mutex);
  if (!state_->last) return nullptr;
  return {state_->last, &state_->last->graph()};
}

std::shared_ptr<const ir::Graph> FunctionCache::backward_graph() const {
  std::lock_guard lock(state_->mutex);
  if (!state_->last || !state_->last->backward_graph()) return nullptr;
  return {state_->last, state_->last->backward_graph()};
}

std::string FunctionCache::last_capture_reason() const {
  std::lock_guard lock(state_->mutex);
  return state_->reason;
}

std::string FunctionCache::last_eager_reason() const {
  std::lock_guard lock(state_->mutex);
  return state_->eager_reason;
}

void FunctionCache::reset() {
  std::lock_guard lock(state_->mutex);
  state_->captures.clear();
  state_->last.reset();
  state_->stats = {};
  state_->reason.clear();
  state_->eager_reason.clear();
  state_->known.clear();
}

}  // namespace retrograd
