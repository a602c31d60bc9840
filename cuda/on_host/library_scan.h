// Stand-in for CUB's scans on the host: see cuda/kernels/library_scan.h, which includes it.
#pragma once

#include <algorithm>

namespace retrograd::inline v0::cuda::RG_TARGET {

template <class S>
struct TeamScan {
  struct Room {
    S mine[kThreads], before[kThreads], all[kThreads];
  };
  template <class Op>
  static void run(Room& room, int lanes, const S& mine, const S& none, Op op, S& before, S& all) {
    const auto thread = static_cast<int>(threadIdx.x), first = thread - thread % lanes;
    room.mine[thread] = mine;
    __syncthreads();
    if (thread == first) {
      S sum = none;
      for (int t = first; t < first + lanes; ++t) {
        room.before[t] = sum;
        sum = op(sum, room.mine[t]);
      }
      room.all[first] = sum;
    }
    __syncthreads();
    before = room.before[thread];
    all = room.all[first];
    __syncthreads();
  }
};

template <class In, class Out, class Op>
void scan_row_kernel(char* room, size_t bytes, In in, Out out, Op op, int64_t n) {
  std::fill(room, room + bytes, char{1});
  auto sum = in[0];
  out[0] = sum;
  for (int64_t i = 1; i < n; ++i) out[i] = sum = op(sum, in[i]);
}

template <class In, class Out, class Op>
int scan_row(void* room, size_t& bytes, In in, Out out, Op op, int64_t n, StreamHandle stream) {
  if (room)
    launch(scan_row_kernel<In, Out, Op>, {1, 1, 1}, stream, static_cast<char*>(room), bytes, in, out, op, n);
  else
    bytes = static_cast<size_t>(n) / 64 + 1;
  return 0;
}

}  // namespace retrograd::cuda::RG_TARGET
