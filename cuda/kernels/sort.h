// Sorting on a device for other families of kernels.
#pragma once

#include <cstdint>

#include "engine/op.h"

namespace retrograd::inline v0::cuda {

/// order[k]: the position of the k-th of n keys, which are in [-1, most); equal ones keep their order. Device memory.
/// For this call, on Gpu::current(). Error(unsupported) from 2^32 - 1 keys on.
void sort_places(const Call& call, const int64_t* keys, int64_t n, int64_t most, int64_t* order);

}  // namespace retrograd::cuda
