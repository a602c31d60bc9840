// Steps of optimizers over contiguous elements: one table of functions per instruction-set level.
//
// Implemented by cpu/kernels/rows_optimizers.cc, which is compiled once per level. Each output may be the input of the same name. An element
// depends on nothing but itself: results do not depend on how the work is cut.
#pragma once

#include <cstdint>

namespace retrograd::cpu {

/// What a step of AdamW multiplies with, rounded to the elements' type.
template <class T>
struct AdamWNumbers {
  T sign, keep, fresh1, beta2, fresh2, size, scale2, eps;
};
template <class T>
struct AdamWState {
  const T *p, *m, *v, *largest;  // largest: null without amsgrad
  const T* g;
  T *p_out, *m_out, *v_out, *largest_out;
};

template <class T>
struct SGDNumbers {
  T sign, decay, lr, momentum, keep, fresh;
  bool nesterov;
};
template <class T>
struct SGDState {
  const T *p, *buffer;  // buffer: null without momentum
  const T* g;
  T *p_out, *buffer_out;
};

template <class T>
struct OptimizerTable {
  void (*adamw)(const AdamWNumbers<T>& a, const AdamWState<T>& s, int64_t begin, int64_t end);
  void (*sgd)(const SGDNumbers<T>& a, const SGDState<T>& s, int64_t begin, int64_t end);
};

namespace baseline {
template <class T>
const OptimizerTable<T>& optimizer_table();
}
namespace avx2 {
template <class T>
const OptimizerTable<T>& optimizer_table();
}
namespace avx512 {
template <class T>
const OptimizerTable<T>& optimizer_table();
}

}  // namespace retrograd::cpu
