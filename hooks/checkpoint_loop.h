// checkpoint_loop: a loop whose steps are reversed with little memory, however many they are: time integrators,
// unrolled solvers, recurrent networks.
//
//   Tensor end = checkpoint_loop(10000, [=](const Tensor& u) { return u + flux(u, k) * dt; }, u0,
//                                {.slots = 20, .parameters = {k}});
//   end.backward();
//
// The loop keeps the states before a few steps, in `slots` slots; its backward executes the steps between them again,
// each stretch as often as the schedule with the fewest executions has it (hooks/loop/schedule.h): 10,000 steps with 20
// slots take 39,335 executions, 1,000 steps 2,823. For the least time and the most memory: slots = n, or no
// checkpoint_loop. All of this is one node of the graph. The schedule of 10,000 steps and 20 slots takes 2 MiB and some
// milliseconds.
//
// The body is kept, and called again in the backward: what it captures by reference must live until then. It must
// compute the same each time, may not write to its state in place, and must return tensors of the types of the state.
// Its draws from default_generator() are repeated, and the generator is afterwards where it was.
//
// Gradients flow to the initial state and to `parameters`. A tensor that requires a gradient and that the body reads
// from elsewhere must be listed there: Error(bad_argument). None of them may be written to before the backward. The
// gradients of a parameter are summed by steps, from the last to the first; its tensor hooks see the sum.
//
// A backward with create_graph, and forward mode, run the loop without checkpoints: they keep what every step saves.
#pragma once

#include <functional>
#include <string>
#include <type_traits>

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct CheckpointLoopOptions {
  /// Slots in memory, at least 1; the initial state takes one. A slot holds a state, or a recorded step with the state
  /// before it. One more step is recorded while it is reversed.
  int64_t slots = 20;
  /// Further slots, for states only, in a file in `folder`. The states that are needed last are written there. The file
  /// has no name: nothing is left when the process is killed.
  int64_t disk_slots = 0;
  std::string folder = {};
  /// What the body reads besides its state and differentiates: module.parameters(), coefficients.
  Tensors parameters = {};
};

/// Counted since the process began.
struct CheckpointLoopStats {
  int64_t steps = 0;                            // executed, in forwards and backwards
  int64_t reversed = 0;                         // steps whose backward ran
  int64_t states_written = 0, states_read = 0;  // to and from files
};
CheckpointLoopStats checkpoint_loop_stats();

/// The steps that a checkpoint_loop of `n` steps and `slots` slots executes in forward and backward together, if all
/// slots are in memory: with slots in a file it may be more, as recorded steps cannot be written. Error(bad_argument)
/// unless 0 <= n <= 2^24 and 1 <= slots <= 2^30.
int64_t checkpoint_loop_steps(int64_t n, int64_t slots, SourceLocation where = SourceLocation::current());

namespace detail {
using LoopBody = std::function<Tensors(const Tensors& state, int64_t step)>;
using LoopCondition = std::function<bool(const Tensors& state, int64_t step)>;
Tensors run_checkpoint_loop(int64_t n, LoopBody body, const Tensors& state,
                            const CheckpointLoopOptions& options, SourceLocation where);
Tensors run_checkpoint_while(LoopCondition more, LoopBody body, const Tensors& state,
                             const CheckpointLoopOptions& options, SourceLocation where);

/// f(state, step) or f(state), for a state of one tensor or of several.
template <class State, class F>
auto call_with_step(F& f, const Tensors& state, int64_t step) {
  const auto call = [&](const State& s) {
    if constexpr (std::is_invocable_v<F&, const State&, int64_t>)
      return std::invoke(f, s, step);
    else
      return std::invoke(f, s);
  };
  if constexpr (std::is_same_v<State, Tensor>)
    return call(state[0]);
  else
    return call(state);
}
template <class State, class F>
constexpr bool is_loop_code =
    std::is_invocable_v<F&, const State&, int64_t> || std::is_invocable_v<F&, const State&>;
template <class State, class F>
LoopBody loop_body(F f) {
  return [f = std::move(f)](const Tensors& state, int64_t step) mutable -> Tensors {
    return {call_with_step<State>(f, state, step)};
  };
}
template <class State, class F>
LoopCondition loop_condition(F f) {
  return [f = std::move(f)](const Tensors& state, int64_t step) mutable -> bool {
    return call_with_step<State>(f, state, step);
  };
}
}  // namespace detail

/// body(... body(body(state, 0), 1) ..., n - 1). `body`: Tensors(const Tensors& state, int64_t step) or
/// Tensors(const Tensors& state). Errors: bad_argument for options, for results of other types than the state, and for
/// a parameter that is not listed; version_mismatch for a state that was written to; FileError.
template <class F>
requires detail::is_loop_code<Tensors, F> Tensors
checkpoint_loop(int64_t n, F body, const Tensors& state, const CheckpointLoopOptions& options = {},
                SourceLocation where = SourceLocation::current()) {
  return detail::run_checkpoint_loop(n, detail::loop_body<Tensors>(std::move(body)), state, options, where);
}
/// For a state of one tensor.
template <class F>
requires detail::is_loop_code<Tensor, F> Tensor
checkpoint_loop(int64_t n, F body, const Tensor& state, const CheckpointLoopOptions& options = {},
                SourceLocation where = SourceLocation::current()) {
  return detail::run_checkpoint_loop(n, detail::loop_body<Tensor>(std::move(body)), {state}, options,
                                     where)[0];
}

/// The same for an unknown number of steps: while more(state, step) or more(state) is true. The condition is evaluated
/// in the forward only. A loop takes at most about a tenth more steps than one of known length, and a few per cent more
/// from five slots on. In a recorded function, a loop with parameters takes a step in each run, or in none.
template <class C, class F>
requires detail::is_loop_code<Tensors, F> && detail::is_loop_code<Tensors, C> Tensors
checkpoint_while(C more, F body, const Tensors& state, const CheckpointLoopOptions& options = {},
                 SourceLocation where = SourceLocation::current()) {
  return detail::run_checkpoint_while(detail::loop_condition<Tensors>(std::move(more)),
                                      detail::loop_body<Tensors>(std::move(body)), state, options, where);
}
template <class C, class F>
requires detail::is_loop_code<Tensor, F> && detail::is_loop_code<Tensor, C> Tensor
checkpoint_while(C more, F body, const Tensor& state, const CheckpointLoopOptions& options = {},
                 SourceLocation where = SourceLocation::current()) {
  return detail::run_checkpoint_while(detail::loop_condition<Tensor>(std::move(more)),
                                      detail::loop_body<Tensor>(std::move(body)), {state}, options, where)[0];
}

}  // namespace retrograd
#pragma GCC visibility pop
