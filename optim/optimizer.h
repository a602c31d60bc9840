// Optimizer: parameter groups, their options, and the state of an algorithm for each parameter.
//
//   optim::AdamW optimizer(model.parameters(), {.lr = 3e-3});
//   optim::SGD optimizer({{weights, {.lr = 0.1, .momentum = 0.9}}, {biases, {.lr = 0.1}}});
//
// Data: OptimizerOf<Algorithm> holds groups of {params, Algorithm::Options} and one Algorithm::State per parameter,
// found by the tensor.
// A step is an op for each parameter that has a gradient (ops/optimizer_steps.h), so it can be recorded
// (tracer/function/compile.h). Steps of parameters with the same numbers are done together: one pass over the memory of
// all, divided among the threads.
// A parameter's step is counted when it has been computed. So a step that fails, in eager mode or in a recorded
// function, leaves parameters, state and counts unchanged; if some parameters had been updated before, the error says
// how many.
// State is made with the optimizer, filled with zeros, except for parameters that require no gradient. So the first
// step needs no more memory than later ones, and a lack of memory shows before training.
// A parameter without a gradient is skipped, including its state, as in PyTorch; so parameters may be frozen. The
// options and parameters in groups() may be changed between steps. A parameter keeps its state in any group, and also
// while it is in none; a new one begins without state. A recorded step follows such changes, if necessary by another
// recording. The optimizer must outlive the recorded function: a run after that is an error.
// Limits: parameters are float32, float64, bfloat16 or float16 and contiguous; the optimizer writes their memory. State
// has the parameter's dtype. Only one thread at a time may use an optimizer; two that step it at the same time are an
// error.
// Start reading at OptimizerOf::step, then optim/sgd.h or optim/adamw.h.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>

#include "engine/recording.h"
#include "io/state_dict.h"
#include "ops/creation.h"
#include "ops/optimizer_steps.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Updates every parameter that has a gradient.
  virtual void step(SourceLocation where = SourceLocation::current()) = 0;
  /// The learning rate of all groups.
  virtual void set_lr(double lr) = 0;
  virtual Tensors parameters() const = 0;
  /// The state, as "<number of the parameter>.<PyTorch's name>": tensors that share the memory of the optimizer, and
  /// "step" as int64.
  virtual StateDict state_dict() const = 0;
  /// Takes over a copy of a saved state, PyTorch's too: that of its SGD has no "step". Errors: bad_argument for a key
  /// that does not belong here or for AdamW's moments without "step", shape_mismatch, dtype_mismatch.
  virtual void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current()) = 0;
  /// Drops the gradients of all parameters, or fills them with zeros.
  void zero_grad(bool set_to_none = true);
};

/// The part of a group that does not depend on the type of the options.
template <class Options>
struct ParamGroup {
  Tensors params;
  Options options = {};
};

namespace detail {
/// Error unless each is a contiguous leaf of a dtype that can be updated, and none is listed twice.
void check_params(const Tensors& params, std::string_view optimizer, SourceLocation where);
/// Writes `name` of parameter `index` into the dictionary, if it is defined.
void save_state(StateDict& out, size_t index, std::string_view name, const Tensor& value);
/// Makes zeros like the parameter, unless the state exists. Not recorded.
void need_state(Tensor& state, const Tensor& param);
/// `now` gets the values of `loaded`, in its own memory if it has any: a recorded step continues with it.
void take_over(Tensor& now, const Tensor& loaded);
/// Takes `name` of parameter `index` out of `rest`, as a copy of the parameter's type; undefined when it is missing.
Tensor take_state(StateDict& rest, size_t index, std::string_view name, const Tensor& param,
                  SourceLocation where);
std::optional<int64_t> take_step(StateDict& rest, size_t index, SourceLocation where);
[[noreturn]] void fail_without_step(size_t index, SourceLocation where);
[[noreturn]] void fail_unknown_key(std::string_view key, SourceLocation where);
/// For an optimizer that a recorded function steps after its end.
[[noreturn]] void fail_gone(std::string_view optimizer);
/// Allows one step of an optimizer at a time: Error(bad_argument) for another one meanwhile.
class OnlyStep {
 public:
  OnlyStep(std::atomic<bool>& is_running, std::string_view optimizer, SourceLocation where);
  ~OnlyStep() { is_running_ = false; }
  OnlyStep(const OnlyStep&) = delete;

