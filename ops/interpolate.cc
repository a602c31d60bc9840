// See ops/interpolate.h.
#include "ops/interpolate.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/pooling.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

bool is_byte(ScalarType dtype) { return dtype == kUInt8; }

bool is_nearest(const InterpolateAttrs& a) {
  return a.mode <= static_cast<int64_t>(InterpolateMode::nearest_exact);
}

// Checks the mode and the options that it allows, like the public function.
void check_mode(const Call& call, const InterpolateAttrs& a) {
  if (a.mode < 0 || a.mode > static_cast<int64_t>(InterpolateMode::lanczos))
    fail_call(call, Category::bad_argument, fmt::format("there is no mode {}", a.mode));
  for (Dim size : a.size)
    if (size < 1) fail_call(call, Category::bad_argument, "sizes must be positive");
  const auto mode = static_cast<InterpolateMode>(a.mode);
  const bool is_lanczos = mode == InterpolateMode::lanczos, is_plane = a.size.rank() == 2;
  if ((a.align_corners && (is_nearest(a) || is_lanczos)) || (a.antialias && (is_nearest(a) || !is_plane)) ||
      (is_lanczos && !a.antialias) || (mode >= InterpolateMode::cubic && !is_plane))
    fail_call(call, Category::bad_argument, "its mode, options and number of dims do not go together");
}

// A given scale must map the one size to the other, rounded down. Symbols count as their values at capture.
void check_scales(const Call& call, const InterpolateAttrs& a, const Shape& from, const Shape& to) {
  for (int i = 0; i < from.rank(); ++i) {
    const double scale = a.scale_factor[3 - from.rank() + i].number().as_double();
    if (from[i].hint() < 1 || to[i].hint() < 1)
      fail_call(call, Category::bad_argument, "a dim of the grid is empty");
    if (scale != 0 && truncated(static_cast<double>(from[i].hint()) * scale) != to[i].hint())
      fail_call(call, Category::bad_argument,
                fmt::format("{} elements times {} are not {}", to_string(from[i]), scale, to_string(to[i])));
  }
}

}  // namespace

void Interpolate::infer(const Call& call, TensorImpl* const* outputs) {
  const Attrs& a = call.attrs_as<Attrs>();
  check_mode(call, a);
  infer_grid(call, outputs, a.size, is_nearest(a) ? is_byte : nullptr);
  check_scales(call, a, grid_of(call.operands[0]->shape(), a.size.rank()), a.size);
}

void InterpolateBackward::infer(const Call& call, TensorImpl* const* outputs) {
  const Attrs& a = call.attrs_as<Attrs>();
  check_mode(call, a);
  infer_grid(call, outputs, a.size);
  check_scales(call, a, a.size, grid_of(call.operands[0]->shape(), a.size.rank()));
}

}  // namespace ops

namespace {

using ops::InterpolateMode;

[[noreturn]] void refuse(Operand x, std::string_view text, Category category = Category::bad_argument) {
  fail(category, "interpolate", text, x.where());
}

struct ModeName {
  std::string_view name;
  std::optional<InterpolateMode> mode;  // none: area
  int dims;                             // 0: any
};
constexpr ModeName kModes[] = {
    {"nearest", InterpolateMode::nearest, 0},
    {"nearest-exact", InterpolateMode::nearest_exact, 0},
    {"area", {}, 0},
    {"linear", InterpolateMode::linear, 1},
    {"bilinear", InterpolateMode::linear, 2},
    {"trilinear", InterpolateMode::linear, 3},
    {"bicubic", InterpolateMode::cubic, 2},
    {"lanczos", InterpolateMode::lanczos, 2},
};

// The mode's row, if the options fit it and a grid of `dims` dims.
const ModeName& check_mode(Operand x, const InterpolateOptions& o, int dims) {
  const ModeName* found = nullptr;
  for (const ModeName& mode : kModes)
    if (mode.name == o.mode) found = &mode;
  if (!found) refuse(x, fmt::format("there is no mode \"{}\"", o.mode));
  if (dims < 1 || dims > 3)
    refuse(x, fmt::format("3 to 5 dims are needed, not {}", describe(x.tensor())), Category::bad_dim);
  if (found->dims && found->dims != dims)
    refuse(x, fmt::format("mode {} is for {} dims, given {}", o.mode, found->dims + 2, describe(x.tensor())),
           Category::bad_dim);
  if (o.align_corners && (found->dims == 0 || (*o.align_corners && o.mode == "lanczos")))
    refuse(x, fmt::format("mode {} has no align_corners", o.mode));
  if (o.antialias && found->dims != 2) refuse(x, fmt::format("mode {} has no antialias", o.mode));
  if (!o.antialias && o.mode == "lanczos") refuse(x, "mode lanczos needs antialias");
  return *found;
}

struct GridSizes {
  Shape grid;
  std::vector<double> factors;  // empty: from the sizes
};

GridSizes sizes_of(Operand x, const InterpolateOptions& o, int dims) {
  if (o.size.given() == o.scale_factor.given()) refuse(x, "exactly one of size and scale_factor is needed");
  if (o.size.given()) {
    const std::vector<int64_t> size = o.size.of(dims);
    if (size.empty()) refuse(x, fmt::format("{} sizes for {} dims", o.size.values.size(), dims));
    if (o.recompute_scale_factor) refuse(x, "recompute_scale_factor needs a scale_factor, not a size");
    return {Shape(size), {}};
  }
  GridSizes sizes;
  sizes.factors = o.scale_factor.of(dims);
  if (sizes.factors.empty())
    refuse(x, fmt::format("{} scale factors for {} dims", o.scale_factor.values.size(), dims));
  for (int i = 0; i < dims; ++i) {
    const int64_t in = x.tensor().impl().shape()[i + 2].value();
    const double size = static_cast<double>(in) * sizes.factors[static_cast<size_t>(i)];
    if (!(size >= 0 && size < 9e18)) refuse(x, fmt::format("{} elements times {}", in, sizes.factors[i]));
    sizes.grid.push_back(static_cast<int64_t>(size));
  }
  if (o.recompute_scale_factor) sizes.factors.clear();
  return sizes;
}

Tensor area(Operand x, const Shape& grid) {
  const IntArray sizes = grid.ints();
  const AdaptiveSize size(std::vector<std::optional<int64_t>>(sizes.begin(), sizes.end()));
  switch (grid.rank()) {
    case 1: return adaptive_avg_pool1d(x, size);
    case 2: return adaptive_avg_pool2d(x, size);
    default: return adaptive_avg_pool3d(x, size);
  }
}

}  // namespace

Tensor interpolate(Operand x, const InterpolateOptions& o) {
  const NamedCall call("interpolate", x.where());
  const Shape& shape = x.tensor().impl().shape();
  const int dims = shape.rank() - 2;
  const ModeName& mode = check_mode(x, o, dims);
  const GridSizes sizes = sizes_of(x, o, dims);
  if (!mode.mode) return area(x, sizes.grid);
  for (int i = 1; i < shape.rank(); ++i)
    if (shape[i] == 0) refuse(x, fmt::format("dim {} of {} is empty", i, describe(x.tensor())));
  ops::InterpolateAttrs attrs{sizes.grid, static_cast<int64_t>(*mode.mode), o.align_corners.value_or(false),
                              o.antialias};
  for (size_t i = 0; i < sizes.factors.size(); ++i)
    attrs.scale_factor[3 - sizes.factors.size() + i] = sizes.factors[i];
  return ops::emit<ops::Interpolate>({x.tensor().get()}, attrs, x.where());
}

}  // namespace retrograd
