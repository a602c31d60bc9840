// Launches: how a kernel's source is compiled for its two targets, and started.
//
// A file cuda/kernels/NAME.cu is compiled twice: by nvcc, into namespace retrograd::cuda::device_code, and by the
// host's compiler after cuda/on_host/device_on_host.h, into retrograd::cuda::host_code, where blocks and threads run
// one after the other. The latter tests kernels without a device, including sanitizers. Such a file includes neither
// the engine nor Eigen nor fmt. It has kernels and their launchers over plain pointers and sizes; NAME.cc next to it
// interprets the call before.
//
// `<<<>>>` is not C++: launch() starts kernels. Gpu::launched() checks for errors after a launch. Kernels that are
// compiled at run time (cuda/fusion) also include this header, but are started from outside.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

#if defined(__CUDACC__)
#define RG_TARGET device_code
#define RG_DYNAMIC_SHARED(T, name)                      \
  extern __shared__ __align__(16) char name##_shared[]; \
  T* const name = reinterpret_cast<T*>(name##_shared)
#else
#define RG_TARGET host_code
#endif

namespace retrograd::inline v0::cuda {

using StreamHandle = CUstream_st*;

namespace RG_TARGET {

/// Threads of a block, by default.
inline constexpr int kThreads = 256;
/// For kernels for which ptxas spills registers so that more blocks fit on a multiprocessor:
/// __launch_bounds__(kThreads, kLeastBlocks) gives them the registers that they need.
inline constexpr int kLeastBlocks = 1;

struct Shape3 {
  unsigned blocks = 1, blocks_y = 1, threads = kThreads;
  size_t shared = 0;  // bytes of dynamic shared memory: at most 99 KiB
};
/// Bytes of shared memory that a kernel may use without a request.
inline constexpr size_t kSharedOfAnyKernel = 48 << 10;

/// Blocks for n threads. There are never more than 2^31 blocks: that would be 2^39 elements.
inline Shape3 threads_for(int64_t n) { return {static_cast<unsigned>((n + kThreads - 1) / kThreads)}; }

#if !defined(__CUDACC_RTC__)
template <class... P, class... A>
void launch(void (*kernel)(P...), const Shape3& shape, StreamHandle stream, const A&... arguments) {
#if defined(__CUDACC__)
  if (shape.shared > kSharedOfAnyKernel)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared));
  kernel<<<dim3(shape.blocks, shape.blocks_y), shape.threads, shape.shared, stream>>>(arguments...);
#else
  on_host::launch({{shape.blocks, shape.blocks_y}, {shape.threads}, shape.shared, 0, stream},
                  [=] { kernel(arguments...); });
#endif
}
#endif

}  // namespace RG_TARGET
}  // namespace retrograd::cuda
