// Optimizer: parameter groups, their options, and the state that an algorithm keeps for each parameter.
//
//   optim::AdamW optimizer(model.parameters(), {.lr = 3e-3});
//   optim::SGD optimizer({{weights, {.lr = 0.1, .momentum = 0.9}}, {biases, {.lr = 0.1}}});
//
// Data: OptimizerOf<Algorithm> holds groups of {params, Algorithm::Options} and one Algorithm::State a parameter, in order of the groups.
// A step is an op for each parameter that has a gradient (ops/optimizer_steps.h), so it can be recorded (tracer/compile.h). Those of
// parameters whose numbers are the same are done together: one pass over the memory of all, shared out among the threads.
// A parameter's step is counted when it has been computed. So a step that fails, as it is or within a recorded function, leaves parameters, state
// and counts as they were; where some parameters had been updated before, the error says how many.
// State is made, zero, with the optimizer, save that of parameters that require no gradient: the first step takes no memory that later ones do
// not, and too little memory shows before training.
// A parameter without a gradient is passed over, its state included, as in PyTorch; so parameters may be frozen. Options may be changed between
// steps through groups() or set_lr(), which a recorded step follows; groups must not be added to an optimizer whose steps are recorded, and it
// must outlive them: a run after it is an error.
// Limits: parameters are float32, float64, bfloat16 or float16 and contiguous; the optimizer writes their memory, so they must not be replaced.
// State is of the parameter's dtype.
// Start reading at OptimizerOf::step, then optim/sgd.h or optim/adamw.h.
#pragma once

#include <memory>

#include "engine/emitter.h"
#include "io/state_dict.h"
#include "ops/creation.h"
#include "ops/optimizer_steps.h"

namespace retrograd::optim {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Updates every parameter that has a gradient.
  virtual void step(SourceLocation where = SourceLocation::current()) = 0;
  /// The learning rate of all groups.
  virtual void set_lr(double lr) = 0;
  virtual Tensors parameters() const = 0;
  /// The state, as "<number of the parameter>.<PyTorch's name>": tensors that share the memory of the optimizer, and "step" as int64.
  virtual StateDict state_dict() const = 0;
  /// Takes over a copy of a saved state, PyTorch's too: that of its SGD has no "step". Errors: bad_argument for a key that does not belong
  /// here or for AdamW's moments without "step", shape_mismatch, dtype_mismatch.
  virtual void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current()) = 0;
  /// Drops the gradients of all parameters, or fills them with zeros.
  void zero_grad(bool set_to_none = true);
};

/// What groups have in common, apart from the type of their options.
template <class Options>
struct ParamGroup {
  Tensors params;
  Options options = {};
};

namespace detail {
/// Error unless each is a contiguous leaf of a dtype that can be updated, and none stands twice.
void check_params(const Tensors& params, std::string_view optimizer, SourceLocation where);
/// Writes `name` of parameter `index` into the dictionary, when there is something.
void save_state(StateDict& out, size_t index, std::string_view name, const Tensor& value);
/// Zeros like the parameter, unless it is there. Not recorded.
void need_state(Tensor& state, const Tensor& param);
/// `now` gets the values of `loaded`, in its own memory where it has some: a recorded step goes on with it.
void take_over(Tensor& now, const Tensor& loaded);
/// Takes `name` of parameter `index` out of `rest`, as a copy of the parameter's type; undefined when it is not there.
Tensor take_state(StateDict& rest, size_t index, std::string_view name, const Tensor& param,
                  SourceLocation where);
std::optional<int64_t> take_step(StateDict& rest, size_t index, SourceLocation where);
[[noreturn]] void fail_without_step(size_t index, SourceLocation where);
[[noreturn]] void fail_unknown_key(std::string_view key, SourceLocation where);
/// Of an optimizer that a recorded function steps.
[[noreturn]] void fail_gone(std::string_view optimizer);
/// Tells recorded functions whether the optimizer is there whose options and counts they read. A copy begins its own life; what is moved goes on.
struct Life {
  Life() = default;
  Life(const Life&) : Life() {}
  Life(Life&&) = default;
  Life& operator=(const Life&) { return *this = Life(); }
  Life& operator=(Life&&) = default;
  std::shared_ptr<const bool> token = std::make_shared<bool>(true);
};
}  // namespace detail

/// Algorithm: Options with lr; Step, its op; static constexpr name and numbers_count; and as static functions
///   check(options, where)             Error(bad_argument) for options outside their domain
///   make(options, state, param)       makes missing state
///   operands(options, state, param)   of the op
///   numbers(options, state, step, out)  what may change from step to step; step: counted from 1
///   attrs(options, numbers)           of the op
///   form(options)                     of what is no number: a recorded step is recorded anew where it is another one
///   visit(state, f)                   f("exp_avg", tensor) for each tensor of the state
///   is_filled(state)                  whether these are what steps have left, no longer the zeros that they are made as
///   resume(state, loaded)             what else follows from a loaded state
/// needs_step: a saved state without "step" cannot be used.
/// State: its tensors; int64_t step, steps that have been made; and ahead, those whose numbers recorded functions have read beyond that.
template <class Algorithm>
class OptimizerOf : public Optimizer {
 public:
  using Options = typename Algorithm::Options;
  using Group = ParamGroup<Options>;

