// Pooling: the largest element or the average over windows of the grid, which is the last one, two or three dims.
//
// max_pool gives values and their positions: int64 indices into the flattened grid. Gradients are scattered by them
// (max_pool_backward), and tangents and second derivatives are gathered. It saves only the indices. avg_pool and
// adaptive_avg_pool are linear, each with its transpose.
// A regular pool has windows of kernel_size elements, `dilation` apart, every `stride` elements, over an operand
// extended by `padding` virtual elements at both ends. The adaptive ones cover the grid with windows of about equal
// size: result i of n begins at floor(i * in / n) and ends before ceil((i + 1) * in / n).
#pragma once

#include "ops/named_tensors.h"
#include "ops/resampling.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// Windows of a regular pool; each list has an entry for each dim of the grid.
struct WindowAttrs {
  IntList kernel_size, stride, padding;
  void visit(AttrVisitor& v) {
    v.field("kernel_size", kernel_size);
    v.field("stride", stride);
    v.field("padding", padding);
  }
};

struct GridSize {
  Shape size;  // of the result
  void visit(AttrVisitor& v) { v.field("size", size); }
};

/// (x) -> (values, indices).
struct MaxPooling {
  static constexpr int8_t arity = 1, outputs = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static SaveSet saves_for(const Call&, uint64_t) { return {0, uint64_t{2}}; }  // the indices
  static constexpr auto batch = batch_leading;
};

