// See ops/grid_sample.h.
#include "ops/grid_sample.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/grid_taps.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/resampling.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

// Checks the attributes and a grid with `picture`, (batch, channels, ...): an input, or a gradient.
void check_grid(const Call& call, const TensorImpl& picture, const TensorImpl& grid) {
  const GridSampleAttrs& a = call.attrs_as<GridSampleAttrs>();
  if (a.mode < 0 || a.mode > static_cast<int64_t>(GridMode::bicubic) || a.padding < 0 ||
      a.padding > static_cast<int64_t>(GridPadding::reflection))
    fail_call(call, Category::bad_argument, "there is no such mode or padding");
  check_floating(call);
  if (picture.dtype() != grid.dtype())
    fail_call(call, Category::dtype_mismatch, "input and grid have different dtypes");
  const int dims = picture.rank() - 2;
  if (dims < 2 || dims > 3 || grid.rank() != picture.rank())
    fail_call(call, Category::bad_dim, "input and grid of 4 dims are needed, or of 5");
  if (!(picture.shape()[0] == grid.shape()[0]) || !(grid.shape().back() == Dim(dims)))
    fail_call(call, Category::shape_mismatch,
              "the grid needs the batch of the input, and a last size of its dims");
  if (a.order.size() != dims ||
      std::ranges::any_of(a.order, [](int64_t n) { return n < 0 || n > INT32_MAX; }))
    fail_call(call, Category::bad_argument, "an order of derivatives is needed for each coordinate");
}

void check_picture(const Call& call, const Shape& sizes) {
  for (Dim size : sizes)
    if (size < 1) fail_call(call, Category::bad_argument, "the picture is empty");
}

Shape points_of(const Shape& grid) {
  return Shape(std::span(grid.begin() + 1, static_cast<size_t>(grid.rank() - 2)));
}

Shape with_channels(const TensorImpl& x, const Shape& sizes) {
  Shape shape{x.shape()[0], x.shape()[1]};
  for (Dim size : sizes) shape.push_back(size);
  return shape;
}

// A gradient of results at the points of a grid.
void check_gradient(const Call& call, const TensorImpl& g, const TensorImpl& grid) {
  check_grid(call, g, grid);
  if (!(grid_of(g.shape(), g.rank() - 2) == points_of(grid.shape())))
    fail_call(call, Category::shape_mismatch, "gradient and grid do not fit together");
}

Tensor sample(const Tensor& x, const Tensor& grid, const GridSampleAttrs& a, SourceLocation where) {
  return emit<GridSample>({x.get(), grid.get()}, a, where);
}
Tensor transposed(const Tensor& g, const Tensor& grid, const GridSampleAttrs& a, const Shape& picture,
                  SourceLocation where) {
  return emit<GridSampleTranspose>({g.get(), grid.get()}, {a, grid_of(picture, picture.rank() - 2)}, where);
}
Tensor slope(const Tensor& g, const Tensor& x, const Tensor& grid, const GridSampleAttrs& a,
             SourceLocation where) {
  return emit<GridSampleSlope>({g.get(), x.get(), grid.get()}, a, where);
}

// Coordinate d of a direction (batch, out..., dims), as (batch, 1, out...).
Tensor coordinate(const Tensor& v, int d, SourceLocation where) {
  return unsqueeze(select(Operand(v, where), -1, d), 1);
}

// The sum over coordinates d of f(v[d], attributes with order[d] + 1), for a direction v of the grid.
template <class F>
Tensor along(const Tensor& v, const GridSampleAttrs& a, SourceLocation where, const F& f) {
  const Widened wide(v);
  Tensor sum;
  for (int d = 0; d < a.order.size(); ++d) {
    GridSampleAttrs next = a;
    ++next.order[d];
    sum = plus(sum, wide(f(coordinate(v, d, where), next)));
  }
  return wide.back(sum);
}