  explicit OptimizerOf(const Tensors& params, Options options = {},
                       SourceLocation where = SourceLocation::current())
      : OptimizerOf(std::vector<Group>{{params, options}}, where) {}
  explicit OptimizerOf(std::vector<Group> groups, SourceLocation where = SourceLocation::current())
      : groups_(std::move(groups)) {
    for (const Group& group : groups_) Algorithm::check(group.options, where);
    detail::check_params(parameters(), Algorithm::name, where);
    states_.resize(parameters().size());
    make_states();
  }

  std::vector<Group>& groups() { return groups_; }
  const std::vector<Group>& groups() const { return groups_; }

  void set_lr(double lr) override {
    for (Group& group : groups_) group.options.lr = lr;
  }

  Tensors parameters() const override {
    Tensors all;
    for (const Group& group : groups_) all.insert(all.end(), group.params.begin(), group.params.end());
    return all;
  }

  void step(SourceLocation where = SourceLocation::current()) override {
    NoGradGuard no_grad;
    for (const Group& group : groups_) Algorithm::check(group.options, where);
    ops::UpdateList<typename Algorithm::Step> updates(where);
    size_t index = 0;
    for (const Group& group : groups_)
      for (const Tensor& param : group.params) {
        State& state = states_[index++];
        if (!param.grad().defined()) continue;
        Algorithm::make(group.options, state, param);  // options may ask for more than when it was made
        Scalar numbers[Algorithm::numbers_count];
        const bool is_counted = read_numbers(group.options, state, numbers);
        updates.add(Algorithm::operands(group.options, state, param),
                    Algorithm::attrs(group.options, numbers), is_counted ? nullptr : &state.step);
      }
    updates.run();
  }

  StateDict state_dict() const override {
    StateDict out;
    for (size_t i = 0; i < states_.size(); ++i) {
      typename Algorithm::State state = states_[i];
      const bool is_filled = Algorithm::is_filled(state);
      if (!is_filled && state.step == 0) continue;  // as if it were not there yet
      if (is_filled)
        Algorithm::visit(
            state, [&](std::string_view name, Tensor& value) { detail::save_state(out, i, name, value); });
      detail::save_state(out, i, "step", scalar_tensor(state.step, {kInt64}));
    }
    return out;
  }

  void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current()) override {
    NoGradGuard no_grad;
    StateDict rest = state;
    std::vector<typename Algorithm::State> loaded(states_.size());
    const Tensors params = parameters();
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
      std::vector<Tensor> values;
      Algorithm::visit(loaded[i], [&](std::string_view, Tensor& value) { values.push_back(value); });
      size_t next = 0;
      Algorithm::visit(states_[i],
                       [&](std::string_view, Tensor& now) { detail::take_over(now, values[next++]); });
      states_[i].step = loaded[i].step;
      Algorithm::resume(states_[i], loaded[i]);
    }
  }

 private:
  using State = typename Algorithm::State;

  // Those of the next step. While a function is recorded it reads them anew before each run, and counts steps by itself: then true.
  bool read_numbers(const Options& options, State& state, std::span<Scalar> out) const {
    if (Emitter::current().values() != Emitter::Values::of_function) {
      Algorithm::numbers(options, state, state.step + 1, out);
      return false;
    }
    const std::weak_ptr<const bool> lives = life_.token;
    Emitter::current().live_numbers(out, {[lives, &options, &state](std::span<Scalar> now) {
                                            if (lives.expired()) detail::fail_gone(Algorithm::name);
                                            Algorithm::check(options, {});
                                            Algorithm::numbers(options, state, state.step + ++state.ahead,
                                                               now);
                                          },
                                          [lives, &state](std::span<const Number>, bool was_made) {
                                            if (lives.expired()) return;
                                            --state.ahead;
                                            state.step += was_made;
                                          },
                                          [lives, &options, form = Algorithm::form(options)] {
                                            return lives.expired() || Algorithm::form(options) == form;
                                          }});
    return true;
  }

  static bool has_tensors(State& state) {
    bool found = false;
    Algorithm::visit(state, [&](std::string_view, const Tensor& value) { found |= value.defined(); });
    return found;
  }

  void make_states() {
    size_t index = 0;
    for (const Group& group : groups_)
      for (const Tensor& param : group.params) {
        State& state = states_[index++];
        if (param.requires_grad()) Algorithm::make(group.options, state, param);
      }
  }

  std::vector<Group> groups_;
  std::vector<State> states_;  // of the parameters, in order of the groups
  detail::Life life_;
};

}  // namespace retrograd::optim
