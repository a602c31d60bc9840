// RG_HD: a function that device compilers compile for host and device; empty for the host's own compiler. Formulas
// (fwd, backward) and the mathematics that they call have it. RG_HD_CALL: the same, never inlined on a device, for long
// functions, of which each kernel would otherwise hold a copy for every element that a thread computes. RG_UNROLL,
// before a loop of such a function: it is unrolled on a device.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define RG_HD __host__ __device__
#define RG_HD_CALL __host__ __device__ __noinline__
#else
#define RG_HD
#define RG_HD_CALL
#endif

#if defined(__CUDA_ARCH__)
#define RG_UNROLL _Pragma("unroll")
#else
#define RG_UNROLL
#endif
