// Draws. A thread processes a Philox block and the elements that it serves: 4 floats, 2 doubles or integers, 8 choices
// of dropout. Compute types and random streams are those of cpu/kernels/random.cc: integers, choices and uniforms have
// the same bits; normals and exponentials differ from the CPU's in the last bits, as log, sin and cos do.
#include "cuda/kernels/random_call.h"

#include <bit>
#include <limits>

#include "cuda/kernels/launchers.h"
#include "cuda/kernels/rows.cuh"
// Included after it, since it needs RG_TARGET.
#include "cuda/kernels/note.h"
#include "engine/philox.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

template <class C>
using Lane = scalar::Lane<C>;

// The words of a block.
__device__ inline auto words(const DrawNumbers& numbers, int64_t block) {
  return philox(numbers.seed, static_cast<uint64_t>(block), numbers.offset);
}

// The uniforms of a block.
template <class C>
__device__ void uniforms(const DrawNumbers& numbers, int64_t block, C (&u)[kPack<C>]) {
  const auto w = words(numbers, block);
  for (size_t k = 0; k < kPack<C>; ++k) {
    if constexpr (sizeof(C) == 8)
      u[k] = uniform_from_bits(w[2 * k], w[2 * k + 1]);
    else
      u[k] = uniform_from_bits(w[k]);
  }
}

// Box-Muller pairs.
template <class C>
__device__ void normals(const DrawNumbers& numbers, int64_t block, C (&z)[kPack<C>]) {
  const auto w = words(numbers, block);
  for (size_t k = 0; k < kPack<C>; k += 2) {
    C u, turn;
    if constexpr (sizeof(C) == 8) {
      u = 1.0 - uniform_from_bits(w[0], w[1]);
      turn = uniform_from_bits(w[2], w[3]);
    } else {
      u = (static_cast<float>(w[k]) + 1.0f) * 0x1p-32f;
      turn = uniform_from_bits(w[k + 1]);
    }
    const Lane<C> angle = turn * static_cast<C>(2 * scalar::kPi),
                  radius = scalar::sqrt(scalar::log(Lane<C>(u)) * -2);
    z[k] = (radius * scalar::cos(angle)).v;
    z[k + 1] = (radius * scalar::sin(angle)).v;
  }
}

// A uniform with as many bits as the element type has, so that rounding cannot give 1.
template <class C>
RG_HD C shortened(C u, Element element) {
  if (element != Element::f16 && element != Element::bf16) return u;
  const C bits = element == Element::f16 ? C(0x1p11) : C(0x1p8);
  return scalar::floor(Lane<C>(u * bits)).v / bits;
}

// v rounded to the element type.
template <class C>
RG_HD C rounded(C v, Element element) {
  if (element == Element::f16) return converted<C>(converted<Half>(v));
  if (element == Element::bf16) return converted<C>(converted<BFloat16>(v));
  return v;
}

// The parameters of a block's elements: the numbers of the call for all of them, or those of tensors for each.
template <class C>
struct Numbers {
  explicit Numbers(const RandomCall&) {}
  __device__ void read(const DrawNumbers& numbers, int64_t, C (&a)[kPack<C>], C (&b)[kPack<C>]) const {
    for (int k = 0; k < kPack<C>; ++k) a[k] = static_cast<C>(numbers.a), b[k] = static_cast<C>(numbers.b);
  }
};
template <class C>
struct Parameters {
  StridedRows<C> as, bs;

  explicit Parameters(const RandomCall& call) : as(call.a_side), bs(call.b_side) {}
  __device__ void read(const DrawNumbers& numbers, int64_t i, C (&a)[kPack<C>], C (&b)[kPack<C>]) const {
    for (int k = 0; k < kPack<C>; ++k) a[k] = static_cast<C>(numbers.a), b[k] = static_cast<C>(numbers.b);
    if (as.exists()) as.row(0).read(i, a);
    if (bs.exists()) bs.row(0).read(i, b);
  }
};

