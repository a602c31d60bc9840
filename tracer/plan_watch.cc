// Measuring a run of a plan: see tracer/peak_watch.h.
#include <algorithm>

#include "engine/allocator.h"
#include "ops/shape_ops.h"
#include "tracer/plan_run.h"

namespace retrograd {

bool Plan::Watch::holds(const Storage* memory) const {
  return std::ranges::any_of(run_.frame->at,
                             [&](const TensorImpl* x) { return x && x->storage().get() == memory; });
}

void Plan::Watch::before(const Step& s) {
  const OpInfo& op = *run_.plan.graph_.nodes()[s.node].op;
  is_code_ = s.kind == Kind::hook || s.kind == Kind::function ||
             (s.kind == Kind::host && &op != &ops::info<ops::Contiguous> && !op.is(Trait::fresh)) ||
             (s.kind == Kind::unpack && run_.reached.records[s.place]->slot(static_cast<int>(s.slot)).packed);
  if (is_code_ || s.kind == Kind::accumulate_grad || s.kind == Kind::retain_grad)
    for (int i = 0; i < s.operands; ++i) {
      const int32_t r = run_.registers(s)[i];
      const TensorImpl* x = r < 0 ? nullptr : run_.frame->at[static_cast<size_t>(r)];
      for (Given& g : given_) g.is_given_away |= x && x->storage().get() == g.memory;
    }
  live_ = memory::stats().live_bytes;
  measured_.before_step();
}

void Plan::Watch::after(const Step& s) {
  const int64_t grown = memory::stats().live_bytes - live_;
  for (int i = 0; is_code_ && grown > 0 && i < s.results; ++i)
    if (const TensorImpl* x = run_.frame->at[static_cast<size_t>(run_.registers(s)[s.operands + i])]) {
      given_.push_back({x->storage().get(), grown, false});
      break;
    }
  std::erase_if(given_, [&](const Given& g) { return !g.is_given_away && !holds(g.memory); });
  int64_t held = 0;
  for (const Given& g : given_) held += g.bytes;
  measured_.after_step(is_code_, held);
}

}  // namespace retrograd
