// Passes: elementwise updates of many parameters at once, spread over the threads.
//
// A pass is what one parameter's update needs: its memory, that of its gradient and state, and numbers. It has `Tensor param`, and
// run<T>(begin, end), which updates elements [begin, end) read as T. run_passes cuts all parameters into chunks of one size, so that one
// large and many small parameters keep all threads busy; which thread runs a chunk is left to chance.
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

/// Runs all passes to their end and raises the versions of the parameters.
template <class Pass>
void run_passes(const std::vector<Pass>& passes) {
  std::vector<int64_t> sizes;
  for (const Pass& pass : passes) sizes.push_back(pass.param.numel());
  const std::vector<Chunk> chunks = cut(sizes);
  for (const Pass& pass : passes) pass.param.impl().storage()->will_be_written();
  cpu::parallel_for(static_cast<int64_t>(chunks.size()), [&](int64_t i) {
    const Chunk& chunk = chunks[static_cast<size_t>(i)];
    const Pass& pass = passes[chunk.item];
    if (pass.param.dtype() == kFloat64)
      pass.template run<double>(chunk.begin, chunk.end);
    else
      pass.template run<float>(chunk.begin, chunk.end);
  });
  for (const Pass& pass : passes) pass.param.impl().storage()->bump_version();
}

}  // namespace retrograd::optim
