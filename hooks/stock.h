// Stock pairs of saved-tensor hooks, which trade memory for work or accuracy:
//
//   SavedTensorHooksGuard guard(save_as_half(model.parameters()));
//   Tensor loss = model(x);     // what this saves for the backward is kept as float16
//
// They change floating tensors of at least kSmallestPacked elements. They do not change other dtypes and small tensors;
// tensors that share memory with one of `keep` (packing a parameter would add a copy, since the parameter stays); and
// expanded tensors, which have less memory than elements. An unchanged tensor aliases the saved memory, so a write to
// it in place is still detected. save_on_cpu changes all tensors but those of `keep`, and those on a device that have
// less than kSmallestOffloaded bytes. A tensor that is saved twice is packed twice. The pairs may be used from several
// threads, and outlive the guard that they were given to.
#pragma once

#include <string>

#include "hooks/prefetcher.h"

#include "engine/saved_tensor_hooks.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

inline constexpr int64_t kSmallestPacked = 256;

/// float64 and float32 are kept as float16, rounded to nearest: numbers beyond 65504 become infinite. This pair and the
/// next two are traceable.
RefPtr<SavedTensorHooks> save_as_half(const Tensors& keep = {});

/// Floating tensors are kept as float8_e4m3fn with one scale per tensor, the largest finite |x| / 448. Infinite and nan
/// elements come back as nan.
RefPtr<SavedTensorHooks> save_as_fp8(const Tensors& keep = {});

/// Floating tensors are kept as one byte per element, -127 to 127 steps, and a step for each kInt8Block elements in
/// row-major order: the largest finite |x| of the block / 127, as float64 for float64 and as float32 otherwise. An element
/// changes by at most half a step. Infinite and nan elements come back as nan.
inline constexpr int64_t kInt8Block = 128;
RefPtr<SavedTensorHooks> save_as_int8(const Tensors& keep = {});

/// Each tensor is kept as a copy in host memory. It returns with the same bits, and with the same strides if the
/// elements fill a block of memory, in whatever order of dims; gaps of a view are closed, and the repeated elements of
/// an expanded tensor are kept once. Later writes to the saved tensor do not reach the copy.
///
/// `pinned`: in memory that a device copies to and from while host and device go on. The memory of a tensor on a device
/// is free when its copy is complete, without anybody waiting for it. A backward that runs a plan (compile_backward,
/// compile, compile_step) begins to copy it back before its use, as `prefetch` says. A tensor on the CPU is copied
/// there and back immediately; the rest is the same. Where there is no memory for the copy, the tensor is left as it
/// is.
inline constexpr int64_t kSmallestOffloaded = 1024;
RefPtr<SavedTensorHooks> save_on_cpu(bool pinned = false, const Tensors& keep = {},
                                     PrefetchOptions prefetch = {});

/// What the pairs save_on_cpu(true) of this process have copied since the last reset. A copy back is in flight from its
/// begin, before its use, to its use.
struct OffloadStats {
  int64_t bytes_to_host = 0, bytes_back = 0;
  int64_t stayed = 0;  // tensors that stayed where they were, since there was no memory for the copy
  int64_t early = 0;   // copies back that were begun before their use
  int64_t in_flight = 0, bytes_in_flight = 0;
  int64_t most_in_flight = 0, most_bytes_in_flight = 0;
};
OffloadStats offload_stats();
/// Copies in flight stay counted.
void reset_offload_stats();

/// Each tensor is written to a file of its own in `folder` and read back when it is needed; the file is removed when
/// the saved value is dropped. Folder and file problems (full disk, a missing or changed file) are FileErrors that name
/// the path. A backward that runs a plan begins to read as `prefetch` says, on a thread of the pair's own; the unpack
/// reports problems of a file all the same.
RefPtr<SavedTensorHooks> save_to_file(std::string folder, const Tensors& keep = {},
                                      PrefetchOptions prefetch = {.nodes = 0});

}  // namespace retrograd
#pragma GCC visibility pop
