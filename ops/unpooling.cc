// See ops/unpooling.h.
#include "ops/unpooling.h"

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/index_ops.h"
#include "ops/pooling_parts.h"
#include "ops/random_ops.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace {

using ops::check_pooled;
using ops::per_dim;
using ops::refuse_pool;
using ops::with_grid;

Dim grid_numel(const Shape& grid) {
  Dim n = 1;
  for (const Dim size : grid) n *= size;
  return n;
}

// x with its grid as one dim.
Tensor with_flat_grid(const Tensor& x, int dims) {
  const Shape& shape = x.impl().shape();
  return reshape_to(x, with_grid(shape, dims, {grid_numel(ops::grid_of(shape, dims))}));
}

// The sizes of an unpooled grid.
Shape unpooled_grid(std::string_view op, int dims, Operand x, const IntList& kernel_size,
                    const IntList& stride, const IntList& padding, const IntList& output_size) {
  const IntList kernel = per_dim(op, "kernel_size", kernel_size, dims, x);
  const IntList step = per_dim(op, "stride", stride.empty() ? kernel_size : stride, dims, x);
  const IntList border = per_dim(op, "padding", padding, dims, x);
  const int rank = shape_of(x).rank(), given = output_size.size();
  if (given != 0 && given != dims && given != rank)
    refuse_pool(op, fmt::format("output_size has {} entries for {} dims", given, dims), x);
  Shape grid = ops::grid_of(shape_of(x), dims);
  for (int d = 0; d < dims; ++d) {
    if (kernel[d] < 1 || step[d] < 1 || border[d] < 0)
      refuse_pool(op, "kernel_size and stride must be positive, and padding not negative", x);
    grid[d] = (grid[d] - 1) * Dim(step[d]) - Dim(2) * Dim(border[d]) + Dim(kernel[d]);
    if (given != 0) {
      const Dim wanted = output_size[given - dims + d];
      if (!(wanted > grid[d] - Dim(step[d])) || !(wanted < grid[d] + Dim(step[d])))
        refuse_pool(op,
                    fmt::format("a size of {} is not less than a stride of {} away from {}",
                                to_string(wanted), step[d], to_string(grid[d])),
                    x);
      grid[d] = wanted;
    }
    if (grid[d] < 1) refuse_pool(op, fmt::format("a result of size {}", to_string(grid[d])), x);
  }
  return grid;
}

Tensor max_unpool(std::string_view op, int dims, Operand x, const Tensor& indices, const IntList& kernel_size,
                  const IntList& stride, const IntList& padding, const IntList& output_size) {
  const NamedCall call(op, x.where());
  check_pooled(op, x, dims, 0);
  if (!(indices.impl(op, x.where()).shape() == shape_of(x)))
    fail(Category::shape_mismatch, op,
         fmt::format("{} and its indices {} have different shapes", describe(x.tensor()), describe(indices)),
         x.where());
  const Shape grid = unpooled_grid(op, dims, x, kernel_size, stride, padding, output_size);
  TensorType type = x.tensor().impl().type();
  const Shape shape = with_grid(type.shape, dims, grid);
  type.shape = with_grid(type.shape, dims, {grid_numel(grid)});
  const Tensor none = zeros_of(type, x.where());
  return reshape_to(scatter(none, -1, with_flat_grid(indices, dims), with_flat_grid(x.tensor(), dims)),
                    shape);
}

// ---- fractional pools ----

// The sizes of the result, checked.
IntList fractional_sizes(std::string_view op, int dims, Operand x, const IntList& kernel,
                         const FractionalSize& size) {
  if (size.output_size.empty() == !size.output_ratio.given())
    refuse_pool(op, "either output_size or output_ratio is needed", x);
  IntList sizes;
  if (size.output_ratio.given()) {
    const std::vector<double> ratios = size.output_ratio.of(dims);
    if (ratios.empty()) refuse_pool(op, fmt::format("output_ratio needs 1 or {} entries", dims), x);
    for (int d = 0; d < dims; ++d) {
      const double ratio = ratios[static_cast<size_t>(d)];
      if (!(ratio > 0 && ratio < 1))
        refuse_pool(op, fmt::format("a ratio of {} is outside (0, 1)", ratio), x);
      const int64_t in = ops::grid_of(shape_of(x), dims)[d].value();
      sizes.push_back(static_cast<int64_t>(static_cast<double>(in) * ratio));
    }
  } else {
    sizes = per_dim(op, "output_size", size.output_size, dims, x);
  }
  for (int d = 0; d < dims; ++d) {
    const Dim in = ops::grid_of(shape_of(x), dims)[d];
    if (kernel[d] < 1 || sizes[d] < 1 || !(Dim(sizes[d]) + Dim(kernel[d]) - 1 <= in))
      refuse_pool(op, fmt::format("{} windows of {} do not fit into {}", sizes[d], kernel[d], to_string(in)),
                  x);
  }
  return sizes;
}

// Where windows begin along a dim of `in` elements: (N, C) samples -> (N, C, count) int64.
//   floor((i + u) alpha) - floor(u alpha), alpha = (in - kernel) / (count - 1), and in - kernel for the last.
Tensor window_starts(const Tensor& samples, Dim in, int64_t count, int64_t kernel) {
  const Tensor u = unsqueeze(samples, -1);
  const Tensor i = arange(count, TensorOptions{samples.dtype(), samples.device()});
  const Tensor room = full({}, Scalar(in - Dim(kernel)), {samples.dtype(), samples.device()});
  const Tensor alpha = div(room, std::max<int64_t>(count - 1, 1));
  const Tensor starts = sub(floor(mul(add(i, u), alpha)), floor(mul(u, alpha)));
  return to(where(eq(i, count - 1), room, starts), kInt64);
}

