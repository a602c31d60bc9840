// How sums over many elements are cut for the threads of a device.
#pragma once

#include <cstdint>

namespace retrograd::inline v0::cuda {

inline constexpr int kThreadsOfBlock = 256;
inline constexpr int64_t kBlocks = 512;       // with fewer, long sums are split into parts
inline constexpr int64_t kLeastOfLane = 16;   // terms of a thread in a part
inline constexpr int64_t kMostSplits = 128;   // parts of a row of a normalisation or a scan

}  // namespace retrograd::cuda
