// What the library's kernels ask of CUB for scans: see cuda/kernels/library_sort.h on how it is tested.
//
//   TeamScan   what each thread of a warp or of a block has before it, by shuffles: the order in which steps
//              are combined is that of the threads, always the same
//   scan_row   a row of integers over the whole device
//
// DeviceScan reads once, where a scan by parts reads twice. But a block takes what the blocks before it have
// found by then, so that steps are combined in another order each time (its look-back): it is for integers.
//
// Behind cuda/kernels/launch.h.
#pragma once

#if defined(__CUDACC__)
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/warp/warp_scan.cuh>

namespace retrograd::cuda::RG_TARGET {

/// S: a step; two are combined by op(first, then).
template <class S>
struct TeamScan {
  using Warp = cub::WarpScan<S>;
  using Block = cub::BlockScan<S, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  union Room {
    typename Warp::TempStorage warps[kThreads / 32];
    typename Block::TempStorage block;
  };

  /// For teams of 32 threads or of the whole block. `before`: of this thread, beginning with `none`; `all`: of
  /// its team. All threads of the block call it; the room is free again when it returns.
  template <class Op>
  __device__ static void run(Room& room, int lanes, const S& mine, const S& none, Op op, S& before, S& all) {
    if (lanes == 32)
      Warp(room.warps[threadIdx.x / 32]).ExclusiveScan(mine, before, none, op, all);
    else
      Block(room.block).ExclusiveScan(mine, before, none, op, all);
    __syncthreads();
  }
};

/// out[i] = op(in[0], ..., in[i]) for i < n. Does nothing but set `bytes` where room is null. A cudaError_t.
template <class In, class Out, class Op>
int scan_row(void* room, size_t& bytes, In in, Out out, Op op, int64_t n, StreamHandle stream) {
  return cub::DeviceScan::InclusiveScan(room, bytes, in, out, op, n, stream);
}

}  // namespace retrograd::cuda::RG_TARGET

#else
#include "cuda/on_host/library_scan.h"
#endif
