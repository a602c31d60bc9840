// One step of recurrent cells for one sequence: one table of functions per instruction-set level. Implemented by
// recurrent_rows.cc, of the formulas in ops/recurrent_formulas.h.
//
// A row is the n elements of a state; blocks of n, such as the gates of a step, follow each other. Each element is
// independent of the others.
#pragma once

#include <cstdint>

#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

/// A step of a gated recurrence (ops/recurrent.h). With a cell, states and keep are two rows, that of h first.
template <class T>
struct GatedStep {
  int64_t n;
  int64_t gates;
  bool has_cell;
  const T* factors;
  const T* keep;  // null without one
};

template <class T>
struct RecurrentRowTable {
  /// gates: 4 rows of sums, which become the gates; c is the state after c_before.
  void (*lstm)(T* gates, const T* c_before, T* c, T* h, int64_t n);
  /// projected: 3 rows; gates: 4, of which the first 3 are U h; bias may be null.
  void (*gru)(const T* projected, const T* bias, const T* before, T* gates, T* h, int64_t n);
  /// The sums in h become the state.
  void (*rnn)(T* h, bool relu, int64_t n);
  /// products: U h of the step before.
  void (*advance)(const GatedStep<T>& step, const T* products, const T* x, const T* before, T* states);
  /// delta = g + carry; its products with factors; and the carry to the step before, to which the caller adds U' times
  /// the products.
  void (*retreat)(const GatedStep<T>& step, const T* g, T* carry, T* delta, T* products);
};

RG_EACH_LEVEL(template <class T> const RecurrentRowTable<T>& recurrent_row_table();)
/// The table of the best level, for T float and double.
template <class T>
const RecurrentRowTable<T>& recurrent_row_table() {
  RG_RETURN_BEST_LEVEL(recurrent_row_table<T>());
}

}  // namespace retrograd::cpu
