// Anomaly mode: an emitter that inspects what a backward computes. While a DetectAnomalyGuard (engine/autograd.h) is
// open, backwards run node by node into a Watcher over the emitter that they would otherwise run into. The first result
// with a nan or an infinity whose operands have none is an Error(bad_argument). It names the op, the operands and the
// range of their values; the driver and the replay add what was differentiated and where it was made. Costs a pass over
// every result.
#pragma once

#include "engine/driver.h"

namespace retrograd::inline v0 {

class Watcher final : public PassThrough {
 public:
  explicit Watcher(Emitter& below) : PassThrough("Watcher", below) {}
  void emit(const Call& call, Tensor* results) override;
};

/// Error(bad_argument) when a leaf that receives a gradient already has a nan or an infinity in .grad, which would be
/// blamed on this backward.
void check_leaves(std::span<TensorImpl* const> leaves);

}  // namespace retrograd
