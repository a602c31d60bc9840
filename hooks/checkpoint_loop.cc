// See hooks/checkpoint_loop.h. The loop is one user-defined function (engine/function.h), whose object is a
// LoopReversal (hooks/loop/reversal.h).
#include "hooks/checkpoint_loop.h"

#include <algorithm>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "engine/autograd.h"
#include "engine/callable.h"
#include "engine/function.h"
#include "engine/tape.h"
#include "hooks/loop/reversal.h"

namespace retrograd::inline v0 {
namespace {

constexpr int64_t kMostLoopSlots = int64_t{1} << 30, kMostLoopSteps = int64_t{1} << 40;
constexpr int64_t kMostCountedSteps = int64_t{1} << 24;  // counting takes time

// Arguments: the code, the tensors of the state, the parameters.
struct CheckpointLoop : Function<CheckpointLoop> {
  static Tensors forward(AutogradContext* ctx, const std::shared_ptr<const LoopCode>& code,
                         const Tensors& state, const Tensors&) {
    auto reversal = std::make_shared<LoopReversal>(code);
    Tensors last = reversal->forward(state);
    ctx->saved_object = reversal;
    ctx->save_for_backward(state);
    ctx->set_materialize_grads(false);
    Tensors integers;
    std::ranges::copy_if(last, std::back_inserter(integers),
                         [](const Tensor& t) { return !t.is_floating_point(); });
    ctx->mark_non_differentiable(integers);
    return last;
  }

  // The parameters are arguments for their gradients only: the body reads its own.
  static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
    LoopReversal& reversal = *static_cast<LoopReversal*>(ctx->saved_object.get());
    const Tensors initial = ctx->get_saved_variables();
    Tensors gradients;
    if (autograd::is_differentiated_again()) {
      gradients = reversal.differentiable_backward(initial, grads);
    } else {
      std::vector<bool> wanted;
      for (size_t i = 0; i < reversal.parameter_count(); ++i)
        wanted.push_back(ctx->needs_input_grad(1 + initial.size() + i));
      gradients = reversal.backward(initial, grads, wanted);
    }
    gradients.insert(gradients.begin(), Tensor());
    return gradients;
  }
};

bool has_tangent(const Tensor& t) { return t.impl().meta && !t.impl().meta->tangents.empty(); }

// Each once: a gradient belongs to an edge.
Tensors without_repeats(const Tensors& parameters) {
  Tensors once;
  std::unordered_set<uintptr_t> known;
  for (const Tensor& t : parameters)
    if (!t.requires_grad() || known.insert(gradient_edge(t.impl()).key()).second) once.push_back(t);
  return once;
}

void check(const LoopCode& code, const Tensors& state) {
  const auto refuse = [&](const std::string& text) {
    fail(Category::bad_argument, "checkpoint_loop", text, code.where);
  };
  const CheckpointLoopOptions& options = code.options;
  require_function(static_cast<bool>(code.body), "checkpoint_loop", code.where);
  if (code.steps < 0 || code.steps > kMostLoopSteps) refuse(fmt::format("{} steps", code.steps));
  const auto is_in_range = [](int64_t n, int64_t least) { return n >= least && n <= kMostLoopSlots; };
  if (!is_in_range(options.slots, 1) || !is_in_range(options.disk_slots, 0))
    refuse(fmt::format("{} slots in memory and {} in a file; 1 to {} in memory are needed", options.slots,
                       options.disk_slots, kMostLoopSlots));
  if (options.disk_slots > 0 && options.folder.empty()) refuse("disk_slots without a folder");
  if (state.empty()) refuse("the state has no tensors");
  for (const Tensors* tensors : {&state, &options.parameters})
    for (const Tensor& t : *tensors) (void)t.impl("checkpoint_loop", code.where);
}

// Without gradients there is nothing to keep; with tangents, every step has its own.
Tensors run(std::shared_ptr<LoopCode> code, const Tensors& state) {
  check(*code, state);
  CheckpointLoopOptions& options = code->options;
  options.parameters = without_repeats(options.parameters);
  const auto any = [&](const auto& is) {
    return std::ranges::any_of(state, is) || std::ranges::any_of(options.parameters, is);
  };
  if (!GradMode::is_enabled() || any(has_tangent)) return LoopSteps(std::move(code)).run_all(state);
  if (!any([](const Tensor& t) { return t.requires_grad(); }))
    return LoopSteps(std::move(code)).run_constant(state);
  if (!options.folder.empty())  // resolved now: the program may change its working directory
    options.folder = std::filesystem::absolute(options.folder).string();
  const Tensors parameters = options.parameters;
  const SourceLocation where = code->where;
  return CheckpointLoop::apply(std::shared_ptr<const LoopCode>(std::move(code)), state, parameters, where);
}

}  // namespace

CheckpointLoopStats checkpoint_loop_stats() {
  return {loop_counters.steps, loop_counters.reversed, loop_counters.states_written,
          loop_counters.states_read};
}

int64_t checkpoint_loop_steps(int64_t n, int64_t slots, SourceLocation where) {
  if (n < 0 || n > kMostCountedSteps || slots < 1 || slots > kMostLoopSlots)
    fail(Category::bad_argument, "checkpoint_loop_steps", fmt::format("{} steps and {} slots", n, slots),
         where);
  return n <= slots ? n : LoopSchedule(slots).executions(n);
}

Tensors detail::run_checkpoint_loop(int64_t n, LoopBody body, const Tensors& state,
                                    const CheckpointLoopOptions& options, SourceLocation where) {
  return run(std::make_shared<LoopCode>(LoopCode{std::move(body), {}, n, options, where}), state);
}

Tensors detail::run_checkpoint_while(LoopCondition more, LoopBody body, const Tensors& state,
                                     const CheckpointLoopOptions& options, SourceLocation where) {
  require_function(static_cast<bool>(more), "checkpoint_while", where);
  return run(std::make_shared<LoopCode>(LoopCode{std::move(body), std::move(more), 0, options, where}),
             state);
}

}  // namespace retrograd
