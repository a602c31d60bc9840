// See cuda/kernels/rows.h.
#include "cuda/kernels/rows.h"
#include "cuda/kernels/splits.h"

#include <algorithm>

namespace retrograd::inline v0::cuda {
namespace {

constexpr int64_t kLeastOfPart = 4096;  // elements
constexpr int64_t kPack = 4;            // elements of the largest pack

void add_dim(Dims& dims, int64_t size, int64_t stride) {
  dims.numel *= size;
  if (size == 1) return;
  const int last = dims.rank - 1;
  if (dims.rank > 0 && dims.stride[last] == size * stride) {
    dims.size[last] *= size;
    dims.stride[last] = stride;
  } else {
    dims.size[dims.rank] = size;
    dims.stride[dims.rank++] = stride;
  }
}

// At least one dim.
void complete(Dims& dims) {
  if (dims.rank > 0) return;
  dims.size[0] = 1;
  dims.rank = 1;
}

bool is_run(const Dims& dims, int64_t stride) {
  return dims.rank == 1 && (dims.size[0] == 1 || dims.stride[0] == stride);
}

// Packs have 4 elements, for float64 2.
bool is_dense(const RowSide& side, ScalarType dtype) {
  const int64_t pack = dtype == kFloat64 ? 2 : 4, n = side.along.numel;
  const auto address = reinterpret_cast<uintptr_t>(side.data);
  return n % pack == 0 && is_run(side.along, 1) && is_run(side.rows, n) &&
         address % (static_cast<uintptr_t>(pack) * element_size(dtype)) == 0;
}

template <class StrideOf>
RowSide made(const TensorImpl& x, const Shape& shape, uint64_t along, const StrideOf& stride_of) {
  RowSide side;
  side.data = const_cast<void*>(x.data());
  side.element = static_cast<Element>(x.dtype());
  for (int d = 0; d < shape.rank(); ++d)
    add_dim(along >> d & 1 ? side.along : side.rows, shape[d].raw(), stride_of(d));
  complete(side.rows);
  complete(side.along);
  side.is_dense = is_dense(side, x.dtype());
  return side;
}

}  // namespace

RowSide row_side(const TensorImpl* x, const Shape& shape, uint64_t along) {
  if (!x) return {};
  return made(*x, shape, along, [&](int d) -> int64_t {
    const int own = d - (shape.rank() - x->rank());
    return own < 0 || x->shape()[own].raw() == 1 ? 0 : x->strides()[own];
  });
}

RowSide row_side(const TensorImpl& x, uint64_t along) {
  return made(x, x.shape(), along, [&](int d) -> int64_t { return x.strides()[d]; });
}

RowSide row_side(const TensorImpl* x, const IntList& own, const Shape& shape, uint64_t along) {
  if (!x) return {};
  return made(*x, shape, along, [&](int d) -> int64_t {
    const auto found = std::find(own.begin(), own.end(), d);
    return found == own.end() ? 0 : x->strides()[static_cast<int>(found - own.begin())];
  });
}

RowCut cut_rows(const RowSide& side, int64_t most_splits) {
  const Dims &rows = side.rows, &along = side.along;
  RowCut cut;
  cut.rows = rows.numel;
  cut.length = along.numel;
  const bool is_along = along.numel > 1 && along.stride[along.rank - 1] == 1;
  cut.rows_first = rows.numel > 1 && rows.stride[rows.rank - 1] == 1 && !is_along;
  cut.lanes = cut.rows_first || cut.length <= 32 ? 8 : cut.length < 1024 ? 32 : 256;
  const int64_t rows_of_block = kThreadsOfBlock / cut.lanes;
  const int64_t blocks = std::max<int64_t>(1, (cut.rows + rows_of_block - 1) / rows_of_block);
  const int64_t most = std::min(kBlocks / blocks, cut.length * rows_of_block / kLeastOfPart);
  cut.splits = static_cast<int>(std::clamp<int64_t>(most, 1, most_splits));
  const int64_t packs = (cut.length + kPack - 1) / kPack;
  cut.part = (packs + cut.splits - 1) / cut.splits * kPack;
  return cut;
}

uint64_t mask_of(const IntList& dims) {
  uint64_t mask = 0;
  for (int64_t d : dims) mask |= uint64_t{1} << d;
  return mask;
}

}  // namespace retrograd::cuda
