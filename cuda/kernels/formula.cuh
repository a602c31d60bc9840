// An op's formula on one element: the compute types, and the type in which its result is stored. Used by the kernels of
// single ops (cuda/kernels/elementwise.cuh) and of fused groups (cuda/fusion/fused.cuh), which therefore give the same
// bits.
#pragma once

#include "cuda/kernels/elements.h"
#include "ops/elementwise.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

// How an element that is stored as T is computed: in numbers of type V.
template <class T>
struct Computed {
  using Type = float;
};
template <>
struct Computed<double> {
  using Type = double;
};
template <>
struct Computed<int64_t> {
  using Type = int64_t;
};
template <class C>
struct NumberOf {
  using Type = scalar::Lane<C>;
};
template <>
struct NumberOf<int64_t> {
  using Type = scalar::Int;
};

template <class T>
RG_HD inline bool truth(scalar::Mask<T> m) {
  return m.v;
}
RG_HD inline bool truth(bool b) { return b; }

template <class Op, class V>
RG_HD inline auto apply(const V* x, const typename Op::Attrs& attrs) {
  if constexpr (Op::arity == 1)
    return Op::fwd(x[0], attrs);
  else if constexpr (Op::arity == 2)
    return Op::fwd(x[0], x[1], attrs);
  else
    return Op::fwd(x[0], x[1], x[2], attrs);
}

template <class Op>
inline constexpr bool gives_bool = Op::promotion == ops::Promotion::boolean;

}  // namespace retrograd::cuda::RG_TARGET
