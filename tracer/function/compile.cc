// See tracer/function/compile.h; start reading at FunctionCache::run.
#include "tracer/function/compile.h"

#include <algorithm>
#include <list>
#include <mutex>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "engine/nesting.h"
#include "engine/region_log.h"
#include "engine/runner.h"
#include "tracer/function/explain.h"
#include "tracer/function/pairs_log.h"
#include "tracer/function/sized_function.h"
#include "tracer/function/twin.h"
#include "tracer/observe/checks.h"
#include "tracer/observe/log.h"
#include "tracer/observe/profile.h"

namespace retrograd::inline v0 {

SourceLocation detail::line_of_call(SourceLocation where, SourceLocation compiled_at) {
  return where.file && std::string_view(where.file).ends_with("/invoke.h") ? compiled_at : where;
}

struct FunctionCache::State {
  State(FunctionKind k, CompileOptions o) : kind(k), options(o) {
    const Checks checks = checks_of_environment();
    if (!options.twin_calls) options.twin_calls = checks.twin_calls;
    options.check_pairs |= checks.pairs;
    if (options.twin_calls < 0)
      fail(Category::bad_argument, name(), fmt::format("twin_calls is {}", options.twin_calls));
  }
  static std::shared_ptr<State> without_function(const FunctionCache& moved) {
    auto state = std::make_shared<State>(moved.state_->kind, moved.state_->options);
    state->has_function = false;
    return state;
  }
  std::string_view name() const { return kind == FunctionKind::step ? "compile_step" : "compile"; }
  PairForm pairs() const { return options.check_pairs ? PairForm::checked : PairForm::inlined; }
  const FunctionKind kind;
  CompileOptions options;
  bool has_function = true;
  // Recordings of a step, and its runs without user code, change shared state (.grad of leaves, memory of
  // parameters): they are serialised. Nothing that runs meanwhile takes this mutex again, unless the function waits
  // for another thread that does.
  std::mutex turn;
  std::mutex mutex;
  struct Entry {
    std::shared_ptr<FunctionCapture> capture;
    std::list<std::shared_ptr<SizedFunction>> sized;  // most recently used first
  };
  std::list<Entry> entries;  // most recently used first
  std::shared_ptr<SizedFunction> last;
  Stats stats;
  std::string reason, eager_reason;
  std::string fixed_because;            // why sizes are never symbols
  std::vector<LiveInteger> live_sizes;  // live numbers that the function uses as sizes
  std::string gone;                     // a tensor that a dropped recording needed
  // Known about calls before they are recorded: the results of their opaque functions, or why they cannot be
  // recorded.
  struct Known {
    CallGuard guard;
    KnownCalls calls;
    std::string not_recordable = {};
  };
  std::list<Known> known;  // most recently noted first

