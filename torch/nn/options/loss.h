// Options of losses. Where the reduction is the first option it can be given alone: MSELoss(torch::kSum).
#pragma once

#include <functional>
#include <optional>
#include <type_traits>
#include <vector>

#include "engine/tensor.h"
#include "torch/arg.h"
#include "torch/enum.h"

#pragma GCC visibility push(default)
namespace torch::nn {

namespace detail {

using reduction_t = std::variant<enumtype::kNone, enumtype::kMean, enumtype::kSum>;
template <class T, class Variant>
concept OneOf = std::is_constructible_v<Variant, T> && !std::is_same_v<T, Variant>;

}  // namespace detail

struct L1LossOptions {
  using reduction_t = detail::reduction_t;
  L1LossOptions() = default;
  template <detail::OneOf<reduction_t> R>
  L1LossOptions(R reduction) : reduction_(reduction) {}
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct MSELossOptions {
  using reduction_t = detail::reduction_t;
  MSELossOptions() = default;
  template <detail::OneOf<reduction_t> R>
  MSELossOptions(R reduction) : reduction_(reduction) {}
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct MultiLabelMarginLossOptions {
  using reduction_t = detail::reduction_t;
  MultiLabelMarginLossOptions() = default;
  template <detail::OneOf<reduction_t> R>
  MultiLabelMarginLossOptions(R reduction) : reduction_(reduction) {}
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct SoftMarginLossOptions {
  using reduction_t = detail::reduction_t;
  SoftMarginLossOptions() = default;
  template <detail::OneOf<reduction_t> R>
  SoftMarginLossOptions(R reduction) : reduction_(reduction) {}
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct KLDivLossOptions {
  using reduction_t = std::variant<enumtype::kNone, enumtype::kBatchMean, enumtype::kSum, enumtype::kMean>;
  KLDivLossOptions() = default;
  template <detail::OneOf<reduction_t> R>
  KLDivLossOptions(R reduction) : reduction_(reduction) {}
  TORCH_ARG(bool, log_target) = false;
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct SmoothL1LossOptions {
  using reduction_t = detail::reduction_t;
  SmoothL1LossOptions() = default;
  template <detail::OneOf<reduction_t> R>
  SmoothL1LossOptions(R reduction) : reduction_(reduction) {}
  TORCH_ARG(std::optional<double>, beta);
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct HuberLossOptions {
  using reduction_t = detail::reduction_t;
  HuberLossOptions() = default;
  template <detail::OneOf<reduction_t> R>
  HuberLossOptions(R reduction) : reduction_(reduction) {}
  TORCH_ARG(double, delta) = 1;
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct BCELossOptions {
  using reduction_t = detail::reduction_t;
  TORCH_ARG(retrograd::Tensor, weight);
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct BCEWithLogitsLossOptions {
  using reduction_t = detail::reduction_t;
  TORCH_ARG(retrograd::Tensor, weight);
  TORCH_ARG(retrograd::Tensor, pos_weight);
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct HingeEmbeddingLossOptions {
  using reduction_t = detail::reduction_t;
  TORCH_ARG(double, margin) = 1;
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct MultiMarginLossOptions {
  using reduction_t = detail::reduction_t;
  TORCH_ARG(int64_t, p) = 1;
  TORCH_ARG(double, margin) = 1;
  TORCH_ARG(retrograd::Tensor, weight);
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct CosineEmbeddingLossOptions {
  using reduction_t = detail::reduction_t;
  TORCH_ARG(double, margin) = 0;
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct MarginRankingLossOptions {
  using reduction_t = detail::reduction_t;
  TORCH_ARG(double, margin) = 0;
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct MultiLabelSoftMarginLossOptions {
  using reduction_t = detail::reduction_t;
  TORCH_ARG(retrograd::Tensor, weight);
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct TripletMarginLossOptions {
  using reduction_t = detail::reduction_t;
  TORCH_ARG(double, margin) = 1;
  TORCH_ARG(double, p) = 2;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(bool, swap) = false;
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct TripletMarginWithDistanceLossOptions {
  using reduction_t = detail::reduction_t;
  using distance_function_t =
      std::function<retrograd::Tensor(const retrograd::Tensor&, const retrograd::Tensor&)>;
  TORCH_ARG(std::optional<distance_function_t>, distance_function);
  TORCH_ARG(double, margin) = 1;
  TORCH_ARG(bool, swap) = false;
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct CTCLossOptions {
  using reduction_t = detail::reduction_t;
  TORCH_ARG(int64_t, blank) = 0;
  TORCH_ARG(bool, zero_infinity) = false;
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct PoissonNLLLossOptions {
  using reduction_t = detail::reduction_t;
  TORCH_ARG(bool, log_input) = true;
  TORCH_ARG(bool, full) = false;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct NLLLossOptions {
  using reduction_t = detail::reduction_t;
  TORCH_ARG(retrograd::Tensor, weight);
  TORCH_ARG(int64_t, ignore_index) = -100;
  TORCH_ARG(reduction_t, reduction) = kMean;
};
struct CrossEntropyLossOptions {
  using reduction_t = detail::reduction_t;
  TORCH_ARG(retrograd::Tensor, weight);
  TORCH_ARG(int64_t, ignore_index) = -100;
  TORCH_ARG(double, label_smoothing) = 0;
  TORCH_ARG(reduction_t, reduction) = kMean;
};

struct AdaptiveLogSoftmaxWithLossOptions {
  AdaptiveLogSoftmaxWithLossOptions(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(std::move(cutoffs)) {}
  TORCH_ARG(int64_t, in_features);
  TORCH_ARG(int64_t, n_classes);
  TORCH_ARG(std::vector<int64_t>, cutoffs);
  TORCH_ARG(double, div_value) = 4;
  TORCH_ARG(bool, head_bias) = false;
};

namespace functional {

using L1LossFuncOptions = L1LossOptions;
using MSELossFuncOptions = MSELossOptions;
using KLDivFuncOptions = KLDivLossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using MultilabelMarginLossFuncOptions = MultiLabelMarginLossOptions;
using MultilabelSoftMarginLossFuncOptions = MultiLabelSoftMarginLossOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using HingeEmbeddingLossFuncOptions = HingeEmbeddingLossOptions;
using MultiMarginLossFuncOptions = MultiMarginLossOptions;
using CosineEmbeddingLossFuncOptions = CosineEmbeddingLossOptions;
using SoftMarginLossFuncOptions = SoftMarginLossOptions;
using TripletMarginLossFuncOptions = TripletMarginLossOptions;
using TripletMarginWithDistanceLossFuncOptions = TripletMarginWithDistanceLossOptions;
using CTCLossFuncOptions = CTCLossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using HuberLossFuncOptions = HuberLossOptions;
using PoissonNLLLossFuncOptions = PoissonNLLLossOptions;
using MarginRankingLossFuncOptions = MarginRankingLossOptions;
using NLLLossFuncOptions = NLLLossOptions;

}  // namespace functional

}  // namespace torch::nn
#pragma GCC visibility pop
