// Order statistics along a dim: kthvalue, median, nanmedian and mode.
//
// They choose one element of each line, and the gradient goes to the index that they give; which one that is among
// equal elements is open. The medians of all elements give no index: their gradient is split evenly among ties, as that
// of max(). NaN counts as the largest element, except that a median of NaNs is NaN.
//
// Only the wanted element is selected; lines are not sorted, except by mode. Quantiles, between two elements, are in
// ops/quantile.h.
#pragma once

#include "ops/reduce.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct KthAttrs : ReduceAttrs {
  Dim k = 1;  // from 1 on
  void visit(AttrVisitor& v) {
    ReduceAttrs::visit(v);
    v.field("k", k);
  }
};

struct KthValue : ExtremeAlong {
  using Attrs = KthAttrs;
  static constexpr std::string_view name = "kthvalue",
                                    doc = "k-th smallest element along a dim, and its index";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false, k=2} : f32[2], i64[2]";
  static void infer(const Call& call, TensorImpl* const* outputs);
};
struct Median : ExtremeAlong {
  static constexpr std::string_view name = "median", doc = "lower median along a dim, and its index";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : f32[2], i64[2]";
};
struct NanMedian : ExtremeAlong {
  static constexpr std::string_view name = "nanmedian",
                                    doc = "lower median of what is not NaN, and its index";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : f32[2], i64[2]";
};
struct Mode : ExtremeAlong {
  static constexpr std::string_view name = "mode", doc = "most frequent element along a dim, and its index";
  static constexpr std::string_view example = "f32[2,3] {dim=[1], keepdim=false} : f32[2], i64[2]";
};

/// Of all elements: a number. NaN if there is none.
struct OverallMedian {
  using Attrs = NoAttrs;
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr Saves saves = Saves::both;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};
struct MedianOfAll : OverallMedian {
  static constexpr std::string_view name = "median_of_all", doc = "lower median of all elements";
  static constexpr std::string_view example = "f32[2,3] : f32[]";
};
struct NanMedianOfAll : OverallMedian {
  static constexpr std::string_view name = "nanmedian_of_all", doc = "lower median of all that is not NaN";
  static constexpr std::string_view example = "f32[2,3] : f32[]";
};

using OrderStatisticOps = OpList<KthValue, Median, NanMedian, Mode, MedianOfAll, NanMedianOfAll>;

}  // namespace ops

// Of any dtype but float8. The dim is dropped, or has size 1 with keepdim. Errors: bad_dim; bad_argument where there is
// no element to choose from; dtype_mismatch.

/// The k-th smallest element along `dim`, counted from 1. Error(index_out_of_range) unless 1 <= k <= size.
ValuesAndIndices kthvalue(Operand input, Dim k, int64_t dim = -1, bool keepdim = false);
/// The median along `dim`, the lower of two in the middle; NaN if there is one. nanmedian ignores NaNs and gives one
/// only where there is nothing else.
ValuesAndIndices median(Operand input, int64_t dim, bool keepdim = false);
ValuesAndIndices nanmedian(Operand input, int64_t dim, bool keepdim = false);
/// The same of all elements; NaN without elements (Error(bad_argument) for integers). The gradient is split evenly
/// among ties.
Tensor median(Operand input);
Tensor nanmedian(Operand input);
/// The most frequent element along `dim`, the smallest if there are several. A NaN equals no other.
ValuesAndIndices mode(Operand input, int64_t dim = -1, bool keepdim = false);

}  // namespace retrograd
#pragma GCC visibility pop
