// The scans of CUB that retrograd's kernels use: cuda/kernels/library_sort.h explains how they are tested.
//
//   TeamScan   the prefix of each thread of a warp or of a block, by shuffles: steps are combined in the order of the
//              threads, always the same
//   scan_row   a row of integers over the whole device
//
// DeviceScan reads once, whereas a scan by parts reads twice. But a block uses the results that the blocks before it
// have at that moment (look-back), so that the order of combination varies from run to run: it is for integers only.
//
// Included after cuda/kernels/launch.h.
#pragma once

#if defined(__CUDACC__)
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/warp/warp_scan.cuh>

namespace retrograd::inline v0::cuda::RG_TARGET {

/// S: a step; op(first, then) combines two.
template <class S>
struct TeamScan {
  using Warp = cub::WarpScan<S>;
  using Block = cub::BlockScan<S, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  union Room {
    typename Warp::TempStorage warps[kThreads / 32];
    typename Block::TempStorage block;
  };

  /// For teams of 32 threads or of the whole block. `before`: the prefix of this thread, beginning with `none`; `all`:
  /// the total of its team. Called by all threads of the block; the temporary memory is free again when it returns.
  template <class Op>
  __device__ static void run(Room& room, int lanes, const S& mine, const S& none, Op op, S& before, S& all) {
    if (lanes == 32)
      Warp(room.warps[threadIdx.x / 32]).ExclusiveScan(mine, before, none, op, all);
    else
      Block(room.block).ExclusiveScan(mine, before, none, op, all);
    __syncthreads();
  }
};

/// out[i] = op(in[0], ..., in[i]) for i < n. Only sets `bytes` when room is null. Returns a cudaError_t.
template <class In, class Out, class Op>
int scan_row(void* room, size_t& bytes, In in, Out out, Op op, int64_t n, StreamHandle stream) {
  return cub::DeviceScan::InclusiveScan(room, bytes, in, out, op, n, stream);
}

}  // namespace retrograd::cuda::RG_TARGET

#else
#include "cuda/on_host/library_scan.h"
#endif
