// Kernels of elementwise ops, made of the ops' formulas, two for each:
//
//   direct   operands dense and of one type, float32, float64, float16 or bfloat16: each thread reads and writes 16
//   bytes at a time
//   any      any layouts, with strides, and any types, which are converted to the compute type (float, double, int64_t)
//
// Both call the same formula, so the bits of an element do not depend on its address (compiled with --fmad=false).
// rows<List>() gives the launchers of a list of ops; each elementwise_*.cu instantiates some lists.
#pragma once

#include <cstring>

#include "cuda/kernels/launch.h"
// Included after it, since they need RG_TARGET.
#include "cuda/kernels/formula.cuh"
#include "cuda/kernels/strided.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

template <class T, int arity>
struct DirectCall {
  void* out;
  const T* in[arity];  // null: the number
  typename Computed<T>::Type number;
  int64_t numel;
};

// A part of a pack. All indices are known at compile time: otherwise the pack would be in memory, not in registers.
template <class T, int N>
__device__ void read_some(const T* from, int n, Pack<T, N>& pack) {
#pragma unroll
  for (int i = 0; i < N; ++i)
    if (i < n) pack.v[i] = from[i];
}
template <class T, int N>
__device__ void write_some(const Pack<T, N>& pack, int n, T* to) {
#pragma unroll
  for (int i = 0; i < N; ++i)
    if (i < n) to[i] = pack.v[i];
}

// Elements [at, at + n) of one thread, n <= N; all N together if they exist.
template <class Op, class T, int N>
__global__ void __launch_bounds__(kThreads)
    direct_kernel(const DirectCall<T, Op::arity> call, const typename Op::Attrs attrs) {
  using C = typename Computed<T>::Type;
  using V = typename NumberOf<C>::Type;
  using Out = std::conditional_t<gives_bool<Op>, bool, T>;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N;
  if (at >= call.numel) return;
  const bool whole = at + N <= call.numel;
  const int n = whole ? N : static_cast<int>(call.numel - at);
  Pack<T, N> in[Op::arity] = {};
#pragma unroll
  for (int k = 0; k < Op::arity; ++k) {
    if (!call.in[k]) continue;
    if (whole)
      in[k] = *reinterpret_cast<const Pack<T, N>*>(call.in[k] + at);
    else
      read_some(call.in[k] + at, n, in[k]);
  }
  Pack<Out, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    V x[Op::arity];
#pragma unroll
    for (int k = 0; k < Op::arity; ++k) x[k] = V(call.in[k] ? converted<C>(in[k].v[i]) : call.number);
    if constexpr (gives_bool<Op>)
      out.v[i] = truth(apply<Op>(x, attrs));
    else
      out.v[i] = converted<T>(apply<Op>(x, attrs).v);
  }
  Out* to = static_cast<Out*>(call.out) + at;
  if (whole)
    *reinterpret_cast<Pack<Out, N>*>(to) = out;
  else
    write_some(out, n, to);
}

template <class Op, class C>
__global__ void __launch_bounds__(kThreads)
    any_kernel(const StridedCall<C, Op::arity> call, const typename Op::Attrs attrs) {
  using V = typename NumberOf<C>::Type;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= call.grid.numel) return;
  const Offsets<Op::arity + 1> at(call.grid, i);
  V x[Op::arity];
#pragma unroll
  for (int k = 0; k < Op::arity; ++k)
    x[k] = V(call.in[k].data ? load<C>(call.in[k].data, call.in[k].element, at[k + 1]) : call.number);
  if constexpr (gives_bool<Op>)
    store<bool>(call.out.data, call.out.element, at[0], truth(apply<Op>(x, attrs)));
  else
    store<C>(call.out.data, call.out.element, at[0], apply<Op>(x, attrs).v);
}

template <class Op>
typename Op::Attrs attrs_of(const ElementwiseCall& call) {
  typename Op::Attrs attrs{};
  if constexpr (!std::is_same_v<typename Op::Attrs, ops::NoAttrs>)
    if (call.attrs) std::memcpy(&attrs, call.attrs, sizeof(attrs));
  return attrs;
}

template <class Op, class T>
void launch_direct(const ElementwiseCall& call, StreamHandle stream) {
  constexpr int N = 16 / sizeof(T);
  DirectCall<T, Op::arity> direct{
      call.out.data, {}, static_cast<typename Computed<T>::Type>(call.number), call.numel};
  for (int k = 0; k < Op::arity; ++k) direct.in[k] = static_cast<const T*>(call.in[k].data);
  launch(direct_kernel<Op, T, N>, threads_for((call.numel + N - 1) / N), stream, direct, attrs_of<Op>(call));
}

template <class Op, class C>
void launch_any(const ElementwiseCall& call, StreamHandle stream) {
  launch(any_kernel<Op, C>, threads_for(call.numel), stream, StridedCall<C, Op::arity>(call),
         attrs_of<Op>(call));
}

template <class Op>
constexpr ElementwiseRow row_of() {
  using Attrs = typename Op::Attrs;
  ElementwiseRow row{};
  if constexpr (!std::is_same_v<Attrs, ops::NoAttrs>) row.attrs_size = sizeof(Attrs);
  if constexpr (!requires { Op::integers_only; }) {
    row.direct_f32 = launch_direct<Op, float>;
    row.direct_f64 = launch_direct<Op, double>;
    row.direct_f16 = launch_direct<Op, Half>;
    row.direct_bf16 = launch_direct<Op, BFloat16>;
    row.any_f32 = launch_any<Op, float>;
    row.any_f64 = launch_any<Op, double>;
  }
  if constexpr (Op::integers) row.any_i64 = launch_any<Op, int64_t>;
  return row;
}

template <class List>
struct Rows;
template <class... Ops>
struct Rows<ops::OpList<Ops...>> {
  static constexpr ElementwiseRow rows[] = {row_of<Ops>()...};
};

/// A row per op of the list.
template <class List>
const ElementwiseRow* rows() {
  return Rows<List>::rows;
}

}  // namespace retrograd::cuda::RG_TARGET
