// The common part of the kernels of ops with positions: cpu/kernels/index.cc and scatter_reduce.cc, for single
// elements, index_entries.cc, for whole entries of a dim, and padding.cc.
//
// Positions are int64 and are checked, all of them, before anything is written. Elements are moved as unsigned
// integers of their width, since most of these ops do not depend on values; those that add use Accumulator<T>.
#pragma once

#include <type_traits>

#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/table.h"

namespace retrograd::inline v0::cpu {

inline constexpr int64_t kIndexGrain = 16384;  // elements a chunk

/// Error(index_out_of_range) unless all of a dense index is in [0, size).
void check_range(const Call& call, const TensorImpl& index, int64_t size);

inline const int64_t* positions(const TensorImpl& index) { return static_cast<const int64_t*>(index.data()); }

/// Calls f with a value of an unsigned type as wide as an element: for moves that do not depend on values.
template <class F>
void by_width(size_t width, F&& f) {
  switch (width) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    default: return f(uint64_t{});
  }
}

/// The type in which additions of T are summed.
template <class T>
using Accumulator = std::conditional_t<is_floating(dtype_of<T>()) && sizeof(T) < 4, float, T>;

void add_entry_kernels(KernelTable& table);
void add_scatter_reduce_kernel(KernelTable& table);

}  // namespace retrograd::cpu
