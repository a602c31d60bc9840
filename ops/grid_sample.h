// grid_sample: values of a picture at given coordinates, which affine_grid makes; as a family of three ops.
//
// With x (batch, channels, in...), coordinates (batch, out..., 2 or 3), g (batch, channels, out...) and W the weight of
// an element at a coordinate (ops/grid_taps.h), the form
//   F(x, grid, g) = sum over n, c, o, t of g[n, c, o] W(grid[n, o], t) x[n, c, t]
// is linear in x and g. Its derivative
//   by g is grid_sample(x, grid), by x is grid_sample_transpose(g, grid), by grid is grid_sample_slope(g, x, grid).
// `order` says how many derivatives of W by each coordinate are taken. So the derivatives of any order are made of the
// three ops with other orders: those by the grid in direction v are sums over the coordinates d of F with order[d] + 1
// and g times v[d].
#pragma once

#include <optional>

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct GridSampleAttrs {
  int64_t mode = 0, padding = 0;  // GridMode, GridPadding
  bool align_corners = false;
  IntList order = {};  // an entry for each coordinate: width, height, depth
  void visit(AttrVisitor& v) {
    v.field("mode", mode);
    v.field("padding_mode", padding);
    v.field("align_corners", align_corners);
    v.field("order", order);
  }
};

/// (x, grid) -> (batch, channels, out...).
struct GridSample {
  using Attrs = GridSampleAttrs;
  static constexpr std::string_view name = "grid_sample", doc = "a picture at given coordinates";
  static constexpr auto cast_policy = CastPolicy::promote;
  static constexpr std::string_view operands = "input, grid";
  static constexpr std::string_view example =
      "f32[2,3,4,5], f32[2,6,7,2] {mode=0, padding_mode=0, align_corners=false, order=[0,0]} : f32[2,3,6,7]";
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_folded;
};

/// (g, grid) -> (batch, channels, size...).
struct GridSampleTranspose {
  struct Attrs : GridSampleAttrs {
    Shape size = {};  // of the pictures
    void visit(AttrVisitor& v) {
      GridSampleAttrs::visit(v);
      v.field("size", size);
    }
  };
  static constexpr std::string_view name = "grid_sample_transpose",
                                    doc = "the transpose of grid_sample by its input";
  static constexpr std::string_view operands = "g, grid";
  static constexpr std::string_view example =
      "f32[2,3,6,7], f32[2,6,7,2] {mode=0, padding_mode=0, align_corners=false, order=[0,0], size=[4,5]} : "
      "f32[2,3,4,5]";
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_folded;
};

/// (g, x, grid) -> the grid's shape.
struct GridSampleSlope {
  using Attrs = GridSampleAttrs;
  static constexpr std::string_view name = "grid_sample_slope",
                                    doc = "the gradient of grid_sample by its grid";
  static constexpr std::string_view operands = "g, input, grid";
  static constexpr std::string_view example =
      "f32[2,3,6,7], f32[2,3,4,5], f32[2,6,7,2] {mode=0, padding_mode=0, align_corners=false, order=[0,0]} : "
      "f32[2,6,7,2]";
  static constexpr int8_t arity = 3;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr auto saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_folded;
};

using GridSampleOps = OpList<GridSample, GridSampleTranspose, GridSampleSlope>;

}  // namespace ops

/// Input (N, C, H, W) with grid (N, h, w, 2) -> (N, C, h, w), or (N, C, D, H, W) with (N, d, h, w, 3). A coordinate is
/// (x, y) or (x, y, z) in [-1, 1], x along the last dim. mode: "bilinear", "nearest", "bicubic"; padding_mode: "zeros",
/// "border", "reflection"; align_corners: whether -1 and 1 are the centres of the outermost elements (default: their
/// edges). Floating, one dtype. The gradient of the grid is 0 with mode nearest. Errors: bad_dim, shape_mismatch,
/// dtype_mismatch, bad_argument (names, an empty picture).
Tensor grid_sample(Operand input, const Tensor& grid, std::string_view mode = "bilinear",
                   std::string_view padding_mode = "zeros", std::optional<bool> align_corners = {});

/// The grid of an affine map: theta (N, 2, 3) and size (N, C, H, W) give (N, H, W, 2); theta (N, 3, 4) and (N, C, D, H,
/// W) give (N, D, H, W, 3). Errors: bad_dim, shape_mismatch, dtype_mismatch, bad_argument (sizes below 1).
Tensor affine_grid(Operand theta, const Shape& size, std::optional<bool> align_corners = {});

}  // namespace retrograd
#pragma GCC visibility pop
