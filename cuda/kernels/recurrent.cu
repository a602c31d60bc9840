// Steps of recurrent cells on a device: see cuda/kernels/recurrent_call.h. A thread computes one element of the state
// of one sequence, by the formulas of the CPU (ops/recurrent_formulas.h).
#include "cuda/kernels/recurrent_call.h"

#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
#include "ops/recurrent_formulas.h"
// Included after launch.h, since it needs RG_TARGET.
#include "cuda/kernels/note.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

// The element of a state that a thread computes: number `k` of sequence `row`.
struct StateElement {
  int64_t row, k;
};
__device__ inline StateElement own_element(int64_t hidden) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  return {i / hidden, i % hidden};
}

template <class T>
RG_HD const T* row_of(const void* data, int64_t row, int64_t width) {
  return static_cast<const T*>(data) + row * width;
}
template <class T>
RG_HD T* row_of(void* data, int64_t row, int64_t width) {
  return static_cast<T*>(data) + row * width;
}

template <class T>
__device__ void lstm_element(const CellStep& s, const StateElement& e, bool is_within) {
  const int64_t n = s.hidden;
  T *const gates = row_of<T>(s.gates, e.row, 4 * n) + e.k, *const c = row_of<T>(s.c, e.row, n) + e.k;
  scalar::Lane<T> gate[4] = {}, state = row_of<T>(s.c_before, e.row, n)[e.k];
  if (is_within) {
    for (int i = 0; i < 4; ++i) gate[i] = gates[i * n];
    row_of<T>(s.h, e.row, n)[e.k] = ops::lstm_cell(gate, state).v;
  }
  for (int i = 0; i < 4; ++i) gates[i * n] = is_within ? gate[i].v : T(0);
  *c = state.v;
}

template <class T>
__device__ void gru_element(const CellStep& s, const StateElement& e, bool is_within) {
  const int64_t n = s.hidden;
  T* const gates = row_of<T>(s.gates, e.row, 4 * n) + e.k;
  if (!is_within) {
    for (int i = 0; i < 4; ++i) gates[i * n] = 0;
    return;
  }
  const T* const projected = row_of<T>(s.projected, e.row, 3 * n) + e.k;
  scalar::Lane<T> p[3], gate[4];
  for (int i = 0; i < 3; ++i) {
    p[i] = projected[i * n];
    gate[i] = gates[i * n];
  }
  if (s.bias) gate[2] = gate[2] + scalar::Lane<T>(static_cast<const T*>(s.bias)[e.k]);
  const scalar::Lane<T> before = row_of<T>(s.h_before, e.row, n)[e.k];
  row_of<T>(s.h, e.row, n)[e.k] = ops::gru_cell(p, before, gate).v;
  for (int i = 0; i < 4; ++i) gates[i * n] = gate[i].v;
}

template <class T>
__global__ void __launch_bounds__(kThreads) cell_kernel(const CellStep s) {
  const StateElement e = own_element(s.hidden);
  if (e.row >= s.batch) return;
  bool is_within = true;
  if (s.lengths) {
    const int64_t length = s.lengths[e.row];
    if (e.k == 0) is_in_range(length, s.steps + 1, s.note);
    is_within = s.time < length;
  }
  T* const h = row_of<T>(s.h, e.row, s.hidden) + e.k;
  if (s.kind == CellKind::lstm)
    lstm_element<T>(s, e, is_within);
  else if (s.kind == CellKind::gru)
    gru_element<T>(s, e, is_within);
  else
    *h = ops::rnn_cell(scalar::Lane<T>(*h), s.kind == CellKind::relu).v;
  if (!is_within) *h = row_of<T>(s.h_before, e.row, s.hidden)[e.k];
}

