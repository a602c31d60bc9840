// See hooks/checkpoint_loop.h. The loop is one user-defined function (engine/function.h), whose object is a
// LoopReversal (hooks/loop/reversal.h).
#include "hooks/checkpoint_loop.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "engine/autograd.h"
#include "engine/callable.h"
#include "engine/function.h"
#include "hooks/loop/reversal.h"

namespace retrograd::inline v0 {
namespace {

// Arguments: the code, the tensors of the state, the parameters.
struct CheckpointLoop : Function<CheckpointLoop> {
  static Tensors forward(AutogradContext* ctx, const std::shared_ptr<const LoopCode>& code,
                         const Tensors& state, const Tensors& parameters) {
    auto reversal = std::make_shared<LoopReversal>(code);
    Tensors last = reversal->forward(state);
    ctx->saved_object = reversal;
    Tensors saved = state;
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    ctx->save_for_backward(std::move(saved));
    ctx->set_materialize_grads(false);
    Tensors integers;
    std::ranges::copy_if(last, std::back_inserter(integers),
                         [](const Tensor& t) { return !t.is_floating_point(); });
    ctx->mark_non_differentiable(integers);
    return last;
  }

  // The parameters are saved for the check of their versions only: the body reads its own.
  static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
    LoopReversal& reversal = *static_cast<LoopReversal*>(ctx->saved_object.get());
    Tensors initial = ctx->get_saved_variables();
    const size_t count = grads.size(), parameters = initial.size() - count;
    initial.resize(count);
    Tensors gradients;
    if (autograd::is_differentiated_again()) {
      gradients = reversal.differentiable_backward(initial, grads);
    } else {
      std::vector<bool> wanted;
      for (size_t i = 0; i < parameters; ++i) wanted.push_back(ctx->needs_input_grad(1 + count + i));
      gradients = reversal.backward(initial, grads, wanted);
    }
    gradients.insert(gradients.begin(), Tensor());
    return gradients;
  }
};

bool has_tangent(const Tensor& t) { return t.impl().meta && !t.impl().meta->tangents.empty(); }

// Without gradients there is nothing to keep; with tangents, every step has its own.
bool runs_plainly(const Tensors& state, const Tensors& parameters) {
  bool wants_grad = false, has_tangents = false;
  for (const Tensors* tensors : {&state, &parameters})
    for (const Tensor& t : *tensors) {
      wants_grad |= t.requires_grad();
      has_tangents |= has_tangent(t);
    }
  return !GradMode::is_enabled() || !wants_grad || has_tangents;
}

void check(const LoopCode& code, const Tensors& state) {
  const auto refuse = [&](const std::string& text) {
    fail(Category::bad_argument, "checkpoint_loop", text, code.where);
  };
  const CheckpointLoopOptions& options = code.options;
  require_function(static_cast<bool>(code.body), "checkpoint_loop", code.where);
  if (code.steps < 0) refuse(fmt::format("{} steps", code.steps));
  if (options.slots < 1 || options.disk_slots < 0)
    refuse(fmt::format("{} slots in memory and {} in a file; at least one in memory is needed", options.slots,
                       options.disk_slots));
  if (options.disk_slots > 0 && options.folder.empty()) refuse("disk_slots without a folder");
  if (state.empty()) refuse("the state has no tensors");
  for (const Tensors* tensors : {&state, &options.parameters})
    for (const Tensor& t : *tensors) (void)t.impl("checkpoint_loop", code.where);
}

Tensors run(std::shared_ptr<LoopCode> code, const Tensors& state) {
  check(*code, state);
  Tensors parameters = code->options.parameters;
  if (runs_plainly(state, parameters)) return LoopSteps(std::move(code)).run_all(state);
  if (!code->options.folder.empty())  // resolved now: the program may change its working directory
    code->options.folder = std::filesystem::absolute(code->options.folder).string();
  const SourceLocation where = code->where;
  return CheckpointLoop::apply(std::shared_ptr<const LoopCode>(std::move(code)), state, parameters, where);
}

}  // namespace

CheckpointLoopStats checkpoint_loop_stats() {
  return {loop_counters.steps, loop_counters.reversed, loop_counters.states_written,
          loop_counters.states_read};
}

int64_t checkpoint_loop_steps(int64_t n, int64_t slots, SourceLocation where) {
  if (n < 0 || slots < 1)
    fail(Category::bad_argument, "checkpoint_loop_steps", fmt::format("{} steps and {} slots", n, slots),
         where);
  return LoopSchedule(slots).from_slot(n, slots - 1);
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