// The values of a block, from the parameters of each element.
template <Distribution kind, class C, int N>
__device__ void draw(const DrawNumbers& numbers, Element element, int64_t block, const C (&a)[N],
                     const C (&b)[N], C (&v)[N]) {
  if constexpr (kind == Distribution::normal)
    normals<C>(numbers, block, v);
  else
    uniforms<C>(numbers, block, v);
  for (int k = 0; k < N; ++k) {
    if constexpr (kind == Distribution::normal) v[k] = a[k] + b[k] * v[k];
    if constexpr (kind == Distribution::exponential) v[k] = -scalar::log1p(Lane<C>(-v[k])).v / a[k];
    if constexpr (kind == Distribution::bernoulli) v[k] = v[k] < a[k] ? 1 : 0;
    if constexpr (kind == Distribution::uniform) {
      v[k] = a[k] + (b[k] - a[k]) * shortened(v[k], element);
      if (!(rounded(v[k], element) < b[k])) v[k] = a[k];  // rounding has given b
    }
  }
}

// The parameters of tensors.
template <Distribution kind, class C, int N>
__device__ void check_parameters(const RandomCall& call, const C (&a)[N], const C (&b)[N]) {
  for (int k = 0; k < N; ++k) {
    if constexpr (kind == Distribution::bernoulli)
      if (call.a_side.data) is_between(a[k], 0, 1, call.note);
    if constexpr (kind == Distribution::normal)
      if (call.b_side.data) is_between(b[k], 0, std::numeric_limits<double>::infinity(), call.note);
  }
}

template <Distribution kind, class Rows, class Of>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    draw_kernel(const Rows out, const Of parameters, const RandomCall call, const int64_t n) {
  using C = typename Rows::C;
  constexpr int N = Rows::N;
  const int64_t block = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (block * N >= n) return;
  const DrawNumbers numbers = call.numbers.get();
  C a[N], b[N], v[N];
  parameters.read(numbers, block * N, a, b);
  check_parameters<kind>(call, a, b);
  draw<kind>(numbers, call.out.element, block, a, b, v);
  out.row(0).write(block * N, v);
}

__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    integers_kernel(const StridedRows<int64_t> out, const RandomCall call, const int64_t n) {
  const DrawNumbers numbers = call.numbers.get();
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t block = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; block * 2 < n;
       block += step) {
    const auto w = words(numbers, block);
    int64_t v[2];
    for (size_t k = 0; k < 2; ++k) {
      const uint64_t bits = uint64_t{w[2 * k]} << 32 | w[2 * k + 1];
      v[k] = static_cast<int64_t>(numbers.low + upper_product(bits, numbers.range));
    }
    out.row(0).write(block * 2, v);
  }
}

// Writes f(value, its 16 random bits, its number) for each element of x: lower halves of words first.
template <class Rows, class F>
__device__ void change_elements(const Rows& out, const Rows& x, const DrawNumbers& numbers, int64_t n,
                                const F& f) {
  constexpr int N = Rows::N;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t block = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; block * 8 < n;
       block += step) {
    const auto w = words(numbers, block);
#pragma unroll
    for (unsigned first = 0; first < 8; first += N) {
      const int64_t i = block * 8 + first;
      if (i >= n) continue;
      typename Rows::C v[N];
      x.row(0).read(i, v);
#pragma unroll
      for (unsigned k = 0; k < N; ++k) {
        const uint32_t word = w[(first + k) / 2], bits = k % 2 ? word >> 16 : word & 0xffff;
        v[k] = f(v[k], bits, static_cast<uint64_t>(i) + k);
      }
      out.row(0).write(i, v);
    }
  }
}

// If 16 bits do not decide a choice, is_chosen() does.
template <class Rows>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    dropout_kernel(const Rows out, const Rows x, const RandomCall call, const int64_t n) {
  using C = typename Rows::C;
  const DrawNumbers numbers = call.numbers.get();
  const Chance chance{numbers.chance_high, numbers.chance_low};
  const C scale = static_cast<C>(numbers.b);
  change_elements(out, x, numbers, n, [&](C v, uint32_t bits, uint64_t i) {
    const bool is_dropped =
        bits != chance.high ? bits < chance.high : is_chosen(numbers.seed, numbers.offset, i, chance);
    return is_dropped ? C(0) : v * scale;
  });
}

