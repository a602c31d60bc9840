// Anomaly mode: an emitter that looks at what a backward computes. While a DetectAnomalyGuard (engine/autograd.h) is open, backwards run
// node by node into a Watcher over the emitter that they would run into. The first result with a nan or an infinity whose operands have
// none is an Error(bad_argument): it names the op, the operands and the range of their values; driver and replay add what was
// differentiated and where it was made. Costs a pass over every result.
#pragma once

#include "engine/driver.h"

namespace retrograd {

class Watcher final : public Emitter {
 public:
  explicit Watcher(Emitter& below) : below_(&below) {}
  void emit(const Call& call, Tensor* results) override;
  std::string name() const override { return "Watcher over " + below_->name(); }
  bool is_symbolic() const override { return below_->is_symbolic(); }
  const void* attrs_of(const Record& record) override { return below_->attrs_of(record); }
  TensorType type_of(const Record& record, int i) override { return below_->type_of(record, i); }
  void at(const Origin& origin) override { below_->at(origin); }

 private:
  Emitter* below_;
};

/// Error(bad_argument) when a leaf that gradients go to has a nan or an infinity in .grad already: it would be blamed on this backward.
void check_leaves(std::span<TensorImpl* const> leaves);

}  // namespace retrograd
