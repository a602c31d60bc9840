// Ops by mask (ops/indexing.h): the positions of nonzero elements, and reads and writes there. Their number is known
// only when the mask is read.
#include <algorithm>

#include <fmt/format.h>

#include "ops/arithmetic.h"

#include "engine/named_call.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/index_ops.h"
#include "ops/indexing.h"
#include "ops/join.h"
#include "ops/reduce.h"
#include "ops/sort.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace {

Tensor flat_positions(const Tensor& mask, SourceLocation where) {
  const Tensor positions = nonzero(Operand(flat(mask, where), where));
  return select(Operand(positions, where), 1, 0);
}

void check_mask(const Tensor& mask, std::string_view op, SourceLocation where) {
  if (mask.dtype() != kBool)
    fail(Category::dtype_mismatch, op, fmt::format("a mask must be bool, this is {}", describe(mask)), where);
}

}  // namespace

Tensor masked_select(Operand x, const Tensor& mask) {
  const NamedCall call("masked_select", x.where());
  check_mask(mask, "masked_select", x.where());
  const Shape shape = broadcast_shapes(shape_of(x.tensor()), shape_of(mask), "masked_select");
  const Tensor from = flat(expand_to(x, shape), x.where());
  return index_select(Operand(from, x.where()), 0,
                      flat_positions(expand_to(Operand(mask, x.where()), shape), x.where()));
}

Tensor masked_scatter(Operand x, const Tensor& mask, const Tensor& source) {
  const NamedCall call("masked_scatter", x.where());
  check_mask(mask, "masked_scatter", x.where());
  if (source.dtype() != x.tensor().dtype())
    fail(Category::dtype_mismatch, "masked_scatter",
         fmt::format("{} into {}", describe(source), describe(x.tensor())), x.where());
  const Shape shape = broadcast_shapes(shape_of(x.tensor()), shape_of(mask), "masked_scatter");
  const Tensor positions = flat_positions(expand_to(Operand(mask, x.where()), shape), x.where());
  const Tensor from = flat(source, x.where());
  if (from.impl().numel() < shape_of(positions)[0])
    fail(Category::shape_mismatch, "masked_scatter",
         fmt::format("the source has {} elements, the mask marks {}", from.numel(), positions.numel()),
         x.where());
  const Tensor into = flat(expand_to(x, shape), x.where());
  const Tensor values = narrow(Operand(from, x.where()), 0, 0, shape_of(positions)[0]);
  return reshape_to(Operand(index_copy(Operand(into, x.where()), 0, positions, values), x.where()), shape);
}

namespace {

// Writes the positions of all nonzero elements, line by line of the last dim. Every position is written and then kept
// or overwritten, so that there are no branches to mispredict.
template <class T>
void write_places(const T* x, const IntArray& size, int64_t count, int64_t* out) {
  const size_t rank = size.size();
  if (rank == 1) {
    for (int64_t j = 0, k = 0; k < count; ++j) {
      out[k] = j;
      k += x[j] != T(0);
    }
    return;
  }
  const int64_t columns = rank == 0 ? 1 : size.back();
  int64_t before[kMaxRank] = {};  // the position of a line
  for (int64_t k = 0; k < count; x += columns) {
    for (int64_t j = 0; j < columns && k < count; ++j) {
      int64_t* const place = out + k * static_cast<int64_t>(rank);
      for (size_t d = 0; d + 1 < rank; ++d) place[d] = before[d];
      if (rank > 0) place[rank - 1] = j;
      k += x[j] != T(0);
    }
    for (size_t d = rank < 2 ? 0 : rank - 1; d > 0; --d) {
      if (++before[d - 1] < size[d - 1]) break;
      before[d - 1] = 0;
    }
  }
}

Tensor nonzero_on_cpu(const Tensor& x, SourceLocation where) {
  const Tensor dense = contiguous(Operand(x, where));
  Tensor out;
  dispatch(dense.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* p = static_cast<const T*>(dense.raw_data(where));
    const int64_t count = dense.numel() - std::count(p, p + dense.numel(), T(0));
    out = empty({count, dense.dim()}, {kInt64}, where);
    write_places(p, dense.sizes(), count, static_cast<int64_t*>(out.raw_data(where)));
  });
  return out;
}

// For values that are not in host memory: the nonzero ones are the first in a stable sort, and so are their positions.
// The host waits once, for their number.
Tensor nonzero_by_order(const Tensor& x, SourceLocation where) {
  constexpr int64_t kMost = (int64_t{1} << 32) - 2;  // elements of a line on a device
  if (x.numel() > kMost)
    fail(Category::unsupported, "nonzero",
         fmt::format("{} has more than {} elements, the most on a device", describe(x), kMost), where);
  const Tensor marks = to(Operand(flat(x, where), where), kBool);
  const int64_t count = count_nonzero(Operand(marks, where)).item<int64_t>(where);
  if (count == 0 || x.dim() == 0) return empty({count, x.dim()}, {kInt64, x.device()}, where);
  Tensor places = topk(Operand(marks, where), count, 0).indices;
  Tensors columns(static_cast<size_t>(x.dim()));
  for (size_t d = columns.size() - 1; d > 0; --d) {
    const int64_t size = x.size(static_cast<int64_t>(d));
    const Tensor line = div(Operand(places, where), size, "floor");
    columns[d] = sub(Operand(places, where), mul(Operand(line, where), size));
    places = line;
  }
  columns[0] = places;
  return stack(columns, 1, where);
}

}  // namespace

Tensor nonzero(Operand x) {
  const NamedCall call("nonzero", x.where());
  x.tensor().raw_data(x.where());
  NoGradGuard no_grad;
  return x.tensor().device() == kCPU ? nonzero_on_cpu(x.tensor(), x.where())
                                     : nonzero_by_order(x.tensor(), x.where());
}

}  // namespace retrograd