  // What serves a call: a capture, the values of its symbols, and, if there is one, its plan for these sizes.
  struct Found {
    std::shared_ptr<FunctionCapture> capture;
    std::vector<Number> values;
    std::shared_ptr<SizedFunction> sized;
    bool is_twin_call = false;
    OutsideTensors::Pins pins = {};
  };
  // Destroyed without the lock, since tensors and hooks may go with them.
  struct Dropped {
    std::list<Entry> entries;
    std::shared_ptr<SizedFunction> last;
    std::vector<OutsideTensors::Pins> pins;
  };
  // Of a recording a tensor is gone. If an object that the function uses has replaced it, the function can be recorded
  // again.
  void drop(std::list<Entry>::iterator it, Dropped& dropped) {
    if (it->capture->guards().misfit_of_objects().empty()) gone = it->capture->gone();
    if (last && last->shared_capture() == it->capture) dropped.last = std::exchange(last, nullptr);
    for (const auto& sized : it->sized) add(stats, *sized);
    ++stats.dropped;
    dropped.entries.splice(dropped.entries.end(), entries, it);
  }
  Found find(const CallGuard& guard, const Tensors& arguments, std::string& why) {
    Dropped dropped;
    std::lock_guard lock(mutex);
    why = "first call";
    for (auto next = entries.begin(); next != entries.end();) {
      const auto it = next++;
      std::optional<OutsideTensors::Pins> pins = it->capture->pin();
      if (!pins) {
        drop(it, dropped);
        continue;
      }
      std::string misfit;
      std::optional<std::vector<Number>> values = it->capture->fit(guard, arguments, misfit);
      if (it == entries.begin() && !values) why = std::move(misfit);
      if (!values) {
        dropped.pins.push_back(*std::move(pins));
        continue;
      }
      entries.splice(entries.begin(), entries, it);
      ++stats.hits;
      const bool is_twin_call = options.twin_calls && stats.hits % options.twin_calls == 0;
      stats.twins += is_twin_call;
      std::list<std::shared_ptr<SizedFunction>>& all = it->sized;
      const auto sized = std::ranges::find_if(all, [&](const auto& s) { return s->has_sizes(*values); });
      if (sized != all.end()) all.splice(all.begin(), all, sized);
      return {it->capture, std::move(*values), sized == all.end() ? nullptr : all.front(), is_twin_call,
              *std::move(pins)};
    }
    return {};
  }
  // Another recording would call the function, which may refer to what is gone.
  void check_nothing_gone(SourceLocation where) {
    std::lock_guard lock(mutex);
    if (!gone.empty()) fail_gone(gone, where);
  }
  [[noreturn]] void fail_gone(std::string_view what, SourceLocation where) const {
    fail(Category::bad_argument, name(),
         fmt::format(
             "a tensor that the function uses is gone: {}. A recorded function does not keep parameters and "
             "state of others alive. Hint: keep model and optimizer as long as it is called; reset() before "
             "a call that is to record the function with others",
             what),
         where);
  }
  // The capture of a call that differed in sizes only; null if there is none.
  std::shared_ptr<FunctionCapture> with_other_sizes(const CallGuard& guard) {
    std::lock_guard lock(mutex);
    if (options.dynamic == DynamicSizes::never || !fixed_because.empty()) return nullptr;
    const auto differs_in_sizes = [&](const Entry& e) {
      return e.capture->guards().call().difference(guard, false).empty();
    };
    const auto it = std::ranges::find_if(entries, differs_in_sizes);
    return it == entries.end() ? nullptr : it->capture;
  }
  static void add(Stats& stats, const SizedFunction& sized) {
    if (const PrecomputedGradients* p = sized.precomputed()) {
      stats.precomputed += p->prediction().hits();
      stats.precomputed_missed += p->prediction().misses();
    }
    stats.launches.add(sized.plan().launch_stats());
  }
  std::optional<Known> what_is_known(const CallGuard& guard) {
    std::lock_guard lock(mutex);
    for (const Known& k : known)
      if (k.guard.difference(guard).empty()) return k;
    return {};
  }
  void note(Known now) {
    std::lock_guard lock(mutex);
    std::erase_if(known, [&](const Known& k) { return k.guard.difference(now.guard).empty(); });
    known.push_front(std::move(now));
    if (known.size() > options.recordings) known.pop_back();
  }
  // Which sizes become symbols in a recording.
  SizeRequest symbols_for(const CallGuard& guard) {
    const std::shared_ptr<FunctionCapture> before = with_other_sizes(guard);
    std::lock_guard lock(mutex);
    if (options.dynamic == DynamicSizes::never || !fixed_because.empty()) return {};
    const bool all = options.dynamic == DynamicSizes::always;
    return {before ? SizeSymbols::varied : all ? SizeSymbols::all : SizeSymbols::none, before, live_sizes};
  }
  void add_live_size(const LiveInteger& number) {
    std::lock_guard lock(mutex);
    if (!std::ranges::count(live_sizes, number)) live_sizes.push_back(number);
  }
  // Recordings with symbols are dropped.
  void fix_sizes(std::string because) {
    std::lock_guard lock(mutex);
    fixed_because = std::move(because);
    std::erase_if(entries, [](const Entry& e) { return e.capture->sizes().count() > 0; });
  }
  void keep(std::shared_ptr<FunctionCapture> capture, std::string why) {
    std::lock_guard lock(mutex);
    ++stats.captures;
    reason = std::move(why);
    if (!fixed_because.empty() && capture->sizes().count()) return;  // recorded by another thread before that
    entries.push_front({std::move(capture), {}});
    if (entries.size() <= std::max<size_t>(options.recordings, 1)) return;
    for (const auto& sized : entries.back().sized) add(stats, *sized);
    entries.pop_back();
    ++stats.evictions;
  }
  void keep(std::shared_ptr<SizedFunction> sized) {
    std::lock_guard lock(mutex);
    ++stats.plans;
    const auto it =
        std::ranges::find_if(entries, [&](const Entry& e) { return e.capture.get() == &sized->capture(); });
    if (it == entries.end()) return;  // evicted meanwhile
    it->sized.push_front(std::move(sized));
    if (it->sized.size() <= std::max<size_t>(options.plans, 1)) return;
    add(stats, *it->sized.back());
    it->sized.pop_back();
    ++stats.plan_evictions;
  }
  void use(std::shared_ptr<SizedFunction> sized) {
    std::lock_guard lock(mutex);
    stats.nodes = static_cast<int64_t>(sized->graph().nodes().size());
    last = std::move(sized);
  }
};

FunctionCache::FunctionCache(FunctionKind kind, CompileOptions options)
    : state_(std::make_shared<State>(kind, options)) {}
FunctionCache::FunctionCache(FunctionCache&& o)
    : state_(std::exchange(o.state_, State::without_function(o))) {}
FunctionCache& FunctionCache::operator=(FunctionCache&& o) {
  state_ = std::exchange(o.state_, State::without_function(o));
  return *this;
}

namespace {

// Why a call can neither be recorded nor run as a plan: something else must see each operation. Empty: it can.
std::string_view why_eager() {
  if (Emitter::current().values() == Emitter::Values::of_function) return "inside another recorded function";
  if (&emitter_below_profiles() != &eager_emitter()) return "forward mode, or another emitter, is on";
  if (autograd::DetectAnomalyGuard::is_enabled()) return "anomaly mode is on";
  if (FunctionCall::Observer::current()) return "inside another function that is called as it is";
  if (SubstitutionScope::is_open()) return "functional_call has replaced parameters around the call";
  if (RegionLog::is_open()) return "a checkpoint around the call must see each operation";
  if (WriteWatcher::Scopes::innermost()) return "AllowMutationOnSavedTensors must see each write in place";
  return {};
}

void check_defined(const CallParts& arguments, std::string_view name, SourceLocation where) {
  for (const Tensor& t : arguments.tensors)
    if (!t.defined())
      fail(Category::bad_argument, name,
           "an argument of a compiled function is undefined. Hint: a default-constructed Tensor has no "
           "value; an "
           "argument that may be missing is a std::optional<Tensor>",
           where);
}

// Notes the results of the opaque functions that are called.
class DryRun final : public FunctionCall::Observer {
 public:
  KnownCalls known;

