// GatedDerivatives: computes the derivative of a gated activation next to the activation, if the graph has both.
//
//   %y = gelu %x                            %s = gelu_gate %x
//   ...                                     %d = gelu_slope %x, %s
//   %g = gelu_backward %h, %x               %y = mul %x, %s
//                                           ...
//                                           %g = mul %h, %d
//
// The gate, usually an exponential, is computed once instead of twice. One fused group gives %y and %d, and %d is held
// in place of %x. So this is done only where nothing but backwards uses %x later, and where its memory is the graph's
// own: then its values cannot change in between. Only on the CPU, where a fused group keeps %s in the first-level
// cache. A device is limited by memory and not by arithmetic, and %d is one more pass over it.
//
// It is not done where that raises the peak, the gate not counted. Limits: float32 and float64, in which formulas
// compute; 16-bit formats would round the gate.
#pragma once

#include "engine/op.h"

namespace retrograd::inline v0::ir {

/// An activation x * gate(x). Its backward (g, x), gate (x) and derivative (x, gate) have its attributes; the product
/// has its own.
struct GatedOps {
  const OpInfo &activation, &backward, &gate, &slope, &product;
  const void* product_attrs;
};

}  // namespace retrograd::ir
