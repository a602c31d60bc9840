// Convolutions over one to three spatial dims, as a family of three ops that are each other's derivatives.
//
// With o a position on the small side, t a position in the kernel and i = o * stride + t * dilation - padding a
// position on the large side, the form
//   F(x, w, g) = sum over n, k, c, o, t of g[n, k, o] w[k, c, t] x[n, c, i]
// is linear in each of x (batch, channels, large...), w (features, channels / groups, kernel...) and g (batch,
// features, small...). Its derivative
//   by g is convolution(x, w), by x is convolution_transpose(g, w), by w is convolution_weight(x, g),
// so that every derivative of any order is made of the three. Elements outside of x count as 0.
//
// The attribute `size` of each op has the spatial sizes of its result: a large side cannot be derived from a small one
// when the stride skips positions, and a padding that differs at the two ends needs no number of its own. The public
// functions compute `size`; they are PyTorch's.
#pragma once

#include <string_view>

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// Lists have an entry per spatial dim: stride and dilation at least 1, padding (in front) at least 0, all less
/// than 2^31.
struct ConvolutionAttrs {
  IntList stride, padding, dilation;
  int64_t groups = 1;
  Shape size;  // of the result
  void visit(AttrVisitor& v) {
    v.field("stride", stride);
    v.field("padding", padding);
    v.field("dilation", dilation);
    v.field("groups", groups);
    v.field("size", size);
  }
};

/// Operands (input, weight, bias of a value per result channel, or none).
struct BiasedConvolution {
  using Attrs = ConvolutionAttrs;
  static constexpr int8_t arity = 3;
  static constexpr uint8_t optional = 4;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static SaveSet saves_for(const Call& call, uint64_t wants);
};

/// x (n, c, large...), w (k, c / groups, kernel...) -> (n, k, size...).
struct Convolution : BiasedConvolution {
  static constexpr std::string_view name = "convolution", doc = "sums of input windows times weight, + bias";
  static constexpr auto cast_policy = CastPolicy::lower_precision;
  static constexpr std::string_view operands = "input, weight, bias";
  static constexpr std::string_view example =
      "f32[2,3,7], f32[4,3,5], f32[4] {stride=[1], padding=[0], dilation=[1], groups=1, size=[3]} : "
      "f32[2,4,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// g (n, k, small...), w (k, c / groups, kernel...) -> (n, c, size...).
struct ConvolutionTranspose : BiasedConvolution {
  static constexpr std::string_view name = "convolution_transpose",
                                    doc = "the transpose of convolution by its input, + bias";
  static constexpr auto cast_policy = CastPolicy::lower_precision;
  static constexpr std::string_view operands = "g, weight, bias";
  static constexpr std::string_view example =
      "f32[2,4,3], f32[4,3,5], f32[3] {stride=[1], padding=[0], dilation=[1], groups=1, size=[7]} : "
      "f32[2,3,7]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// x (n, c, large...), g (n, k, small...) -> (k, c / groups, size...).
struct ConvolutionWeight {
  using Attrs = ConvolutionAttrs;
  static constexpr std::string_view name = "convolution_weight",
                                    doc = "the transpose of convolution by its weight";
  static constexpr std::string_view operands = "input, g";
  static constexpr std::string_view example =
      "f32[2,3,7], f32[2,4,3] {stride=[1], padding=[0], dilation=[1], groups=1, size=[5]} : f32[4,3,5]";
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr auto saves = Saves::other;
  static constexpr bool bilinear = true;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int i, const Tensor& g);
  static void batch(BatchContext& c);
};

using ConvolutionOps = OpList<Convolution, ConvolutionTranspose, ConvolutionWeight>;

}  // namespace ops

/// Zeros around an input: this many at both ends of each spatial dim; or by name: "valid" for none, "same" for as many
/// as keep the size (an odd one is added at the end), which needs stride 1. Error(bad_argument) for another name.
struct ConvPadding {
  ConvPadding(int all) : sizes(all) {}
  ConvPadding(int64_t all) : sizes(all) {}
  ConvPadding(const IntList& sizes) : sizes(sizes) {}
  ConvPadding(std::initializer_list<int64_t> sizes) : sizes(sizes) {}
  ConvPadding(std::string_view name, SourceLocation where = SourceLocation::current());
  ConvPadding(const char* name, SourceLocation where = SourceLocation::current())
      : ConvPadding(std::string_view(name), where) {}
  IntList sizes = 0;
  bool same = false;
};

// The input is (batch, channels, spatial...) or, for one sample, (channels, spatial...); so is the result. Lists have
// an entry per spatial dim, or one for all. All operands have one dtype: float64, float32, float16, bfloat16, or,
// without gradients, an integer type. Sums of 16-bit floats are kept in float32. Errors: bad_dim (ranks),
// shape_mismatch (channels, groups, bias), dtype_mismatch, bad_argument (a stride, dilation or groups below 1, a
// padding below 0, any of them 2^31 or more, a kernel larger than the padded input, an empty result).

/// Weight (features, channels / groups, kernel...), bias (features) -> (batch, features, windows...), where
/// windows = (size + 2 padding - dilation (kernel - 1) - 1) / stride + 1.
Tensor conv1d(Operand input, const Tensor& weight, const Tensor& bias = {}, const IntList& stride = 1,
              const ConvPadding& padding = 0, const IntList& dilation = 1, int64_t groups = 1);
Tensor conv2d(Operand input, const Tensor& weight, const Tensor& bias = {}, const IntList& stride = 1,
              const ConvPadding& padding = 0, const IntList& dilation = 1, int64_t groups = 1);
Tensor conv3d(Operand input, const Tensor& weight, const Tensor& bias = {}, const IntList& stride = 1,
              const ConvPadding& padding = 0, const IntList& dilation = 1, int64_t groups = 1);

/// Weight (channels, features / groups, kernel...), bias (features) -> (batch, features, positions...), where positions
/// = (size - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1. output_padding is less than stride or
/// dilation: it selects one of the sizes that a convolution would map to `size`.
Tensor conv_transpose1d(Operand input, const Tensor& weight, const Tensor& bias = {},
                        const IntList& stride = 1, const IntList& padding = 0,
                        const IntList& output_padding = 0, int64_t groups = 1, const IntList& dilation = 1);
Tensor conv_transpose2d(Operand input, const Tensor& weight, const Tensor& bias = {},
                        const IntList& stride = 1, const IntList& padding = 0,
                        const IntList& output_padding = 0, int64_t groups = 1, const IntList& dilation = 1);
Tensor conv_transpose3d(Operand input, const Tensor& weight, const Tensor& bias = {},
                        const IntList& stride = 1, const IntList& padding = 0,
                        const IntList& output_padding = 0, int64_t groups = 1, const IntList& dilation = 1);

}  // namespace retrograd
#pragma GCC visibility pop
