// See ops/unique.h.
#include "ops/unique.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/differences.h"
#include "ops/family_parts.h"
#include "ops/index_ops.h"
#include "ops/indexing.h"
#include "ops/join.h"
#include "ops/reduce.h"
#include "ops/scan.h"
#include "ops/shape_ops.h"
#include "ops/sort.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace {

// What is compared: the elements, or the slices along a dim, as rows [n, elements of a slice].
Tensor items_of(Operand x, std::optional<int64_t> dim, std::string_view op) {
  if (is_float8(x.tensor().dtype()))
    fail(Category::dtype_mismatch, op, fmt::format("{} has no order", describe(x.tensor())), x.where());
  if (!dim) return flat(x.tensor(), x.where());
  const int along = wrap_dim(*dim, x.tensor().impl().rank(), op);
  if (x.tensor().dim() == 0) return reshape_to(x, {1, 1});
  const Tensor moved = movedim(x, {along}, {0});
  const Dim n = shape_of(moved)[0];
  if (x.tensor().numel() == 0) {
    if (n != Dim(0)) fail(Category::bad_argument, op, "the slices have no elements", x.where());
    return reshape_to(Operand(moved, x.where()), {0, 1});
  }
  return reshape_to(Operand(moved, x.where()), {n, x.tensor().impl().numel() / n});
}

// The order of rows: stable sorts by each column, the first one last.
Tensor order_of_rows(const Tensor& rows) {
  Tensor order = arange(rows.size(0), TensorOptions{kInt64, rows.device()});
  for (int64_t column = rows.size(1) - 1; column >= 0; --column) {
    const Tensor keys = index_select(select(rows, 1, column), 0, order);
    order = index_select(order, 0, argsort(keys, 0, false, true));
  }
  return order;
}

// Whether each item differs from the one before; the first does.
Tensor begins_of(const Tensor& items) {
  const Dim n = shape_of(items)[0];
  Tensor differs = ne(narrow(items, 0, 1, n - 1), narrow(items, 0, 0, n - 1));
  if (items.dim() == 2) differs = any(differs, 1);
  return cat({ones({1}, {kBool, items.device()}), differs}, 0);
}

// Of items in an order in which equal ones are neighbours; `order` is undefined if it is their own.
UniqueResult distinct(const Tensor& items, const Tensor& order, bool return_inverse, bool return_counts) {
  const int64_t n = items.size(0);
  const TensorOptions options{kInt64, items.device()};
  if (n == 0)
    return {clone(items), return_inverse ? zeros({0}, options) : Tensor(),
            return_counts ? zeros({0}, options) : Tensor()};
  const Tensor begins = begins_of(items), firsts = select(nonzero(begins), 1, 0);
  UniqueResult result{index_select(items, 0, firsts), {}, {}};
  if (return_inverse) {
    const Tensor numbers = sub(cumsum(begins, 0), 1);
    result.inverse_indices = order.defined() ? index_copy(empty({n}, options), 0, order, numbers) : numbers;
  }
  if (return_counts) result.counts = diff(firsts, 1, 0, {}, full({1}, n, options));
  return result;
}

// From rows back to slices along the dim.
void restore_shapes(UniqueResult& result, Operand x, std::optional<int64_t> dim) {
  if (!dim) {
    if (result.inverse_indices.defined())
      result.inverse_indices = reshape_to(result.inverse_indices, shape_of(x));
    return;
  }
  const int rank = x.tensor().impl().rank();
  if (rank == 0) {
    result.output = reshape_to(result.output, {1});
    return;
  }
  const int along = wrap_dim(*dim, rank, "unique");
  Shape shape{shape_of(result.output)[0]};
  for (int d = 0; d < rank; ++d)
    if (d != along) shape.push_back(shape_of(x)[d]);
  result.output = contiguous(movedim(reshape_to(result.output, shape), {0}, {along}));
}

}  // namespace

UniqueResult unique(Operand x, bool, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
  const NamedCall call("unique", x.where());
  x.tensor().raw_data(x.where());
  const NoGradGuard no_grad;
  const Tensor items = items_of(x, dim, "unique");
  Tensor sorted, order;
  if (dim) {
    order = order_of_rows(items);
    sorted = index_select(items, 0, order);
  } else {
    const ValuesAndIndices all = sort(items, 0);
    sorted = all.values;
    order = all.indices;
  }
  UniqueResult result = distinct(sorted, order, return_inverse, return_counts);
  restore_shapes(result, x, dim);
  return result;
}

UniqueResult unique_consecutive(Operand x, bool return_inverse, bool return_counts,
                                std::optional<int64_t> dim) {
  const NamedCall call("unique_consecutive", x.where());
  x.tensor().raw_data(x.where());
  const NoGradGuard no_grad;
  UniqueResult result = distinct(items_of(x, dim, "unique_consecutive"), {}, return_inverse, return_counts);
  restore_shapes(result, x, dim);
  return result;
}

}  // namespace retrograd
