// Slopes: the derivative of a gated activation is computed where the activation is, if the graph holds both.
//
//   %y = gelu %x                            %s = gelu_gate %x
//   ...                                     %d = gelu_slope %x, %s
//   %g = gelu_backward %h, %x               %y = mul %x, %s
//                                           ...
//                                           %g = mul %h, %d
//
// The gate, an exponential mostly, is computed once instead of twice. One fused group gives %y and %d, and %d is held in
// place of %x. So it is done only where nothing but backwards uses %x later, and where its memory is the graph's own:
// then it holds the same numbers there and later. On the CPU alone, where a fused group keeps %s in the first-level
// cache. A device waits for memory and not for arithmetic, and %d is one more pass over it.
//
// Limits: float32 and float64, in which formulas compute; formats of 16 bits would round the gate.
#pragma once

namespace retrograd {
struct OpInfo;
namespace ir {

/// An activation x * gate(x). Its backward (g, x), gate (x) and slope (x, gate) have its attributes; the product has its own.
struct GatedOps {
  const OpInfo &activation, &backward, &gate, &slope, &product;
  const void* product_attrs;
};

}  // namespace ir
}  // namespace retrograd