Tensor sample_along(const Tensor& v, const Tensor& x, const Tensor& grid, const GridSampleAttrs& a,
                    SourceLocation where) {
  return along(v, a, where, [&](const Tensor& vd, const GridSampleAttrs& next) {
    return mul(vd, sample(x, grid, next, where));
  });
}
Tensor transposed_along(const Tensor& v, const Tensor& g, const Tensor& grid, const GridSampleAttrs& a,
                        const Shape& picture, SourceLocation where) {
  return along(v, a, where, [&](const Tensor& vd, const GridSampleAttrs& next) {
    return transposed(mul(vd, g), grid, next, picture, where);
  });
}
// Second derivatives by the grid are symmetric: the same for a gradient and a tangent.
Tensor slope_along(const Tensor& v, const Tensor& g, const Tensor& x, const Tensor& grid,
                   const GridSampleAttrs& a, SourceLocation where) {
  return along(v, a, where, [&](const Tensor& vd, const GridSampleAttrs& next) {
    return slope(mul(vd, g), x, grid, next, where);
  });
}

// By the first operand the grid is needed, by the grid both.
SaveSet saved(uint64_t wants) { return {(wants & 2) ? uint64_t{3} : uint64_t{2}, 0}; }

}  // namespace

SaveSet GridSample::saves_for(const Call&, uint64_t wants) { return saved(wants); }
SaveSet GridSampleTranspose::saves_for(const Call&, uint64_t wants) { return saved(wants); }

void GridSample::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &x = *call.operands[0], &grid = *call.operands[1];
  check_grid(call, x, grid);
  check_picture(call, grid_of(x.shape(), x.rank() - 2));
  set_like(x, with_channels(x, points_of(grid.shape())), *outputs[0]);
}

void GridSample::vjp(RuleContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Tensor &g = c.grad(), grid = c.in(1).tensor();
  if (c.needs(0)) c.give(0, transposed(g, grid, a, c.type(0).shape, c.where()));
  if (c.needs(1)) c.give(1, slope(g, c.in(0).tensor(), grid, a, c.where()));
}

void GridSample::jvp(TangentContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Tensor grid = c.in(1).tensor();
  Tensor t;
  if (c.needs(0)) t = sample(c.tangent(0), grid, a, c.where());
  if (c.needs(1)) t = plus(t, sample_along(c.tangent(1), c.in(0).tensor(), grid, a, c.where()));
  c.give(0, t);
}

void GridSampleTranspose::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &g = *call.operands[0], &grid = *call.operands[1];
  check_gradient(call, g, grid);
  const Shape& size = call.attrs_as<Attrs>().size;
  if (size.rank() != g.rank() - 2) fail_call(call, Category::bad_argument, "sizes of another number of dims");
  check_picture(call, size);
  const Shape shape = with_channels(g, size);
  check_sizes(call, shape);
  set_like(g, shape, *outputs[0]);
}

void GridSampleTranspose::vjp(RuleContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Tensor &v = c.grad(), grid = c.in(1).tensor();
  if (c.needs(0)) c.give(0, sample(v, grid, a, c.where()));
  if (c.needs(1)) c.give(1, slope(c.in(0).tensor(), v, grid, a, c.where()));
}

void GridSampleTranspose::jvp(TangentContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Tensor grid = c.in(1).tensor();
  const Shape picture = c.out_type().shape;
  Tensor t;
  if (c.needs(0)) t = transposed(c.tangent(0), grid, a, picture, c.where());
  if (c.needs(1)) t = plus(t, transposed_along(c.tangent(1), c.in(0).tensor(), grid, a, picture, c.where()));
  c.give(0, t);
}

void GridSampleSlope::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &g = *call.operands[0], &x = *call.operands[1], &grid = *call.operands[2];
  check_gradient(call, g, grid);
  check_grid(call, x, grid);
  check_picture(call, grid_of(x.shape(), x.rank() - 2));
  if (!(g.shape()[1] == x.shape()[1]))
    fail_call(call, Category::shape_mismatch, "numbers of channels differ");
  set_like(grid, grid.shape(), *outputs[0]);
}

void GridSampleSlope::vjp(RuleContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Tensor &v = c.grad(), g = c.in(0).tensor(), x = c.in(1).tensor(), grid = c.in(2).tensor();
  if (c.needs(0)) c.give(0, sample_along(v, x, grid, a, c.where()));
  if (c.needs(1)) c.give(1, transposed_along(v, g, grid, a, c.type(1).shape, c.where()));
  if (c.needs(2)) c.give(2, slope_along(v, g, x, grid, a, c.where()));
}

