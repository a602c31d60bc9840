// Dropout layers: active in training, else they give x itself. Functions and errors: ops/dropout.h.
//
//   nn::Dropout drop{this, "drop", 0.1};
//
// All have an argument p, the probability, and the option `inplace`, which writes into x. Error(bad_argument) unless
// 0 <= p <= 1.
#pragma once

#include "nn/layer.h"
#include "ops/dropout.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct DropoutOptions {
  bool inplace = false;
};

/// Base of all of them.
template <class Self>
class DropoutLayer : public Layer<Self> {
 public:
  explicit DropoutLayer(Module* parent = nullptr, std::string name = {}, double p = 0.5,
                        DropoutOptions options = {}, SourceLocation where = SourceLocation::current());
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
  std::tuple<double, DropoutOptions> arguments() const { return {p, options}; }

  const double p;
  const DropoutOptions options;
};

/// Zeroes each element with probability p and scales the others by 1 / (1 - p).
struct Dropout : DropoutLayer<Dropout> {
  static constexpr std::string_view type_name = "Dropout";
  static constexpr auto function = retrograd::dropout;
  using DropoutLayer::DropoutLayer;
};

/// The same for whole channels of (N, C, L) or (C, L).
struct Dropout1d : DropoutLayer<Dropout1d> {
  static constexpr std::string_view type_name = "Dropout1d";
  static constexpr auto function = retrograd::dropout1d;
  using DropoutLayer::DropoutLayer;
};

/// The same for (N, C, H, W). As in PyTorch, three dims count as (N, C, L) and two as (N, C).
struct Dropout2d : DropoutLayer<Dropout2d> {
  static constexpr std::string_view type_name = "Dropout2d";
  static constexpr auto function = retrograd::dropout2d;
  using DropoutLayer::DropoutLayer;
};

/// The same for (N, C, D, H, W) or (C, D, H, W).
struct Dropout3d : DropoutLayer<Dropout3d> {
  static constexpr std::string_view type_name = "Dropout3d";
  static constexpr auto function = retrograd::dropout3d;
  using DropoutLayer::DropoutLayer;
};

/// For networks with SELU: keeps mean 0 and variance 1.
struct AlphaDropout : DropoutLayer<AlphaDropout> {
  static constexpr std::string_view type_name = "AlphaDropout";
  static constexpr auto function = retrograd::alpha_dropout;
  using DropoutLayer::DropoutLayer;
};

/// The same for whole channels.
struct FeatureAlphaDropout : DropoutLayer<FeatureAlphaDropout> {
  static constexpr std::string_view type_name = "FeatureAlphaDropout";
  static constexpr auto function = retrograd::feature_alpha_dropout;
  using DropoutLayer::DropoutLayer;
};

extern template class DropoutLayer<Dropout>;
extern template class DropoutLayer<Dropout1d>;
extern template class DropoutLayer<Dropout2d>;
extern template class DropoutLayer<Dropout3d>;
extern template class DropoutLayer<AlphaDropout>;
extern template class DropoutLayer<FeatureAlphaDropout>;

}  // namespace retrograd::nn
#pragma GCC visibility pop
