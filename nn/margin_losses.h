// Losses of margins as modules: each is the function of its name with its options. What is computed, operands and
// errors: ops/margin_losses.h; options and weights as in nn/losses.h.
#pragma once

#include "nn/losses.h"
#include "ops/margin_losses.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct HingeEmbeddingLossOptions {
  double margin = 1.0;
  std::string reduction = "mean";
};

/// input where target is 1, max(0, margin - input) where it is -1.
struct HingeEmbeddingLoss : OptionsLayer<HingeEmbeddingLoss, HingeEmbeddingLossOptions> {
  static constexpr std::string_view type_name = "HingeEmbeddingLoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand input, const Tensor& target) const;
  std::string extra_repr() const;
};

struct MarginLossOptions {
  double margin = 0.0;
  std::string reduction = "mean";
};

/// max(0, margin - target (input1 - input2)), target 1 or -1.
struct MarginRankingLoss : OptionsLayer<MarginRankingLoss, MarginLossOptions> {
  static constexpr std::string_view type_name = "MarginRankingLoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand input1, const Tensor& input2, const Tensor& target) const;
  std::string extra_repr() const;
};

/// 1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1.
struct CosineEmbeddingLoss : OptionsLayer<CosineEmbeddingLoss, MarginLossOptions> {
  static constexpr std::string_view type_name = "CosineEmbeddingLoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand input1, const Tensor& input2, const Tensor& target) const;
  std::string extra_repr() const;
};

struct TripletMarginLossOptions {
  double margin = 1.0, p = 2.0, eps = 1e-6;
  bool swap = false;
  std::string reduction = "mean";
};

/// max(0, margin + d(anchor, positive) - d(anchor, negative)).
struct TripletMarginLoss : OptionsLayer<TripletMarginLoss, TripletMarginLossOptions> {
  static constexpr std::string_view type_name = "TripletMarginLoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand anchor, const Tensor& positive, const Tensor& negative) const;
  std::string extra_repr() const;
};

struct TripletMarginWithDistanceLossOptions {
  DistanceFunction distance_function = {};  // none: pairwise_distance
  double margin = 1.0;
  bool swap = false;
  std::string reduction = "mean";
};

struct TripletMarginWithDistanceLoss
    : OptionsLayer<TripletMarginWithDistanceLoss, TripletMarginWithDistanceLossOptions> {
  static constexpr std::string_view type_name = "TripletMarginWithDistanceLoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand anchor, const Tensor& positive, const Tensor& negative) const;
  std::string extra_repr() const;
};

struct MultiMarginLossOptions {
  int64_t p = 1;  // or 2
  double margin = 1.0;
  Tensor weight = {};  // [C], a factor per class
  std::string reduction = "mean";
};

/// Input (N, C) with a target (N) of classes.
struct MultiMarginLoss : WeightedLoss<MultiMarginLoss, MultiMarginLossOptions> {
  static constexpr std::string_view type_name = "MultiMarginLoss";
  using WeightedLoss::WeightedLoss;
  Tensor forward(Operand input, const Tensor& target) const;
  std::string extra_repr() const;
};

/// Input (N, C), target int64 of that shape: a sample's classes up to the first -1.
struct MultiLabelMarginLoss : OptionsLayer<MultiLabelMarginLoss, LossOptions> {
  static constexpr std::string_view type_name = "MultiLabelMarginLoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand input, const Tensor& target) const;
};

/// log(1 + e^(-target input)), target 1 or -1.
struct SoftMarginLoss : OptionsLayer<SoftMarginLoss, LossOptions> {
  static constexpr std::string_view type_name = "SoftMarginLoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand input, const Tensor& target) const;
};

/// Mean over the classes of weight times the binary cross entropy with logits.
struct MultiLabelSoftMarginLoss : WeightedLoss<MultiLabelSoftMarginLoss, WeightedLossOptions> {
  static constexpr std::string_view type_name = "MultiLabelSoftMarginLoss";
  using WeightedLoss::WeightedLoss;
  Tensor forward(Operand input, const Tensor& target) const;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
