// See hooks/loop/reversal.h.
#include "hooks/loop/reversal.h"

#include <algorithm>
#include <utility>

#include "ops/arithmetic.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace {

// A sum of gradients: written in place once it has memory of its own; the first gradient may be shared.
struct Sum {
  Tensor value;
  bool is_own = false;

  void add(Tensor more) {
    if (!more.defined()) return;
    if (!value.defined()) {
      value = std::move(more);
    } else if (is_own) {
      value.add_(more);
    } else {
      value = value + more;
      is_own = true;
    }
  }
};

}  // namespace

/// While it lives, the random stream is set back for steps that are executed again. Without draws the generator is not
/// touched: other threads may use it.
class LoopReversal::DrawsAgain {
 public:
  explicit DrawsAgain(const LoopReversal& of)
      : draws_(of.draws_.any()), outside_(default_generator().state()) {}
  ~DrawsAgain() {
    if (draws_) default_generator().set_state(outside_);
  }
  DrawsAgain(const DrawsAgain&) = delete;

 private:
  const bool draws_;
  const GeneratorState outside_;
};

LoopReversal::LoopReversal(std::shared_ptr<const LoopCode> code)
    : steps_(std::move(code)),
      parameters_(0, steps_.code().options.parameters),
      schedule_(steps_.code().options.slots + steps_.code().options.disk_slots),
      slots_(steps_.code().options) {}

void LoopReversal::reset() {
  slots_.clear();
  at_hand_.reset();
  end_ = 0;
}

// In the forward each step is executed once, in order.
void LoopReversal::set_draws(int64_t step) {
  if (is_forward_)
    draws_.note(step, default_generator().state());
  else if (draws_.any())
    default_generator().set_state(draws_.before(step));
}

StepTape LoopReversal::record(const StepState& at) {
  set_draws(at.step);
  return steps_.record(at);
}

StepState LoopReversal::advance(StepState at, int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    set_draws(at.step);
    at = StepState(at.step + 1, steps_.execute(at));
  }
  return at;
}

// A result on the memory of an argument would be a view of it.
Tensors LoopReversal::forward(const Tensors& initial) {
  is_forward_ = true;
  StepState first(0, initial);
  Tensors last = steps_.code().more ? run_unknown(std::move(first)) : run_known(std::move(first));
  set_draws(count_);
  is_forward_ = false;
  slots_.forget_first();
  for (Tensor& t : last) {
    const auto shares = [&](const Tensor& i) { return i.impl().storage() == t.impl().storage(); };
    t = std::ranges::any_of(initial, shares) ? clone(t) : t.detach();
  }
  return last;
}

Tensors LoopReversal::run_known(StepState at) {
  end_ = count_ = steps_.code().steps;
  if (count_ == 0) return at.state;
  slots_.push(std::move(at));
  descend();
  return at_hand_->results;
}

Tensors LoopReversal::run_unknown(StepState at) {
  StepState before;
  for (; steps_.code().goes_on(at.state, at.step); ++count_) {
    if (at_hand_) keep(std::move(before), *std::exchange(at_hand_, {}));
    before = at;
    at_hand_ = record(at);
    at = StepState(at.step + 1, at_hand_->results);
  }
  end_ = count_;
  return at.state;
}

void LoopReversal::keep(StepState at, StepTape tape) {
  if (slots_.free() == 0) {
    std::vector<LoopSchedule::Held> held = slots_.held();
    held.push_back({at.step, true});
    const size_t least = schedule_.least_needed(held, at.step + 1);
    slots_.drop(least);
    if (least + 1 == held.size()) return;
  }
  slots_.push(std::move(at), std::move(tape));
}

Tensors LoopReversal::backward(const Tensors& initial, const Tensors& last, const std::vector<bool>& wanted) {
  const std::lock_guard lock(mutex_);
  const DrawsAgain draws_again(*this);
  steps_.check_parameters(parameters_);
  if (end_ == 0) end_ = count_;
  std::vector<size_t> parameters;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) parameters.push_back(i);
  try {
    slots_.set_first(StepState(0, initial));
    const Tensors found = reverse_steps(last, parameters);
    reset();
    const size_t count = initial.size();
    Tensors gradients(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count));
    gradients.resize(count + wanted.size());
    for (size_t i = 0; i < parameters.size(); ++i) gradients[count + parameters[i]] = found[count + i];
    return gradients;
  } catch (...) {
    reset();
    throw;
  }
}

Tensors LoopReversal::reverse_steps(Tensors grads, const std::vector<size_t>& parameters) {
  const size_t count = grads.size();
  std::vector<Sum> sums(parameters.size());
  const auto has_gradient = [&] {
    return std::ranges::any_of(grads, [](const Tensor& g) { return g.defined(); });
  };
  for (; end_ > 0 && has_gradient(); --end_) {
    StepTape tape;
    if (!at_hand_ && !(slots_.top_step() == end_ - 1 && slots_.top_tape())) descend();
    if (at_hand_) {
      tape = *std::exchange(at_hand_, {});
    } else {
      tape = *slots_.top_tape();
      slots_.pop();
    }
    Tensors found = steps_.reverse(tape, grads, parameters);
    for (size_t i = 0; i < count; ++i) grads[i] = std::move(found[i]);
    for (size_t i = 0; i < sums.size(); ++i) sums[i].add(std::move(found[count + i]));
  }
  for (Sum& sum : sums) grads.push_back(std::move(sum.value));
  return grads;
}

// Until step end_ - 1 is recorded.
void LoopReversal::descend() {
  while (!at_hand_) {
    const int64_t left = end_ - slots_.top_step();
    if (left == 0) {
      slots_.pop();
      continue;
    }
    StepState at = slots_.top_state();
    if (schedule_.leaves_slot(left, slots_.free()))
      slots_.pop();
    else if (left > 1)
      at = advance(std::move(at), schedule_.advance(left, slots_.free()));
    record_from(std::move(at));
  }
}

// From a state at hand: records steps into slots as long as that is best, then puts the state into one, unless the last
// step is reached.
void LoopReversal::record_from(StepState at) {
  while (true) {
    const int64_t left = end_ - at.step;
    if (left == 1) {
      at_hand_ = record(at);
      return;
    }
    if (!schedule_.records_step(left, slots_.free())) return slots_.push(std::move(at));
    StepTape tape = record(at);
    StepState next(at.step + 1, tape.results);
    slots_.push(std::move(at), std::move(tape));
    at = std::move(next);
  }
}

Tensors LoopReversal::differentiable_backward(const Tensors& initial, const Tensors& last) {
  const std::lock_guard lock(mutex_);
  const DrawsAgain draws_again(*this);
  steps_.check_parameters(parameters_);
  return steps_.reverse_all(initial, count_, last, [this](int64_t step) { set_draws(step); });
}

}  // namespace retrograd
