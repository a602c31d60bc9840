// Chunks: the elements of many tensors cut into pieces of one size, so that one large and many small tensors keep all threads busy.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/parallel.h"
#include "engine/tensor.h"

namespace retrograd::optim {

/// Elements of a chunk: small enough to share out, large enough to pay for it.
inline constexpr int64_t kChunk = 1 << 14;

struct Chunk {
  size_t item;
  int64_t begin, end;
};

/// Chunks of items with these numbers of elements, in order.
inline std::vector<Chunk> cut(const std::vector<int64_t>& sizes) {
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < sizes.size(); ++i)
    for (int64_t at = 0; at < sizes[i]; at += kChunk)
      chunks.push_back({i, at, std::min(at + kChunk, sizes[i])});
  return chunks;
}

/// The memory of a contiguous tensor as T; null for an undefined one.
template <class T>
T* memory(const Tensor& t) {
  return t.defined() ? static_cast<T*>(t.raw_data()) : nullptr;
}

}  // namespace retrograd::optim
