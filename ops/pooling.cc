// Type rules and derivatives of ops/pooling.h, and the declarations of ops/resampling.h. The public functions are in
// ops/pooling_functions.cc.
#include "ops/pooling.h"

#include <fmt/format.h>

#include "ops/attributes.h"
#include "ops/index_ops.h"
#include "ops/pooling_parts.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

bool is_number(ScalarType dtype) { return dtype != kBool && !is_float8(dtype); }

// The windows of a parsed graph may have any values; public functions have completed the lists.
void check_windows(const Call& call, const WindowAttrs& a, int dims) {
  for (const IntList* list : {&a.kernel_size, &a.stride, &a.padding})
    if (list->size() != dims)
      fail_call(call, Category::bad_argument, "the windows have another number of dims");
  for (int i = 0; i < dims; ++i) {
    if (a.kernel_size[i] < 1 || a.stride[i] < 1)
      fail_call(call, Category::bad_argument, "kernel_size and stride must be positive");
    if (a.padding[i] < 0 || a.padding[i] > a.kernel_size[i] / 2)
      fail_call(call, Category::bad_argument, "padding must be from 0 to half of kernel_size");
  }
}

// Windows need at least one element. Sizes of 0 are never symbols.
void check_not_empty(const Call& call, const Shape& grid) {
  for (Dim size : grid)
    if (size.raw() == 0)
      fail_call(call, Category::bad_argument, fmt::format("a dim of the grid {} is empty", to_string(grid)));
}

bool is_double(int64_t v) {
  const auto d = static_cast<double>(v);
  return d < 0x1p63 && static_cast<int64_t>(d) == v;
}

// Checks a grid and the averages over its windows. The last window may end outside or not: both occur.
void check_average(const Call& call, const AvgPoolAttrs& a, const Shape& grid, const Shape& averages) {
  if (!is_double(a.divisor_override))
    fail_call(call, Category::bad_argument,
              fmt::format("the divisor_override {} is not representable as a double", a.divisor_override));
  for (int i = 0; i < grid.rank(); ++i) {
    const auto windows = [&](bool ceil_mode) {
      return pooled_size(grid[i].hint(), a.kernel_size[i], a.stride[i], a.padding[i], 1, ceil_mode).raw();
    };
    const int64_t given = averages[i].hint();
    if (given < 1 || (given != windows(false) && given != windows(true)))
      fail_call(call, Category::bad_argument,
                fmt::format("there are not {} windows in {}", given, to_string(grid[i])));
  }
}

Tensor backward_of(RuleContext& c, int dims) {
  return emit<MaxPoolBackward>({c.grad().get(), c.out(1).get()}, {grid_of(c.type(0).shape, dims)}, c.where());
}

// The elements of x at given positions of its flattened grids.
Tensor elements_at(const Tensor& x, const Tensor& places, int dims, SourceLocation where) {
  const auto flat = [&](const Tensor& t) {
    const Shape& shape = t.impl().shape();
    Shape list = shape;
    list.resize(shape.rank() - dims);
    list.push_back(grid_of(shape, dims).numel());
    return reshape_to(Operand(t, where), list);
  };
  const Tensor found = gather(Operand(flat(x), where), -1, flat(places));
  return reshape_to(Operand(found, where), places.impl().shape());
}

}  // namespace

void infer_grid(const Call& call, TensorImpl* const* outputs, const Shape& grid,
                bool (*accepts)(ScalarType)) {
  const TensorImpl& x = *call.operands[0];
  if (!accepts || !accepts(x.dtype())) check_floating(call);
  if (grid.rank() < 1 || grid.rank() > 3 || x.rank() < grid.rank())
    fail_call(call, Category::bad_dim, fmt::format("a grid of {} dims", grid.rank()));
  for (Dim size : grid)
    if (size < 0) fail_call(call, Category::bad_argument, fmt::format("a grid of {}", to_string(grid)));
  const Shape shape = with_grid(x.shape(), grid.rank(), grid);
  check_extent(shape);
  outputs[0]->set_type(x.dtype(), x.device(), shape);
}

// ---- largest elements -------------------------------------------------------------------------------------

Dim pooled_size(Dim in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
  const Dim reach = Dim(dilation) * (Dim(kernel) - 1) + 1;
  const Dim room = in + Dim(2) * padding - reach + (ceil_mode ? stride - 1 : 0);
  if (room < 0) return 0;
  const Dim size = room / stride + 1;
  return ceil_mode && (size - 1) * stride >= in + padding ? size - 1 : size;
}