  void called(FunctionCall::Signature signature, std::shared_ptr<std::atomic<uint64_t>> missing) override {
    known.push_back({std::move(signature), std::move(missing)});
  }
};

}  // namespace

Tensors FunctionCache::run(const Function& function, const Tensors& arguments, SourceLocation where) const {
  const FunctionBody body = [&](const Tensors& given) -> CallOutcome { return {function(given)}; };
  return run_parts(body, {arguments}, where).tensors;
}

CallOutcome FunctionCache::dry_run(const FunctionBody& body, const CallParts& arguments,
                                   std::string why) const {
  CallGuard guard(arguments);
  DryRun calls;
  CallOutcome outcome;
  {
    FunctionCall::Observer::Scope scope(&calls);
    outcome = run_eagerly(body, arguments, std::move(why));
  }
  state_->note({std::move(guard), std::move(calls.known)});
  return outcome;
}

// The function itself. A step's results have no history.
CallOutcome FunctionCache::run_eagerly(const FunctionBody& body, const CallParts& arguments,
                                       std::string why) const {
  {
    std::lock_guard lock(state_->mutex);
    ++state_->stats.eager;
    state_->eager_reason = std::move(why);
  }
  CallOutcome outcome = body(arguments.tensors);
  if (state_->kind == FunctionKind::step && &emitter_below_profiles() == &eager_emitter())
    for (Tensor& t : outcome.tensors)
      if (t.defined() && !t.is_leaf()) t = t.detach();
  return outcome;
}

// Sets `server`, also when it throws: whether the call was to be recorded.
void FunctionCache::find_or_record(const FunctionBody& body, const CallParts& arguments, Server& server,
                                   SourceLocation where) const {
  const CallGuard guard(arguments);
  std::string why;
  State::Found found = state_->find(guard, arguments.tensors, why);
  server = {found.sized, !found.capture, found.is_twin_call, std::move(found.pins)};
  if (found.sized) return;
  if (server.is_first) {
    state_->check_nothing_gone(where);
    const std::optional<State::Known> known = state_->what_is_known(guard);
    if (known && !known->not_recordable.empty()) throw NotRecordable(known->not_recordable);
    try {
      found.capture = std::make_shared<FunctionCapture>(body, arguments.tensors, guard, state_->kind,
                                                        known ? &known->calls : nullptr,
                                                        state_->symbols_for(guard), state_->pairs(), where);
    } catch (const NotRecordable& e) {
      state_->note({guard, {}, e.what()});
      throw;
    }
    if (found.capture->sizes().count())
      found.values = RecordedFunction::hints(found.capture->recorded().graph);
    std::optional<OutsideTensors::Pins> pins = found.capture->pin();
    if (!pins) state_->fail_gone(found.capture->gone(), where);
    server.pins = *std::move(pins);
  }
  auto sized = std::make_shared<SizedFunction>(found.capture, arguments.tensors, std::move(found.values),
                                               state_->options.budget);
  if (server.is_first) {
    found.capture->choose(sized->choices());
    if (found.capture->has_traceable_pairs() && logging::wants(logging::Topic::trace))
      log_before_inlining(*sized, body, arguments.tensors);
    sized->log(why);
    state_->keep(found.capture, std::move(why));
  }
  state_->keep(sized);
  server.sized = std::move(sized);
}

FunctionCache::Server FunctionCache::serve(const FunctionBody& body, const CallParts& arguments,
                                           SourceLocation where) const {
  Server server;
  bool has_failed = false;
  for (;;) try {
      find_or_record(body, arguments, server, where);
      return server;
    } catch (const LiveSizeNeeded& e) {
      state_->add_live_size(e.number());
    } catch (const FixedSizesNeeded& e) {
      state_->fix_sizes(e.what());
    } catch (const InternalError& e) {
      // An op refuses its operands at these sizes: the function itself will say so in its own words.
      if (server.is_first || std::exchange(has_failed, true)) throw;
      state_->fix_sizes(e.what());
    }
}

// The call must be one that `recorded` serves.
void FunctionCache::check_twin(const FunctionBody& body, const CallParts& arguments,
                               const SizedFunction& recorded, SourceLocation where) const {
  const FunctionCapture& before = recorded.capture();
  const std::string call = to_string(before.where());
  std::string difference;
  try {
    FunctionCapture twin(body, arguments.tensors, CallGuard(arguments), state_->kind, before.known(),
                         SizeRequest{SizeSymbols::as_before, recorded.shared_capture()}, before.pairs(),
                         where);
    difference = difference_of_twin(recorded, twin);
  } catch (const DryRunNeeded&) {
    difference = "it calls other functions of the user";
  } catch (const LiveSizeNeeded&) {
    difference = "it uses a live number as a size that it did not use as one";
  } catch (const NotRecordable& e) {
    difference = fmt::format("it cannot be recorded any more: {}", e.what());
  } catch (const FixedSizesNeeded&) {
    difference = "it calls an opaque function that it did not call";
  } catch (Exception& e) {
    e.add_context("while the recording of the call at " + call + " was checked");
    throw;
  }
  if (!difference.empty())
    fail(Category::bad_argument, state_->name(),
         fmt::format("the function is not what was recorded for the call at {}: {}. Hint: what changes "
                     "between calls is an argument or a Live number",
                     call, difference),
         where);
}

CallOutcome FunctionCache::run_checked(const FunctionBody& body, const CallParts& arguments,
                                       SourceLocation where) const {
  logging::RunLog log;
  if (const std::string_view why = why_eager(); !why.empty())
    return run_eagerly(body, arguments, std::string(why));
  for (const Tensor& a : arguments.tensors)
    if (!is_outdated(a.impl())) refresh_view(a.impl());  // otherwise its use is refused
  std::unique_lock turn(state_->turn, std::defer_lock);
  if (state_->kind == FunctionKind::step) turn.lock();
  Server server;
  try {
    server = serve(body, arguments, where);
  } catch (const DryRunNeeded& e) {
    if (turn) turn.unlock();
    return dry_run(body, arguments, e.what());
  } catch (const NotRecordable& e) {
    if (turn) turn.unlock();
    return run_eagerly(body, arguments, e.what());
  }
  if (server.is_twin_call) check_twin(body, arguments, *server.sized, where);
  state_->use(server.sized);
  const SizedFunction& sized = *server.sized;
  if (turn && sized.capture().calls_code()) turn.unlock();
  CallOutcome outcome{server.sized->run(arguments.tensors, server.is_first, where), sized.capture().form()};
  log.ran(sized.graph(), server.is_first);
  return outcome;
}

void FunctionCache::check_has_function(SourceLocation where) const {
  if (!state_->has_function)
    fail(Category::bad_argument, state_->name(), "this compiled function has been moved to another place",
         where);
}

// An error inside the function has the line of an operation; it also tells the line of the call.
CallOutcome FunctionCache::run_parts(const FunctionBody& body, const CallParts& arguments,
                                     SourceLocation where) const {
  check_has_function(where);
  check_defined(arguments, state_->name(), where);
  const Nesting nesting(state_->name(), where);
  try {
    return run_checked(body, arguments, where);
  } catch (Exception& e) {
    const std::string line = to_string(where);
    if (std::string_view(e.what()).find(line) == std::string_view::npos)
      e.add_context(fmt::format("in the call of {}() at {}", state_->name(), line));
    throw;
  }
}

FunctionCache::Stats FunctionCache::stats() const {
  std::lock_guard lock(state_->mutex);
  Stats stats = state_->stats;
  for (const State::Entry& entry : state_->entries)
    for (const auto& sized : entry.sized) State::add(stats, *sized);
  stats.launches.segments = state_->last ? state_->last->plan().launch_stats().segments : 0;
  return stats;
}

std::string FunctionCache::explain() const {
  std::lock_guard lock(state_->mutex);
  if (!state_->last) return "";
  const MemoryReport* const memory = state_->last->memory();
  return explanation_of(state_->last->capture(), state_->fixed_because) + (memory ? memory->text() : "");
}

MemoryReport FunctionCache::memory() const {
  std::lock_guard lock(state_->mutex);
  const MemoryReport* const found = state_->last ? state_->last->memory() : nullptr;
  return found ? *found : MemoryReport();
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

std::vector<ir::Binding> FunctionCache::bindings(const Tensors& arguments) const {
  std::lock_guard lock(state_->mutex);
  if (!state_->last) return {};
  const std::optional<OutsideTensors::Pins> pins = state_->last->capture().pin();
  return pins ? state_->last->bind(arguments) : std::vector<ir::Binding>();
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
  state_->entries.clear();
  state_->last.reset();
  state_->stats = {};
  state_->reason.clear();
  state_->eager_reason.clear();
  state_->known.clear();
  state_->gone.clear();
}

}  // namespace retrograd