// A step of the gated recurrence at one element of a state. With a cell, c follows h.
template <class T>
__global__ void __launch_bounds__(kThreads) advance_kernel(const GatedRecurrenceStep s) {
  const StateElement e = own_element(s.hidden);
  if (e.row >= s.batch) return;
  const int64_t n = s.hidden, width = s.has_cell ? 2 * n : n, own = s.has_cell ? n : 0;
  const T *const x = row_of<T>(s.x, e.row, width) + e.k, *const before =
                                                             row_of<T>(s.before, e.row, width) + e.k;
  T* const states = row_of<T>(s.states, e.row, width) + e.k;
  if (s.lengths && s.time >= s.lengths[e.row]) {
    for (int64_t i = 0; i <= own; i += n) states[i] = x[i] + before[i];
    return;
  }
  const T *const factors = row_of<T>(s.factors, e.row, s.gates * n) + e.k,
                 *const products = row_of<T>(static_cast<const void*>(s.products), e.row, s.gates * n) + e.k,
                 *const keep = s.keep ? row_of<T>(s.keep, e.row, width) + e.k : nullptr;
  const int64_t of_own = s.gates - s.has_cell;
  T sum = x[own];
  for (int64_t i = 0; i < of_own; ++i) sum = sum + factors[i * n] * products[i * n];
  if (keep) sum = sum + keep[own] * before[own];
  states[own] = sum;
  if (s.has_cell) states[0] = x[0] + factors[of_own * n] * products[of_own * n] + keep[0] * sum;
}

template <class T>
__global__ void __launch_bounds__(kThreads) retreat_kernel(const GatedRecurrenceStep s) {
  const StateElement e = own_element(s.hidden);
  if (e.row >= s.batch) return;
  const int64_t n = s.hidden, width = s.has_cell ? 2 * n : n, own = s.has_cell ? n : 0;
  const T* const g = row_of<T>(s.x, e.row, width) + e.k;
  T *const carry = row_of<T>(s.carry, e.row, width) + e.k,
           *const delta = row_of<T>(s.states, e.row, width) + e.k,
           *const products = row_of<T>(s.products, e.row, s.gates * n) + e.k;
  if (s.lengths && s.time >= s.lengths[e.row]) {
    for (int64_t i = 0; i <= own; i += n) carry[i] = delta[i] = g[i] + carry[i];
    for (int64_t i = 0; i < s.gates; ++i) products[i * n] = 0;
    return;
  }
  const T *const factors = row_of<T>(s.factors, e.row, s.gates * n) + e.k, *const keep =
                                                                               s.keep
                                                                                   ? row_of<T>(s.keep, e.row,
                                                                                               width) +
                                                                                         e.k
                                                                                   : nullptr;
  const int64_t of_own = s.gates - s.has_cell;
  T d = g[own] + carry[own];
  if (s.has_cell) {
    const T of_h = g[0] + carry[0];
    d = d + keep[0] * of_h;
    products[of_own * n] = factors[of_own * n] * of_h;
    delta[0] = of_h;
    carry[0] = 0;
  }
  for (int64_t i = 0; i < of_own; ++i) products[i * n] = factors[i * n] * d;
  delta[own] = d;
  carry[own] = keep ? keep[own] * d : T(0);
}

template <class Step>
void launch_step(const Step& step, StreamHandle stream, void (*f32)(Step), void (*f64)(Step)) {
  launch(step.is_double ? f64 : f32, threads_for(step.batch * step.hidden), stream, step);
}

void launch_cell(const CellStep& s, StreamHandle stream) {
  launch_step<CellStep>(s, stream, cell_kernel<float>, cell_kernel<double>);
}
void launch_advance(const GatedRecurrenceStep& s, StreamHandle stream) {
  launch_step<GatedRecurrenceStep>(s, stream, advance_kernel<float>, advance_kernel<double>);
}
void launch_retreat(const GatedRecurrenceStep& s, StreamHandle stream) {
  launch_step<GatedRecurrenceStep>(s, stream, retreat_kernel<float>, retreat_kernel<double>);
}

}  // namespace

void add_recurrent_launchers(Launchers& all) {
  static constexpr RecurrentLaunchers own{launch_cell, launch_advance, launch_retreat};
  all.recurrent = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