void GridSampleSlope::jvp(TangentContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Tensor g = c.in(0).tensor(), x = c.in(1).tensor(), grid = c.in(2).tensor();
  Tensor t;
  if (c.needs(0)) t = slope(c.tangent(0), x, grid, a, c.where());
  if (c.needs(1)) t = plus(t, slope(g, c.tangent(1), grid, a, c.where()));
  if (c.needs(2)) t = plus(t, slope_along(c.tangent(2), g, x, grid, a, c.where()));
  c.give(0, t);
}

}  // namespace ops

namespace {

int64_t named(std::string_view given, std::initializer_list<std::string_view> names, std::string_view what,
              SourceLocation where) {
  int64_t number = 0;
  for (std::string_view name : names) {
    if (name == given) return number;
    ++number;
  }
  fail(Category::bad_argument, "grid_sample", fmt::format("there is no {} \"{}\"", what, given), where);
}

}  // namespace

Tensor grid_sample(Operand input, const Tensor& given_grid, std::string_view mode,
                   std::string_view padding_mode, std::optional<bool> align_corners) {
  const NamedCall call("grid_sample", input.where());
  ops::GridSampleAttrs attrs{
      named(mode, {"bilinear", "nearest", "bicubic"}, "mode", input.where()),
      named(padding_mode, {"zeros", "border", "reflection"}, "padding_mode", input.where()),
      align_corners.value_or(false)};
  for (int d = 2; d < std::min(shape_of(input).rank(), 5); ++d) attrs.order.push_back(0);
  return ops::emit<ops::GridSample>({input.tensor().get(), given_grid.get()}, attrs, input.where());
}

namespace {

// The coordinates of n elements along a dim, as one dim of a grid of `dims` dims.
Tensor coordinates(Dim n, int d, int dims, bool align_corners, Device device, SourceLocation where) {
  const int64_t size = n.value();
  const double reach = size == 1       ? 0
                       : align_corners ? 1
                                       : static_cast<double>(size - 1) / static_cast<double>(size);
  Shape shape;
  for (int i = 0; i < dims; ++i) shape.push_back(i == d ? Dim(size) : Dim(1));
  return reshape_to(Operand(linspace(-reach, reach, size, {kFloat64, device}, where), where), shape);
}

void check_affine(Operand theta, const Shape& size) {
  const auto refuse = [&](Category category, std::string_view text) {
    fail(category, "affine_grid", text, theta.where());
  };
  if (!is_floating(theta.tensor().dtype()))
    refuse(Category::dtype_mismatch, fmt::format("theta {} is not floating", describe(theta.tensor())));
  const int dims = size.rank() - 2;
  if (dims < 2 || dims > 3)
    refuse(Category::bad_dim, fmt::format("4 or 5 sizes are needed, not {}", size.rank()));
  for (Dim n : size)
    if (n < 1) refuse(Category::bad_argument, fmt::format("a size of {}", to_string(size)));
  if (!(shape_of(theta) == Shape{size[0], dims, dims + 1}))
    refuse(Category::shape_mismatch,
           fmt::format("theta {} does not fit the size {}", describe(theta.tensor()), to_string(size)));
}

}  // namespace

Tensor affine_grid(Operand theta, const Shape& size, std::optional<bool> align_corners) {
  const NamedCall call("affine_grid", theta.where());
  check_affine(theta, size);
  const int dims = size.rank() - 2;
  const SourceLocation where = theta.where();
  const ops::Widened wide(theta.tensor());
  const Tensor map = wide(theta.tensor());
  Shape points = ops::grid_of(size, dims);
  Tensors base;
  for (int d = dims - 1; d >= 0; --d) {
    const Tensor along =
        coordinates(size[d + 2], d, dims, align_corners.value_or(false), map.device(), where);
    base.push_back(expand_to(Operand(along, where), points));
  }
  base.push_back(ones_of({kFloat64, map.device(), points}, where));
  const Tensor rows = reshape_to(to(stack(base, -1, where), map.dtype()), {points.numel(), dims + 1});
  Shape shape{size[0]};
  for (Dim n : points) shape.push_back(n);
  shape.push_back(dims);
  return wide.back(reshape_to(matmul(rows, transpose(map, 1, 2)), shape));
}

}  // namespace retrograd
