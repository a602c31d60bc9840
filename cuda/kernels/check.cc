// See cuda/kernels/check.h.
#include "cuda/kernels/check.h"

#include <algorithm>
#include <array>

#include "cuda/kernels/launchers.h"
#include "cuda/kernels/rows.h"
#include "cuda/scratch.h"

namespace retrograd::cuda {

BadValue first_bad(const Call& call, const TensorImpl& x, CheckCall c) {
  constexpr int64_t kMostBlocks = 64, kOfBlock = 4096;  // elements that one block looks at without another
  BadValue first{-1, 0, 0};
  c.x = row_side(x, 0);
  c.is_integer = !is_floating(x.dtype());
  if (c.x.rows.numel == 0) return first;
  c.blocks = static_cast<int>(std::clamp<int64_t>(c.x.rows.numel / kOfBlock, 1, kMostBlocks));
  std::array<BadValue, kMostBlocks> found;
  const auto bytes = static_cast<int64_t>(sizeof(BadValue)) * c.blocks;
  const Scratch memory(bytes, call.op->name);
  c.found = static_cast<BadValue*>(memory.data());
  Gpu& gpu = Gpu::current();
  gpu.launchers().check(c, gpu.compute().handle());
  gpu.launched(call.op->name);
  gpu.download(found.data(), memory.data(), bytes);
  for (int b = 0; b < c.blocks; ++b) {
    const BadValue& bad = found[static_cast<size_t>(b)];
    if (bad.place >= 0 && (first.place < 0 || bad.place < first.place)) first = bad;
  }
  return first;
}

}  // namespace retrograd::cuda
