// Losses as modules: each is the function of its name with its options. What is computed, operands and errors:
// ops/losses.h, ops/likelihood_losses.h, ops/ctc_loss.h. Losses of margins are in nn/margin_losses.h.
//
//   nn::CrossEntropyLoss loss{this, "loss", {.label_smoothing = 0.1}};      loss(logits, target)
//
// `reduction` is "mean", "sum" or "none". Weights are buffers, which share the memory of the tensors given.
#pragma once

#include "nn/layer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct LossOptions {
  std::string reduction = "mean";
};

/// A loss with a buffer `weight`, if there is one among its options.
template <class Self, class Options>
class WeightedLoss : public OptionsLayer<Self, Options> {
 public:
  explicit WeightedLoss(Module* parent = nullptr, std::string name = {}, Options options = {})
      : OptionsLayer<Self, Options>(parent, std::move(name), std::move(options)),
        weight(this, "weight", detail::sharing(this->options.weight)) {}

  Buffer weight;
};

// ---- differences of two tensors ----

/// |input - target|.
struct L1Loss : OptionsLayer<L1Loss, LossOptions> {
  static constexpr std::string_view type_name = "L1Loss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand input, const Tensor& target) const;
};

/// (input - target)^2.
struct MSELoss : OptionsLayer<MSELoss, LossOptions> {
  static constexpr std::string_view type_name = "MSELoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand input, const Tensor& target) const;
};

struct SmoothL1LossOptions {
  std::string reduction = "mean";
  double beta = 1.0;
};

/// Quadratic below beta, else |input - target| - beta / 2.
struct SmoothL1Loss : OptionsLayer<SmoothL1Loss, SmoothL1LossOptions> {
  static constexpr std::string_view type_name = "SmoothL1Loss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand input, const Tensor& target) const;
};

struct HuberLossOptions {
  std::string reduction = "mean";
  double delta = 1.0;
};

/// SmoothL1Loss times delta.
struct HuberLoss : OptionsLayer<HuberLoss, HuberLossOptions> {
  static constexpr std::string_view type_name = "HuberLoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand input, const Tensor& target) const;
};

// ---- classes ----

struct CrossEntropyLossOptions {
  Tensor weight = {};  // [C], a factor per class
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  double label_smoothing = 0.0;
};

/// Logits (N, C, ...) or (C); the target has class indices, or probabilities of the input's shape.
struct CrossEntropyLoss : WeightedLoss<CrossEntropyLoss, CrossEntropyLossOptions> {
  static constexpr std::string_view type_name = "CrossEntropyLoss";
  using WeightedLoss::WeightedLoss;
  Tensor forward(Operand input, const Tensor& target) const;
};

struct NLLLossOptions {
  Tensor weight = {};  // [C], a factor per class
  int64_t ignore_index = -100;
  std::string reduction = "mean";
};

/// The same of logarithms of probabilities, with class indices.
struct NLLLoss : WeightedLoss<NLLLoss, NLLLossOptions> {
  static constexpr std::string_view type_name = "NLLLoss";
  using WeightedLoss::WeightedLoss;
  Tensor forward(Operand input, const Tensor& target) const;
};

struct WeightedLossOptions {
  Tensor weight = {};
  std::string reduction = "mean";
};

/// Binary cross entropy of probabilities; weight multiplies the elements.
struct BCELoss : WeightedLoss<BCELoss, WeightedLossOptions> {
  static constexpr std::string_view type_name = "BCELoss";
  using WeightedLoss::WeightedLoss;
  Tensor forward(Operand input, const Tensor& target) const;
};

struct BCEWithLogitsLossOptions {
  Tensor weight = {};
  std::string reduction = "mean";
  Tensor pos_weight = {};  // multiplies the part of the positive targets
};

/// Binary cross entropy of logits. pos_weight is a buffer, too.
class BCEWithLogitsLoss : public WeightedLoss<BCEWithLogitsLoss, BCEWithLogitsLossOptions> {
 public:
  static constexpr std::string_view type_name = "BCEWithLogitsLoss";
  explicit BCEWithLogitsLoss(Module* parent = nullptr, std::string name = {},
                             BCEWithLogitsLossOptions options = {});
  Tensor forward(Operand input, const Tensor& target) const;

  Buffer pos_weight;
};

struct CTCLossOptions {
  int64_t blank = 0;
  std::string reduction = "mean";
  bool zero_infinity = false;
};

/// log_probs (T, N, C), targets (N, S) or of all samples one after the other, lengths (N).
struct CTCLoss : OptionsLayer<CTCLoss, CTCLossOptions> {
  static constexpr std::string_view type_name = "CTCLoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths) const;
};

// ---- distributions ----

struct KLDivLossOptions {
  std::string reduction = "mean";  // or "batchmean"
  bool log_target = false;
};

/// The input has logarithms of probabilities, and so has the target with log_target.
struct KLDivLoss : OptionsLayer<KLDivLoss, KLDivLossOptions> {
  static constexpr std::string_view type_name = "KLDivLoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand input, const Tensor& target) const;
};

struct PoissonNLLLossOptions {
  bool log_input = true, full = false;
  double eps = 1e-8;
  std::string reduction = "mean";
};

struct PoissonNLLLoss : OptionsLayer<PoissonNLLLoss, PoissonNLLLossOptions> {
  static constexpr std::string_view type_name = "PoissonNLLLoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand input, const Tensor& target) const;
};

struct GaussianNLLLossOptions {
  bool full = false;
  double eps = 1e-6;
  std::string reduction = "mean";
};

struct GaussianNLLLoss : OptionsLayer<GaussianNLLLoss, GaussianNLLLossOptions> {
  static constexpr std::string_view type_name = "GaussianNLLLoss";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand input, const Tensor& target, const Tensor& var) const;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
