// The formulas of recurrent cells (ops/recurrent.h), for host and device: one element of the state, one step. V is a
// register of elements in kernel files of the CPU, one number on a device.
#pragma once

#ifdef RG_FORMULAS
#include "ops/formulas.h"
#endif
#include "ops/math.h"

namespace retrograd::inline v0::ops {

/// gate[4]: the sums i, f, g, o; becomes the gates. c: the cell's state before; becomes the state after. Gives h.
template <class V>
RG_HD [[gnu::always_inline]] inline V lstm_cell(V* gate, V& c) {
  gate[0] = math::sigmoid(gate[0]);
  gate[1] = math::sigmoid(gate[1]);
  gate[2] = math::tanh(gate[2]);
  gate[3] = math::sigmoid(gate[3]);
  c = gate[1] * c + gate[0] * gate[2];
  return gate[3] * math::tanh(c);
}

/// projected[3], gate[3]: U h, with the bias in the last; gate[4] becomes r, z, n, m. Gives h.
template <class V>
RG_HD [[gnu::always_inline]] inline V gru_cell(const V* projected, V before, V* gate) {
  gate[0] = math::sigmoid(projected[0] + gate[0]);
  gate[1] = math::sigmoid(projected[1] + gate[1]);
  gate[3] = gate[2];
  gate[2] = math::tanh(projected[2] + gate[0] * gate[3]);
  return gate[2] + gate[1] * (before - gate[2]);
}

template <class V>
RG_HD [[gnu::always_inline]] inline V rnn_cell(V sum, bool relu) {
  return relu ? math::maximum(sum, V(0)) : math::tanh(sum);
}

}  // namespace retrograd::ops
