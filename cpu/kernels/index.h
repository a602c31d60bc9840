// What the kernels of ops with positions share (cpu/kernels/index.cc, index_entries.cc).
#pragma once

#include <type_traits>

#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/table.h"

namespace retrograd::cpu {

inline constexpr int64_t kIndexGrain = 16384;  // elements a chunk

/// Error(index_out_of_range) unless all of a dense index is in [0, size).
void check_range(const Call& call, const TensorImpl& index, int64_t size);

inline const int64_t* positions(const TensorImpl& index) { return static_cast<const int64_t*>(index.data()); }

/// Calls f with a value of an unsigned type as wide as an element: for moves that do not look at values.
template <class F>
void by_width(size_t width, F&& f) {
  switch (width) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    default: return f(uint64_t{});
  }
}

/// What additions of T are summed in.
template <class T>
using Accumulator = std::conditional_t<is_floating(dtype_of<T>()) && sizeof(T) < 4, float, T>;

void add_entry_kernels(KernelTable& table);

}  // namespace retrograd::cpu
