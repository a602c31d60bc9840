// Interpolation: resamples the last one, two or three dims (the grid) to another size.
//
// Result i along a dim is at position x = (i + 0.5) * scale - 0.5 of the operand, with scale = size in / size out; or
// at i * scale with align_corners, where scale = (size in - 1) / (size out - 1) and the corner elements coincide. When
// scale_factor is given and not recomputed, the scale is its reciprocal, which differs if the size out was rounded. The
// modes:
//   nearest          element floor(i * scale)
//   nearest-exact    element floor((i + 0.5) * scale)
//   linear, bilinear, trilinear: between the two neighbours; positions below 0 count as 0
//   bicubic          cubic convolution of four neighbours, a = -0.75, the border repeated
//   area             adaptive_avg_pool
// With antialias (bilinear, bicubic with a = -0.5, and lanczos, which needs it) the kernel of the mode is as wide as a
// step of the result and its weights add up to 1. All formulas are PyTorch's, computed in float32 except for a float64
// operand in a mode other than nearest. (Where rounding decides which element is nearest, this follows PyTorch's
// gradients and 2-d results: PyTorch's results in one and three dims do not always agree with its gradients.)
//
// One linear op and its transpose serve all modes; each axis is resampled separately.
// Limits: of the integer dtypes only uint8, in the nearest modes (PyTorch also has bilinear and bicubic).
#pragma once

#include "ops/resampling.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

enum class InterpolateMode : int64_t { nearest, nearest_exact, linear, cubic, lanczos };

struct InterpolateAttrs {
  Shape size;        // of the result
  int64_t mode = 0;  // InterpolateMode
  bool align_corners = false, antialias = false;
  Scalar scale_factor[3] = {0.0, 0.0, 0.0};  // of the last dims, in order; 0: from the sizes
  void visit(AttrVisitor& v) {
    v.field("size", size);
    v.field("mode", mode);
    v.field("align_corners", align_corners);
    v.field("antialias", antialias);
    v.field("scale_d", scale_factor[0]);
    v.field("scale_h", scale_factor[1]);
    v.field("scale_w", scale_factor[2]);
  }
};

struct InterpolateBackward;
struct Interpolate : Resampling<Interpolate, InterpolateAttrs> {
  using Transpose = InterpolateBackward;
  static constexpr std::string_view name = "interpolate", doc = "a grid resampled to another size";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example =
      "f32[2,3,7] {size=[5], mode=0, align_corners=false, antialias=false, scale_d=0.0, scale_h=0.0, "
      "scale_w=0.0} : f32[2,3,5]";
  static void infer(const Call& call, TensorImpl* const* outputs);
};
struct InterpolateBackward : Resampling<InterpolateBackward, InterpolateAttrs> {
  using Transpose = Interpolate;
  static constexpr std::string_view name = "interpolate_backward", doc = "transpose of interpolate";
  static constexpr std::string_view operands = "g";
  static constexpr std::string_view example =
      "f32[2,3,5] {size=[7], mode=0, align_corners=false, antialias=false, scale_d=0.0, scale_h=0.0, "
      "scale_w=0.0} : f32[2,3,7]";
  static void infer(const Call& call, TensorImpl* const* outputs);
};

using InterpolateOps = OpList<Interpolate, InterpolateBackward>;

}  // namespace ops

struct InterpolateOptions {
  PerDim<int64_t> size = {};         // either this
  PerDim<double> scale_factor = {};  // or this: size in * factor, rounded down
  std::string mode = "nearest";
  std::optional<bool> align_corners = {};  // linear modes and bicubic only; default false
  bool recompute_scale_factor = false;     // take the scale from the sizes
  bool antialias = false;
};

/// (N, C, W), (N, C, H, W) or (N, C, D, H, W) with the dims after C resampled: interpolate(x, {.scale_factor = 2, .mode
/// = "bilinear"}). Errors: bad_dim for another number of dims, or one that the mode does not support; bad_argument for
/// options that do not fit together, sizes that are not positive, an empty dim after N; dtype_mismatch for integers.
Tensor interpolate(Operand input, const InterpolateOptions& options);

}  // namespace retrograd
#pragma GCC visibility pop