 private:
  std::atomic<bool>& is_running_;
};
/// The parameters of the groups, by group: a recorded step depends on them.
struct Place {
  size_t group;
  const TensorImpl* param;
  friend bool operator==(const Place&, const Place&) = default;
};
template <class Group>
bool fits(const std::vector<Place>& places, const std::vector<Group>& groups) {
  size_t next = 0;
  for (size_t g = 0; g < groups.size(); ++g)
    for (const Tensor& param : groups[g].params)
      if (next == places.size() || places[next++] != Place{g, param.get()}) return false;
  return next == places.size();
}
}  // namespace detail

/// Algorithm: Options with lr; Step, its op; static constexpr name and numbers_count; and as static functions
///   check(options, where)             Error(bad_argument) for options outside their domain
///   make(options, state, param)       makes missing state
///   operands(options, state, param)   of the op
///   numbers(options, state, step, out)  the numbers that may change from step to step; step: counted from 1
///   attrs(options, numbers)           of the op
///   form(options)                     the other options: when they change, a recorded step is recorded again
///   visit(state, f)                   f("exp_avg", tensor) for each tensor of the state
///   is_filled(state)                  whether a step has written the state, so that it is no longer the initial zeros
///   resume(state, loaded)             updates everything else that depends on a loaded state
/// needs_step: a saved state without "step" cannot be used.
/// State: its tensors; int64_t step, the number of steps done; and ahead, the number of further steps whose numbers
/// recorded functions have read already.
template <class Algorithm>
class OptimizerOf : public Optimizer {
 public:
  using Options = typename Algorithm::Options;
  using Group = ParamGroup<Options>;

  explicit OptimizerOf(const Tensors& params, Options options = {},
                       SourceLocation where = SourceLocation::current())
      : OptimizerOf(std::vector<Group>{{params, options}}, where) {}
  explicit OptimizerOf(std::vector<Group> groups, SourceLocation where = SourceLocation::current())
      : data_(std::make_shared<Data>()) {
    data_->groups = std::move(groups);
    for (const Group& group : data_->groups) Algorithm::check(group.options, where);
    follow_groups(where);
  }
  /// The moved-from optimizer has no parameters.
  OptimizerOf(OptimizerOf&& o) : data_(std::exchange(o.data_, std::make_shared<Data>())) {}
  OptimizerOf& operator=(OptimizerOf&& o) {
    data_ = std::exchange(o.data_, std::make_shared<Data>());
    return *this;
  }

  std::vector<Group>& groups() { return data_->groups; }
  const std::vector<Group>& groups() const { return data_->groups; }

  void set_lr(double lr) override {
    for (Group& group : groups()) group.options.lr = lr;
  }

  Tensors parameters() const override {
    Tensors all;
    for (const Group& group : groups()) all.insert(all.end(), group.params.begin(), group.params.end());
    return all;
  }

  void step(SourceLocation where = SourceLocation::current()) override {
    const detail::OnlyStep only(data_->is_stepping, Algorithm::name, where);
    NoGradGuard no_grad;
    for (const Group& group : groups()) Algorithm::check(group.options, where);
    follow_groups(where);
    ops::UpdateList<typename Algorithm::Step> updates(where);
    bool checks_places = true;  // a recorded step must check once
    for (size_t g = 0; g < groups().size(); ++g)
      for (const Tensor& param : groups()[g].params) {
        if (!param.grad().defined()) continue;
        const Options& options = groups()[g].options;
        State& state = state_of(param);
        Algorithm::make(options, state, param);  // options may require more than when it was made
        Scalar numbers[Algorithm::numbers_count];
        const bool is_counted = read_numbers(g, state, std::exchange(checks_places, false), numbers);
        updates.add(Algorithm::operands(options, state, param), Algorithm::attrs(options, numbers),
                    is_counted ? nullptr : &state.step);
      }
    updates.run();
  }

  StateDict state_dict() const override {
    StateDict out;
    const Tensors params = parameters();
    for (size_t i = 0; i < params.size(); ++i) {
      const auto entry = data_->entries.find(params[i].get());
      if (entry == data_->entries.end()) continue;
      State state = entry->second.state;
      const bool is_filled = Algorithm::is_filled(state);
      if (!is_filled && state.step == 0) continue;  // as if it did not exist yet
      if (is_filled)
        Algorithm::visit(
            state, [&](std::string_view name, Tensor& value) { detail::save_state(out, i, name, value); });
      detail::save_state(out, i, "step", scalar_tensor(state.step, {kInt64}));
    }
    return out;
  }

