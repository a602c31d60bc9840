// The building blocks of the text of a fused kernel (written by cuda/fusion/source.h): nodes of the group, and ways to
// read and write elements that are neighbours in the group's iteration space.
//
// The text is compiled by NVRTC at run time, from these same headers, which the library contains as strings; and by the
// host's compiler for tests. A value is held in the form that a single kernel would have stored: a node converts its
// operands to the compute type of its op, and the result back. So the bits are those of the nodes run one by one.
#pragma once

#include "cuda/kernels/launch.h"
// Included after it, since they need RG_TARGET.
#include "cuda/kernels/formula.cuh"
#include "cuda/kernels/reduce.cuh"
#include "cuda/kernels/strided.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

// ---- nodes ----

/// An operand, or the number that replaces one, in the type that a formula computes in.
template <class V, class C, class T>
RG_HD V number_of(T x) {
  if constexpr (std::is_same_v<T, Scalar>)
    return math::number<V>(x);
  else
    return V(converted<C>(x));
}

/// The result of Op, as Out, which computes in C: float, double or int64_t.
template <class Op, class C, class Out, class... X>
RG_HD Out node(const typename Op::Attrs& attrs, X... operands) {
  using V = typename NumberOf<C>::Type;
  const V x[] = {number_of<V, C>(operands)...};
  if constexpr (gives_bool<Op>)
    return truth(apply<Op>(x, attrs));
  else
    return converted<Out>(apply<Op>(x, attrs).v);
}

/// `x` in another type, by way of C.
template <class C, class Out, class T>
RG_HD Out cast(T x) {
  return converted<Out>(converted<C>(x));
}

template <class C, class Out>
RG_HD Out constant(const Scalar& number) {
  return converted<Out>(number_of<typename NumberOf<C>::Type, C>(number).v);
}

// ---- N neighbours at a time ----

/// The first element of this thread's first pack, and the distance to its next one.
template <int N>
__device__ int64_t first_pack() {
  return (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N;
}
template <int N>
__device__ int64_t pack_step() {
  return static_cast<int64_t>(gridDim.x) * kThreads * N;
}

/// The elements of the pack that begins at i.
template <int N>
RG_HD int in_pack(int64_t i, int64_t numel) {
  return i + N <= numel ? N : static_cast<int>(numel - i);
}

/// x[at], ... of which the first `count` exist. `at` and x are multiples of a pack.
template <int N, class T>
RG_HD Pack<T, N> read(const T* x, int64_t at, int count) {
  if (count == N) return *reinterpret_cast<const Pack<T, N>*>(x + at);
  Pack<T, N> pack{};
  for (int k = 0; k < N; ++k)
    if (k < count) pack.v[k] = x[at + k];
  return pack;
}
/// N times x[at].
template <int N, class T>
RG_HD Pack<T, N> repeat(const T* x, int64_t at) {
  Pack<T, N> pack;
  for (int k = 0; k < N; ++k) pack.v[k] = x[at];
  return pack;
}
/// x[at], x[at + stride], ...
template <int N, class T>
RG_HD Pack<T, N> gather(const T* x, int64_t at, int64_t stride) {
  Pack<T, N> pack;
  for (int k = 0; k < N; ++k) pack.v[k] = x[at + k * stride];
  return pack;
}
template <int N, class T>
RG_HD void write(T* x, int64_t at, int count, const Pack<T, N>& pack) {
  if (count == N) {
    *reinterpret_cast<Pack<T, N>*>(x + at) = pack;
    return;
  }
  for (int k = 0; k < N; ++k)
    if (k < count) x[at + k] = pack.v[k];
}

}  // namespace retrograd::cuda::RG_TARGET