struct MaxPool : MaxPooling {
  struct Attrs : WindowAttrs {
    IntList dilation;
    bool ceil_mode = false;
    void visit(AttrVisitor& v) {
      WindowAttrs::visit(v);
      v.field("dilation", dilation);
      v.field("ceil_mode", ceil_mode);
    }
  };
  static constexpr std::string_view name = "max_pool", doc = "largest elements of windows, and their places";
  static constexpr std::string_view example =
      "f32[2,3,7] {kernel_size=[3], stride=[2], padding=[0], dilation=[1], ceil_mode=false} : f32[2,3,3], "
      "i64[2,3,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

struct AdaptiveMaxPool : MaxPooling {
  using Attrs = GridSize;
  static constexpr std::string_view name = "adaptive_max_pool",
                                    doc = "largest elements of windows that cover the grid, and their places";
  static constexpr std::string_view example = "f32[2,3,7] {size=[3]} : f32[2,3,3], i64[2,3,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// (g, indices): g added at the indices into grids of zeros.
struct MaxPoolBackward {
  using Attrs = GridSize;
  static constexpr std::string_view name = "max_pool_backward",
                                    doc = "the operand added at places of a grid of zeros";
  static constexpr std::string_view operands = "g, indices";
  static constexpr std::string_view example = "f32[2,3,3], i64[2,3,3] {size=[7]} : f32[2,3,7]";
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static SaveSet saves_for(const Call&, uint64_t) { return {uint64_t{2}, 0}; }  // the indices
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_leading;
};

struct AvgPoolAttrs : WindowAttrs {
  Shape size;  // of the result
  bool count_include_pad = true;
  int64_t divisor_override = 0;  // 0: none
  void visit(AttrVisitor& v) {
    v.field("size", size);
    WindowAttrs::visit(v);
    v.field("count_include_pad", count_include_pad);
    v.field("divisor_override", divisor_override);
  }
};

struct AvgPoolBackward;
struct AvgPool : Resampling<AvgPool, AvgPoolAttrs> {
  using Transpose = AvgPoolBackward;
  static constexpr std::string_view name = "avg_pool", doc = "averages over windows";
  static constexpr std::string_view example =
      "f32[2,3,7] {size=[3], kernel_size=[3], stride=[2], padding=[0], count_include_pad=true, "
      "divisor_override=0} : f32[2,3,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);  // int64, too
};
struct AvgPoolBackward : Resampling<AvgPoolBackward, AvgPoolAttrs> {
  using Transpose = AvgPool;
  static constexpr std::string_view name = "avg_pool_backward", doc = "transpose of avg_pool";
  static constexpr std::string_view operands = "g";
  static constexpr std::string_view example =
      "f32[2,3,3] {size=[7], kernel_size=[3], stride=[2], padding=[0], count_include_pad=true, "
      "divisor_override=0} : f32[2,3,7]";
  static void infer(const Call& call, TensorImpl* const* outputs);
};

struct AdaptiveAvgPoolBackward;
struct AdaptiveAvgPool : Resampling<AdaptiveAvgPool, GridSize> {
  using Transpose = AdaptiveAvgPoolBackward;
  static constexpr std::string_view name = "adaptive_avg_pool",
                                    doc = "averages over windows that cover the grid";
  static constexpr std::string_view example = "f32[2,3,7] {size=[3]} : f32[2,3,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);
};
struct AdaptiveAvgPoolBackward : Resampling<AdaptiveAvgPoolBackward, GridSize> {
  using Transpose = AdaptiveAvgPool;
  static constexpr std::string_view name = "adaptive_avg_pool_backward",
                                    doc = "transpose of adaptive_avg_pool";
  static constexpr std::string_view operands = "g";
  static constexpr std::string_view example = "f32[2,3,3] {size=[7]} : f32[2,3,7]";
};

/// The number of windows along a dim; less than 1 when the kernel is larger than the padded operand.
Dim pooled_size(Dim in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode);

using PoolingOps = OpList<MaxPool, AdaptiveMaxPool, MaxPoolBackward, AvgPool, AvgPoolBackward,
                          AdaptiveAvgPool, AdaptiveAvgPoolBackward>;

}  // namespace ops

/// indices: int64, into the flattened grid.
RG_NAMED_PAIR(MaxPoolResult, values, indices);

// Operands are (C, L), (C, H, W) or (C, D, H, W), or these with a leading batch dim; results have the sizes of the grid
// replaced. kernel_size, stride, padding and dilation are one number or one for each dim; an empty stride means the
// kernel_size. With ceil_mode the last window may begin inside of the operand or its left padding and end outside.
// Errors: bad_dim for another number of dims; bad_argument for sizes that are not positive, for padding of more than
// half the kernel, for a kernel that is larger than the padded operand, and if a dim other than the batch is empty;
// dtype_mismatch.

/// Any dtype but bool. Of equal elements the first counts, and nan is larger than everything.
MaxPoolResult max_pool1d_with_indices(Operand input, const IntList& kernel_size, const IntList& stride = {},
                                      const IntList& padding = 0, const IntList& dilation = 1,
                                      bool ceil_mode = false);
MaxPoolResult max_pool2d_with_indices(Operand input, const IntList& kernel_size, const IntList& stride = {},
                                      const IntList& padding = 0, const IntList& dilation = 1,
                                      bool ceil_mode = false);
MaxPoolResult max_pool3d_with_indices(Operand input, const IntList& kernel_size, const IntList& stride = {},
                                      const IntList& padding = 0, const IntList& dilation = 1,
                                      bool ceil_mode = false);
Tensor max_pool1d(Operand input, const IntList& kernel_size, const IntList& stride = {},
                  const IntList& padding = 0, const IntList& dilation = 1, bool ceil_mode = false);
Tensor max_pool2d(Operand input, const IntList& kernel_size, const IntList& stride = {},
                  const IntList& padding = 0, const IntList& dilation = 1, bool ceil_mode = false);
Tensor max_pool3d(Operand input, const IntList& kernel_size, const IntList& stride = {},
                  const IntList& padding = 0, const IntList& dilation = 1, bool ceil_mode = false);

/// Floating or int64 (then rounded towards 0). The sum over a window is divided by the number of its elements,
/// including those in the padding if count_include_pad; or by divisor_override, which must not be 0, and must be exact
/// as a double.
Tensor avg_pool1d(Operand input, const IntList& kernel_size, const IntList& stride = {},
                  const IntList& padding = 0, bool ceil_mode = false, bool count_include_pad = true);
Tensor avg_pool2d(Operand input, const IntList& kernel_size, const IntList& stride = {},
                  const IntList& padding = 0, bool ceil_mode = false, bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = {});
Tensor avg_pool3d(Operand input, const IntList& kernel_size, const IntList& stride = {},
                  const IntList& padding = 0, bool ceil_mode = false, bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = {});

/// Output sizes of adaptive pools: nullopt keeps the operand's size.
using AdaptiveSize = PerDim<std::optional<int64_t>>;

Tensor adaptive_avg_pool1d(Operand input, const AdaptiveSize& output_size);
Tensor adaptive_avg_pool2d(Operand input, const AdaptiveSize& output_size);
Tensor adaptive_avg_pool3d(Operand input, const AdaptiveSize& output_size);
MaxPoolResult adaptive_max_pool1d_with_indices(Operand input, const AdaptiveSize& output_size);
MaxPoolResult adaptive_max_pool2d_with_indices(Operand input, const AdaptiveSize& output_size);
MaxPoolResult adaptive_max_pool3d_with_indices(Operand input, const AdaptiveSize& output_size);
Tensor adaptive_max_pool1d(Operand input, const AdaptiveSize& output_size);
Tensor adaptive_max_pool2d(Operand input, const AdaptiveSize& output_size);
Tensor adaptive_max_pool3d(Operand input, const AdaptiveSize& output_size);

}  // namespace retrograd
#pragma GCC visibility pop