namespace {

void infer_max_pool(const Call& call, TensorImpl* const* outputs, const Shape& grid) {
  infer_grid(call, outputs, grid, is_number);
  check_not_empty(call, grid_of(call.operands[0]->shape(), grid.rank()));
  outputs[1]->set_type(kInt64, outputs[0]->device(), outputs[0]->shape());
}

}  // namespace

void MaxPool::infer(const Call& call, TensorImpl* const* outputs) {
  const Attrs& a = call.attrs_as<Attrs>();
  const int dims = a.kernel_size.size(), rank = call.operands[0]->rank();
  check_windows(call, a, dims);
  if (a.dilation.size() != dims || rank < dims)
    fail_call(call, Category::bad_argument, "the windows have another number of dims");
  Shape grid;
  for (int i = 0; i < dims; ++i) {
    if (a.dilation[i] < 1 || a.dilation[i] > INT32_MAX)
      fail_call(call, Category::bad_argument, "dilation must be positive and less than 2^31");
    const Dim in = call.operands[0]->shape()[rank - dims + i];
    grid.push_back(pooled_size(in, a.kernel_size[i], a.stride[i], a.padding[i], a.dilation[i], a.ceil_mode));
    if (grid.back() < 1)
      fail_call(call, Category::bad_argument, "kernel_size is larger than the padded operand");
  }
  infer_max_pool(call, outputs, grid);
}

void AdaptiveMaxPool::infer(const Call& call, TensorImpl* const* outputs) {
  infer_max_pool(call, outputs, call.attrs_as<Attrs>().size);
}

void MaxPool::vjp(RuleContext& c) {
  if (c.grad().defined()) c.give(0, backward_of(c, c.attrs<Attrs>().kernel_size.size()));
}

void AdaptiveMaxPool::vjp(RuleContext& c) {
  if (c.grad().defined()) c.give(0, backward_of(c, c.attrs<Attrs>().size.rank()));
}

void MaxPool::jvp(TangentContext& c) {
  c.give(0, elements_at(c.tangent(0), c.out(1), c.attrs<Attrs>().kernel_size.size(), c.where()));
}

void AdaptiveMaxPool::jvp(TangentContext& c) {
  c.give(0, elements_at(c.tangent(0), c.out(1), c.attrs<Attrs>().size.rank(), c.where()));
}

void MaxPoolBackward::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& places = *call.operands[1];
  if (places.dtype() != kInt64) fail_call(call, Category::dtype_mismatch, "the indices are not int64");
  if (!(places.shape() == call.operands[0]->shape()))
    fail_call(call, Category::shape_mismatch, "gradient and indices have different shapes");
  infer_grid(call, outputs, call.attrs_as<Attrs>().size);
}

void MaxPoolBackward::vjp(RuleContext& c) {
  c.give(0, elements_at(c.grad(), c.in(1).tensor(), c.attrs<Attrs>().size.rank(), c.where()));
}

void MaxPoolBackward::jvp(TangentContext& c) {
  c.give(0, emit<MaxPoolBackward>({c.tangent(0).get(), c.call().operands[1]}, c.attrs<Attrs>(), c.where()));
}

// ---- averages ---------------------------------------------------------------------------------------------

void AdaptiveAvgPool::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& size = call.attrs_as<Attrs>().size;
  infer_grid(call, outputs, size);
  check_not_empty(call, grid_of(call.operands[0]->shape(), size.rank()));
}

void AvgPool::infer(const Call& call, TensorImpl* const* outputs) {
  const Attrs& a = call.attrs_as<Attrs>();
  check_windows(call, a, a.size.rank());
  infer_grid(call, outputs, a.size, [](ScalarType dtype) { return dtype == kInt64; });
  const Shape grid = grid_of(call.operands[0]->shape(), a.size.rank());
  check_not_empty(call, grid);
  check_average(call, a, grid, a.size);
}

void AvgPoolBackward::infer(const Call& call, TensorImpl* const* outputs) {
  const Attrs& a = call.attrs_as<Attrs>();
  check_windows(call, a, a.size.rank());
  infer_grid(call, outputs, a.size);
  check_average(call, a, a.size, grid_of(call.operands[0]->shape(), a.size.rank()));
}

}  // namespace ops

}  // namespace retrograd
