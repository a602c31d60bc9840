// See hooks/loop/reversal.h.
#include "hooks/loop/reversal.h"

#include <utility>

#include "ops/arithmetic.h"

namespace retrograd::inline v0 {

/// While it lives, the random stream is set back for steps that are executed again. Without draws the generator is not
/// touched: other threads may use it.
class LoopReversal::DrawsAgain {
 public:
  explicit DrawsAgain(const LoopReversal& of) : draws_(of.draws_), outside_(default_generator().state()) {}
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
      schedule_(steps_.code().options.slots + steps_.code().options.disk_slots),
      slots_(steps_.code().options) {}

void LoopReversal::reset() {
  slots_.clear();
  at_hand_.reset();
  end_ = 0;
}

Tensors LoopReversal::forward(const Tensors& initial) {
  first_draw_ = default_generator().state();
  StepState first = steps_.snapshot(0, initial);
  Tensors last;
  if (steps_.code().more) {
    last = forward_while(std::move(first));
  } else if (end_ = count_ = steps_.code().steps; count_ > 0) {
    slots_.push(std::move(first));
    descend();
    last = at_hand_->results;
  } else {
    last = std::move(first.state);
  }
  for (Tensor& t : last) t = t.detach();
  draws_ = !(default_generator().state() == first_draw_);
  slots_.forget_first();
  return last;
}

Tensors LoopReversal::forward_while(StepState at) {
  StepState before;
  for (; steps_.code().more(at.state, at.step); ++count_) {
    if (at_hand_) keep(std::move(before), *std::exchange(at_hand_, {}));
    before = at;
    at_hand_ = steps_.record(at);
    at = steps_.snapshot(at.step + 1, at_hand_->results);
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

Tensors LoopReversal::backward(const Tensors& initial, Tensors last, const std::vector<bool>& wanted) {
  const std::lock_guard lock(mutex_);
  const DrawsAgain draws_again(*this);
  if (end_ == 0) end_ = count_;
  StepState first = steps_.snapshot(0, initial);
  first.random = first_draw_;
  std::vector<size_t> parameters;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) parameters.push_back(i);
  try {
    slots_.set_first(std::move(first));
    const Tensors found = reverse_steps(std::move(last), parameters);
    reset();
    Tensors gradients(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(initial.size()));
    gradients.resize(initial.size() + wanted.size());
    for (size_t i = 0; i < parameters.size(); ++i)
      gradients[initial.size() + parameters[i]] = found[initial.size() + i];
    return gradients;
  } catch (...) {
    reset();
    throw;
  }
}

// Sums are written in place once they have memory of their own: a first gradient may be shared.
Tensors LoopReversal::reverse_steps(Tensors grads, const std::vector<size_t>& parameters) {
  const size_t count = grads.size();
  Tensors sums(parameters.size());
  std::vector<bool> is_own(parameters.size());
  for (; end_ > 0; --end_) {
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
    for (size_t i = 0; i < sums.size(); ++i) {
      Tensor& more = found[count + i];
      if (!more.defined()) continue;
      if (!sums[i].defined()) {
        sums[i] = std::move(more);
      } else if (is_own[i]) {
        sums[i].add_(more);
      } else {
        sums[i] = sums[i] + more;
        is_own[i] = true;
      }
    }
  }
  grads.insert(grads.end(), sums.begin(), sums.end());
  return grads;
}

StepState LoopReversal::advance(StepState at, int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) at = steps_.snapshot(at.step + 1, steps_.execute(at));
  return at;
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
    if (draws_) default_generator().set_state(at.random);
    if (schedule_.leaves_slot(left, slots_.free())) {
      slots_.pop();
    } else if (left > 1) {
      at = advance(std::move(at), schedule_.advance(left, slots_.free()));
    }
    record_from(std::move(at));
  }
}

// From a state at hand: records steps into slots as long as that is best, then puts the state into one, unless the last
// step is reached.
void LoopReversal::record_from(StepState at) {
  while (true) {
    const int64_t left = end_ - at.step;
    if (left == 1) {
      at_hand_ = steps_.record(at);
      return;
    }
    if (!schedule_.records_step(left, slots_.free())) return slots_.push(std::move(at));
    StepTape tape = steps_.record(at);
    StepState next = steps_.snapshot(at.step + 1, tape.results);
    slots_.push(std::move(at), std::move(tape));
    at = std::move(next);
  }
}

Tensors LoopReversal::differentiable_backward(const Tensors& initial, const Tensors& last) {
  const std::lock_guard lock(mutex_);
  const DrawsAgain draws_again(*this);
  if (draws_) default_generator().set_state(first_draw_);
  return steps_.reverse_all(initial, count_, last);
}

}  // namespace retrograd
