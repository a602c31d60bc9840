// Executor: a device that runs calls. The Runner uses it node by node, a plan's replay through bound kernels; both see the same kernels.
// Written once for all devices is everything above it: order, lifetimes, host nodes.
#pragma once

#include <string_view>

#include "ir/op.h"

namespace retrograd {

/// Computes `outputs` (typed, allocated) from the operands of `call`.
using Kernel = void (*)(const Call& call, TensorImpl* const* outputs);
/// The inner loop of an elementwise op over n contiguous elements: out[i] = f(in[0][i], ...).
using SpanKernel = void (*)(void* out, const void* const* in, int64_t n, const void* attrs);

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  /// The kernel of an op, or null when this executor has none.
  virtual Kernel find(const OpInfo* op) const = 0;
  /// The inner loop of an elementwise op whose operands and result are of `dtype`, for memory that the host sees: what a plan calls
  /// directly on small tensors. Null when there is none.
  virtual SpanKernel find_span(const OpInfo*, ScalarType) const { return nullptr; }
  /// Gives a typed cell contiguous memory.
  virtual void allocate(TensorImpl& cell) = 0;
  virtual void launch(Kernel kernel, const Call& call, TensorImpl* const* outputs) = 0;
  /// Waits for everything launched.
  virtual void synchronize() {}
};

}  // namespace retrograd