// The flat positions of the elements of all windows: (N, C, windows..., kernel...) int64.
Tensor window_positions(const Tensor& samples, const Shape& grid, const IntList& sizes,
                        const IntList& kernel) {
  const int dims = grid.rank();
  const Shape& shape = samples.impl().shape();
  Tensor positions;
  for (int d = 0; d < dims; ++d) {
    // The samples of two dims are in the order (W, H), as PyTorch's.
    const Tensor starts =
        window_starts(select(samples, -1, dims == 2 ? 1 - d : d), grid[d], sizes[d], kernel[d]);
    const Tensor along =
        add(unsqueeze(starts, -1), arange(kernel[d], TensorOptions{kInt64, starts.device()}));
    Shape spread{shape[0], shape[1]};
    for (int e = 0; e < dims; ++e) spread.push_back(e == d ? sizes[d] : 1);
    for (int e = 0; e < dims; ++e) spread.push_back(e == d ? kernel[d] : 1);
    const Tensor one = reshape_to(along, spread);
    positions = d == 0 ? one : add(mul(positions, Operand(grid[d])), one);
  }
  return positions;
}

MaxPoolResult fractional_max_pool(std::string_view op, int dims, Operand x, const IntList& kernel_size,
                                  const FractionalSize& size, const Tensor& random_samples) {
  check_pooled(op, x, dims, 0);
  const IntList kernel = per_dim(op, "kernel_size", kernel_size, dims, x);
  const IntList sizes = fractional_sizes(op, dims, x, kernel, size);
  const bool batched = shape_of(x).rank() == dims + 2;
  const Tensor input = batched ? x.tensor() : unsqueeze(x, 0);
  const Shape &shape = input.impl().shape(), wanted{shape[0], shape[1], dims};
  if (random_samples.defined() && !(random_samples.impl().shape() == wanted))
    fail(Category::shape_mismatch, op,
         fmt::format("random_samples have shape {}, not {}", to_string(random_samples.impl().shape()),
                     to_string(wanted)),
         x.where());
  const ScalarType dtype = ops::wide_dtype(input.dtype());
  const Tensor samples = random_samples.defined()
                             ? to(detach(random_samples), dtype)
                             : rand(wanted, TensorOptions{dtype, input.device()}, x.where());
  const Tensor positions = window_positions(samples, ops::grid_of(shape, dims), sizes, kernel);

  const int64_t elements = grid_numel(Shape(IntArray(kernel.begin(), kernel.end()))).value();
  const Shape counts = Shape(IntArray(sizes.begin(), sizes.end()));
  const Dim windows = grid_numel(counts);
  const Tensor flat_input = with_flat_grid(input, dims);
  const Tensor by_window = reshape_to(positions, {shape[0], shape[1], windows, elements});
  const Tensor taken =
      gather(detach(flat_input), -1, reshape_to(by_window, {shape[0], shape[1], windows * elements}));
  const Tensor largest = argmax(reshape_to(taken, by_window.impl().shape()), -1, true);
  const Tensor indices = squeeze(gather(by_window, -1, largest), {-1});
  const Shape result = with_grid(shape_of(x), dims, counts);
  return {reshape_to(gather(flat_input, -1, indices), result), reshape_to(indices, result)};
}

}  // namespace

Tensor max_unpool1d(Operand x, const Tensor& indices, const IntList& kernel_size, const IntList& stride,
                    const IntList& padding, const IntList& output_size) {
  return max_unpool("max_unpool1d", 1, x, indices, kernel_size, stride, padding, output_size);
}
Tensor max_unpool2d(Operand x, const Tensor& indices, const IntList& kernel_size, const IntList& stride,
                    const IntList& padding, const IntList& output_size) {
  return max_unpool("max_unpool2d", 2, x, indices, kernel_size, stride, padding, output_size);
}
Tensor max_unpool3d(Operand x, const Tensor& indices, const IntList& kernel_size, const IntList& stride,
                    const IntList& padding, const IntList& output_size) {
  return max_unpool("max_unpool3d", 3, x, indices, kernel_size, stride, padding, output_size);
}

MaxPoolResult fractional_max_pool2d_with_indices(Operand x, const IntList& kernel_size,
                                                 const FractionalSize& size, const Tensor& random_samples) {
  const NamedCall call("fractional_max_pool2d_with_indices", x.where());
  return fractional_max_pool("fractional_max_pool2d", 2, x, kernel_size, size, random_samples);
}
MaxPoolResult fractional_max_pool3d_with_indices(Operand x, const IntList& kernel_size,
                                                 const FractionalSize& size, const Tensor& random_samples) {
  const NamedCall call("fractional_max_pool3d_with_indices", x.where());
  return fractional_max_pool("fractional_max_pool3d", 3, x, kernel_size, size, random_samples);
}
Tensor fractional_max_pool2d(Operand x, const IntList& kernel_size, const FractionalSize& size,
                             const Tensor& random_samples) {
  const NamedCall call("fractional_max_pool2d", x.where());
  return fractional_max_pool2d_with_indices(x, kernel_size, size, random_samples).values;
}
Tensor fractional_max_pool3d(Operand x, const IntList& kernel_size, const FractionalSize& size,
                             const Tensor& random_samples) {
  const NamedCall call("fractional_max_pool3d", x.where());
  return fractional_max_pool3d_with_indices(x, kernel_size, size, random_samples).values;
}

}  // namespace retrograd