  void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current()) override {
    NoGradGuard no_grad;
    follow_groups(where);
    StateDict rest = state;
    const Tensors params = parameters();
    std::vector<State> loaded(params.size());
    for (size_t i = 0; i < loaded.size(); ++i) {
      Algorithm::visit(loaded[i], [&](std::string_view name, Tensor& value) {
        value = detail::take_state(rest, i, name, params[i], where);
      });
      const std::optional<int64_t> step = detail::take_step(rest, i, where);
      if (Algorithm::needs_step && !step && has_tensors(loaded[i])) detail::fail_without_step(i, where);
      loaded[i].step = step.value_or(0);
    }
    if (!rest.empty()) detail::fail_unknown_key(rest.begin()->first, where);
    for (size_t i = 0; i < loaded.size(); ++i) {
      State& now = state_of(params[i]);
      std::vector<Tensor> values;
      Algorithm::visit(loaded[i], [&](std::string_view, Tensor& value) { values.push_back(value); });
      size_t next = 0;
      Algorithm::visit(now,
                       [&](std::string_view, Tensor& value) { detail::take_over(value, values[next++]); });
      now.step = loaded[i].step;
      Algorithm::resume(now, loaded[i]);
    }
  }

 private:
  using State = typename Algorithm::State;
  struct Entry {
    Tensor param;  // its address is the key
    State state;
  };
  // On the heap, so that its address is the same when the optimizer is moved: recorded steps refer to it.
  struct Data {
    std::vector<Group> groups;
    std::unordered_map<const TensorImpl*, Entry> entries;
    std::shared_ptr<const std::vector<detail::Place>> places;  // of the groups, when they were last checked
    std::atomic<bool> is_stepping = false;
  };

  State& state_of(const Tensor& param) { return data_->entries.at(param.get()).state; }

  // Checks changed parameters, and makes the state of new ones.
  void follow_groups(SourceLocation where) {
    if (data_->places && detail::fits(*data_->places, groups())) return;
    detail::check_params(parameters(), Algorithm::name, where);
    auto places = std::make_shared<std::vector<detail::Place>>();
    for (size_t g = 0; g < groups().size(); ++g)
      for (const Tensor& param : groups()[g].params) {
        places->push_back({g, param.get()});
        const auto [entry, is_new] = data_->entries.try_emplace(param.get(), Entry{param, {}});
        if (is_new && param.requires_grad())
          Algorithm::make(groups()[g].options, entry->second.state, param);
      }
    data_->places = std::move(places);
  }

  // Reads the numbers of the next step. While a function is recorded, it reads them again before each run and counts
  // steps itself; then returns true.
  bool read_numbers(size_t group, State& state, bool checks_places, std::span<Scalar> out) const {
    if (Emitter::current().values() != Emitter::Values::of_function) {
      Algorithm::numbers(groups()[group].options, state, state.step + 1, out);
      return false;
    }
    const std::weak_ptr<Data> data = data_;
    const auto read = [data, group, &state](std::span<Scalar> now) {
      const std::shared_ptr<Data> lives = data.lock();
      if (!lives) detail::fail_gone(Algorithm::name);
      const Options& options = lives->groups[group].options;
      Algorithm::check(options, {});
      Algorithm::numbers(options, state, state.step + state.ahead + 1, now);
      ++state.ahead;
    };
    const auto settle = [data, &state](std::span<const Number>, bool was_made) {
      if (data.expired()) return;
      --state.ahead;
      state.step += was_made;
    };
    const auto fits = [data, group, places = checks_places ? data_->places : nullptr,
                       form = Algorithm::form(groups()[group].options)] {
      const std::shared_ptr<Data> lives = data.lock();
      if (!lives) return true;  // read() reports it
      if (places && !detail::fits(*places, lives->groups)) return false;
      return group < lives->groups.size() && Algorithm::form(lives->groups[group].options) == form;
    };
    read_live_numbers(out, {read, settle, fits});
    return true;
  }

  static bool has_tensors(State& state) {
    bool found = false;
    Algorithm::visit(state, [&](std::string_view, const Tensor& value) { found |= value.defined(); });
    return found;
  }

  std::shared_ptr<Data> data_;
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