// What is added does not carry into the exponent of an infinity or the bits of a NaN.
RG_HD float rounded_at_random(float x, uint32_t random) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return (bits & 0x7f800000) == 0x7f800000 ? x : std::bit_cast<float>((bits + random) & 0xffff0000);
}

__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    round_kernel(const StridedRows<float> out, const StridedRows<float> x, const RandomCall call,
                 const int64_t n) {
  change_elements(out, x, call.numbers.get(), n,
                  [](float v, uint32_t bits, uint64_t) { return rounded_at_random(v, bits); });
}

Shape3 blocks_of(const RandomCall& call, int64_t elements_of_thread) {
  return threads_for((call.out.along.numel + elements_of_thread - 1) / elements_of_thread);
}

template <Distribution kind, template <class> class Of, class Rows>
void launch_draw_in(const RandomCall& call, StreamHandle stream) {
  using Source = Of<typename Rows::C>;
  launch(draw_kernel<kind, Rows, Source>, blocks_of(call, Rows::N), stream, Rows(call.out), Source(call),
         call, call.out.along.numel);
}

// With tensor parameters the result is treated as strided, too: reading them costs more than its layout.
template <Distribution kind>
void launch_draw_from(const RandomCall& call, StreamHandle stream) {
  if (call.out.element == Element::f64)
    return launch_draw_in<kind, Parameters, StridedRows<double>>(call, stream);
  launch_draw_in<kind, Parameters, StridedRows<float>>(call, stream);
}

template <Distribution kind>
void launch_draw(const RandomCall& call, StreamHandle stream) {
  with_rows(call.out.element, call.out.is_dense,
            [&]<class Rows>() { launch_draw_in<kind, Numbers, Rows>(call, stream); });
}

void launch_normal(const RandomCall& call, StreamHandle stream) {
  if (call.a_side.data || call.b_side.data) return launch_draw_from<Distribution::normal>(call, stream);
  launch_draw<Distribution::normal>(call, stream);
}

// In double for every dtype, from the double stream: otherwise the tail would end at 24 bits.
void launch_exponential(const RandomCall& call, StreamHandle stream) {
  launch_draw_in<Distribution::exponential, Numbers, StridedRows<double>>(call, stream);
}

// A probability that is a number is compared with the float stream for every dtype.
void launch_bernoulli(const RandomCall& call, StreamHandle stream) {
  if (call.a_side.data) return launch_draw_from<Distribution::bernoulli>(call, stream);
  launch_draw_in<Distribution::bernoulli, Numbers, StridedRows<float>>(call, stream);
}

void launch_integers(const RandomCall& call, StreamHandle stream) {
  launch(integers_kernel, blocks_of(call, 2), stream, StridedRows<int64_t>(call.out), call,
         call.out.along.numel);
}

void launch_dropout(const RandomCall& call, StreamHandle stream) {
  with_rows(call.out.element, call.out.is_dense && call.a_side.is_dense, [&]<class Rows>() {
    launch(dropout_kernel<Rows>, blocks_of(call, 8), stream, Rows(call.out), Rows(call.a_side), call,
           call.out.along.numel);
  });
}

void launch_rounding(const RandomCall& call, StreamHandle stream) {
  launch(round_kernel, blocks_of(call, 8), stream, StridedRows<float>(call.out),
         StridedRows<float>(call.a_side), call, call.out.along.numel);
}

}  // namespace

void add_random_launchers(Launchers& all) {
  using enum Distribution;
  static constexpr RandomLaunchers own{{launch_draw<uniform>, launch_normal, launch_exponential,
                                        launch_bernoulli, launch_integers, launch_dropout, launch_rounding}};
  all.random = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
