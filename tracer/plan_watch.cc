// Measuring a run of a plan: see tracer/peak_watch.h.
#include <algorithm>

#include "ops/shape_ops.h"
#include "tracer/plan_run.h"

namespace retrograd {

bool Plan::Watch::holds(const Storage* memory) const {
  return std::ranges::any_of(run_.frame->at,
                             [&](const TensorImpl* x) { return x && x->storage().get() == memory; });
}

void Plan::Watch::before(const Step& s) {
  const OpInfo& op = *run_.plan.graph_.nodes()[s.node].op;
  is_code_ =
      s.kind == Kind::hook || s.kind == Kind::function ||
      (s.kind == Kind::host && &op != &ops::info<ops::Contiguous> && !op.is(Trait::fresh)) ||
      (s.kind == Kind::unpack && run_.reached.records[s.place]->slot(static_cast<int>(s.slot)).packed());
  if (is_code_ || s.kind == Kind::accumulate_grad || s.kind == Kind::retain_grad)
    for (int i = 0; i < s.operands; ++i) {
      const int32_t r = run_.registers(s)[i];
      const TensorImpl* x = r < 0 ? nullptr : run_.frame->at[static_cast<size_t>(r)];
      for (Given& g : given_) g.is_given_away |= x && x->storage().get() == g.memory;
    }
  live_ = run_.plan.executor_.live_bytes();
  measured_.before_step();
}

void Plan::Watch::after(const Step& s) {
  if (is_code_) {
    beside_ += run_.plan.executor_.live_bytes() - live_;
    for (int i = 0; i < s.results; ++i) note_given(run_.registers(s)[s.operands + i]);
  }
  std::erase_if(given_, [&](const Given& g) {
    const bool is_freed = !g.is_given_away && !holds(g.memory);
    if (is_freed) beside_ -= g.bytes;
    return is_freed;
  });
  measured_.after_step(is_code_, beside_);
}

void Plan::Watch::beside(const std::function<void()>& code) {
  const int64_t live = run_.plan.executor_.live_bytes();
  measured_.before_step();
  code();
  beside_ += run_.plan.executor_.live_bytes() - live;
  measured_.after_step(true, beside_);
}

// Memory that only this register holds: it will be freed when the run lets go of it.
void Plan::Watch::note_given(int32_t r) {
  const TensorImpl* x = run_.frame->at[static_cast<size_t>(r)];
  if (!x || !x->storage() || x->ref_count() != 1 || x->storage()->ref_count() != 1) return;
  given_.push_back({x->storage().get(), x->storage()->nbytes(), false});
}

}  // namespace retrograd
