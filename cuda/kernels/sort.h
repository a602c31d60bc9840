// Sorting on a device for other families of kernels.
#pragma once

#include <cstdint>
#include <string_view>

namespace retrograd::cuda {

/// order[k]: the place of the k-th of n keys, which are in [-1, most); equal ones stay in their order. Memory
/// of the device. For the op of this name, on Gpu::current().
void sort_places(const int64_t* keys, int64_t n, int64_t most, int64_t* order, std::string_view op);

}  // namespace retrograd::cuda
