// Steps of recurrent cells for one instruction-set level: see cpu/kernels/levels/recurrent_rows.h.
//
// Only plain loops here: nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/levels/recurrent_rows.h"

#include "cpu/kernels/levels/row_lanes.h"
#include "ops/recurrent_formulas.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

template <class T>
void lstm(T* gates, const T* c_before, T* c, T* h, int64_t n) {
  each_register<T>(0, n, [=](const Part<T>& part) {
    Vec<T> gate[4], state = part.load(c_before);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) gate[k] = part.load(gates + k * n);
    const Vec<T> y = ops::lstm_cell(gate, state);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) part.store(gates + k * n, gate[k]);
    part.store(c, state);
    part.store(h, y);
  });
}

template <class T>
void gru(const T* projected, const T* bias, const T* before, T* gates, T* h, int64_t n) {
  each_register<T>(0, n, [=](const Part<T>& part) {
    Vec<T> p[3], gate[4];
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k) {
      p[k] = part.load(projected + k * n);
      gate[k] = part.load(gates + k * n);
    }
    if (bias) gate[2] += part.load(bias);
    part.store(h, ops::gru_cell(p, part.load(before), gate));
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) part.store(gates + k * n, gate[k]);
  });
}

template <class T>
void rnn(T* h, bool relu, int64_t n) {
  each_register<T>(0, n, [=](const Part<T>& part) { part.store(h, ops::rnn_cell(part.load(h), relu)); });
}

template <class T>
void advance(const GatedStep<T>& step, const T* products, const T* x, const T* before, T* states) {
  const int64_t n = step.n;
  each_register<T>(0, n, [=, &step](const Part<T>& part) {
    const auto product = [&](int64_t k) {
      return part.load(step.factors + k * n) * part.load(products + k * n);
    };
    const int64_t own = step.has_cell ? n : 0;  // of c, or of the only state
    Vec<T> sum = part.load(x + own);
    for (int64_t k = 0; k < step.gates - step.has_cell; ++k) sum += product(k);
    if (step.keep) sum += part.load(step.keep + own) * part.load(before + own);
    part.store(states + own, sum);
    if (step.has_cell)
      part.store(states, part.load(x) + product(step.gates - 1) + part.load(step.keep) * sum);
  });
}

template <class T>
void retreat(const GatedStep<T>& step, const T* g, T* carry, T* delta, T* products) {
  const int64_t n = step.n;
  each_register<T>(0, n, [=, &step](const Part<T>& part) {
    const auto multiply = [&](int64_t k, Vec<T> d) {
      part.store(products + k * n, part.load(step.factors + k * n) * d);
    };
    const int64_t own = step.has_cell ? n : 0;
    Vec<T> d = part.load(g + own) + part.load(carry + own);
    if (step.has_cell) {
      const Vec<T> of_h = part.load(g) + part.load(carry);
      d += part.load(step.keep) * of_h;
      multiply(step.gates - 1, of_h);
      part.store(delta, of_h);
      part.store(carry, T(0));
    }
    for (int64_t k = 0; k < step.gates - step.has_cell; ++k) multiply(k, d);
    part.store(delta + own, d);
    part.store(carry + own, step.keep ? part.load(step.keep + own) * d : Vec<T>(T(0)));
  });
}

template <class T>
constexpr RecurrentRowTable<T> table{lstm<T>, gru<T>, rnn<T>, advance<T>, retreat<T>};

}  // namespace

template <class T>
const RecurrentRowTable<T>& recurrent_row_table() {
  return table<T>;
}
template const RecurrentRowTable<float>& recurrent_row_table<float>();
template const RecurrentRowTable<double>& recurrent_row_table<double>();

}  // namespace retrograd::cpu::RG_ISA
