// Products of small matrices by tensor cores: 16-bit factors, sums in float. Fragments, how they are loaded from shared
// memory, the product itself, and asynchronous copies to shared memory. All PTX for these (compute capability 8.0 or
// more) is in this file; next to each instruction is the host's replacement, in which lanes exchange their values.
//
// A warp holds a matrix as a fragment: each lane has some of its elements in registers, two 16-bit elements per
// register, the first in the lower half. With g = lane / 4 and t = lane % 4 (PTX ISA, "Matrix Fragments for
// mma.m16n8k16 with floating point type"):
//
//   left factor, 16 x 16   part 0: row g, columns 2t and 2t+1; part 1: row g+8; parts 2 and 3: as 0 and 1, 8 columns
//                          further
//   right factor, 16 x 8   part 0: rows 2t and 2t+1 of column g; part 1: 8 rows further
//   sums, 16 x 8           v[0], v[1]: row g, columns 2t and 2t+1; v[2], v[3]: row g+8
//
// So the sums of two adjacent products, 16 x 16, are a left factor once they are rounded: as_left(). S: BFloat16 or
// Half. Every function is called by whole warps of blocks with one dim. A tensor core adds the terms of a product in an
// order and with a rounding of its own: bits differ from the host's, and are the same in every run.
#pragma once

#include "cuda/kernels/elements.h"
#include "cuda/kernels/launch.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

/// Four registers of 16-bit pairs: a left factor, or two adjacent right factors (parts 0, 1 and 2, 3).
struct Fragment {
  uint32_t part[4];
};
struct Sums {
  float v[4];
};

__device__ inline int lane_of_warp() { return static_cast<int>(threadIdx.x % 32); }

#if defined(__CUDACC__)

__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

/// Four matrices of 8 x 8 from shared memory. Lane 8i + r gives the address of row r of matrix i, 16 bytes at a
/// multiple of 16; it gets row g, columns 2t and 2t+1 of each, or, turned, rows 2t and 2t+1 of column g.
template <bool turned>
__device__ Fragment load_fragment(const void* row) {
  Fragment f;
  if constexpr (turned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.part[0]), "=r"(f.part[1]), "=r"(f.part[2]), "=r"(f.part[3])
                 : "r"(shared_address(row))
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.part[0]), "=r"(f.part[1]), "=r"(f.part[2]), "=r"(f.part[3])
                 : "r"(shared_address(row))
                 : "memory");
  return f;
}

#define RG_PRODUCT(type)                                                                                  \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                                     \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                     \
               : "+f"(sums.v[0]), "+f"(sums.v[1]), "+f"(sums.v[2]), "+f"(sums.v[3])                       \
               : "r"(left.part[0]), "r"(left.part[1]), "r"(left.part[2]), "r"(left.part[3]), "r"(right0), \
                 "r"(right1))
/// sums += left right, 16 x 16 by 16 x 8.
template <class S>
__device__ void add_product(Sums& sums, const Fragment& left, uint32_t right0, uint32_t right1) {
  if constexpr (std::is_same_v<S, Half>)
    RG_PRODUCT("f16");
  else
    RG_PRODUCT("bf16");
}
#undef RG_PRODUCT

/// Both rounded to nearest, the first in the lower half.
template <class S>
__device__ uint32_t rounded_pair(float first, float second) {
  uint32_t pair;
  if constexpr (std::is_same_v<S, Half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

/// 2 to the power of x, with an error of 2 units in the last place.
__device__ inline float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Begins to copy to shared memory: `filled` bytes, then zeros. Both addresses are multiples of `bytes`, which is 8 or
/// 16.
template <int bytes>
__device__ void begin_copy(void* to, const void* from, int filled) {
  const size_t source = __cvta_generic_to_global(from);
  if constexpr (bytes == 16)  // bypasses the first-level cache
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(shared_address(to)), "l"(source), "r"(filled)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(shared_address(to)), "l"(source), "n"(bytes), "r"(filled)
                 : "memory");
}
/// The copies that this thread has begun so far form a group.
__device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until all groups of this thread have arrived. For those of other threads, call __syncthreads() after it.
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

#else

template <bool turned>
Fragment load_fragment(const void* row) {
  const on_host::Lanes<const void*> rows = on_host::gather(row);
  const int lane = lane_of_warp(), g = lane / 4, t = lane % 4;
  Fragment f;
  for (int i = 0; i < 4; ++i) {
    uint16_t pair[2];
    for (int e = 0; e < 2; ++e) {
      const int r = turned ? 2 * t + e : g, column = turned ? g : 2 * t + e;
      std::memcpy(&pair[e], static_cast<const char*>(rows.of[8 * i + r]) + 2 * column, 2);
    }
    std::memcpy(&f.part[i], pair, 4);
  }
  return f;
}

template <class S>
float half_of(uint32_t pair, int which) {
  return S::from_bits(static_cast<uint16_t>(pair >> 16 * which));
}

template <class S>
void add_product(Sums& sums, const Fragment& left, uint32_t right0, uint32_t right1) {
  struct Shown {
    Fragment left;
    uint32_t right[2];
  };
  const on_host::Lanes<Shown> all = on_host::gather(Shown{left, {right0, right1}});
  const int lane = lane_of_warp(), g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) {
    const int row = g + i / 2 * 8, column = 2 * t + i % 2;
    for (int k = 0; k < 16; ++k) {
      const int of_lane = k % 8 / 2;
      const uint32_t a = all.of[row % 8 * 4 + of_lane].left.part[row / 8 + k / 8 * 2],
                     b = all.of[column * 4 + of_lane].right[k / 8];
      sums.v[i] += half_of<S>(a, k % 2) * half_of<S>(b, k % 2);
    }
  }
}

template <class S>
uint32_t rounded_pair(float first, float second) {
  return S(first).bits | static_cast<uint32_t>(S(second).bits) << 16;
}

inline float power_of_2(float x) { return std::exp2(x); }

template <int bytes>
void begin_copy(void* to, const void* from, int filled) {
  on_host::copies().begin(to, from, bytes, static_cast<size_t>(filled));
}
inline void end_group() { on_host::copies().commit(); }
inline void wait_for_copies() { on_host::copies().wait(0); }

#endif

/// Sums of 16 x 16, as two of 16 x 8.
template <class S>
__device__ Fragment as_left(const Sums& first, const Sums& second) {
  return {{rounded_pair<S>(first.v[0], first.v[1]), rounded_pair<S>(first.v[2], first.v[3]),
           rounded_pair<S>(second.v[0], second.v[1]), rounded_pair<S>(second.v[2], second.v[3])}};
}

}  // namespace retrograd::cuda::RG_TARGET
