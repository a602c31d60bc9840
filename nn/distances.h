// Layers of two operands that compare vectors: CosineSimilarity, PairwiseDistance. Functions and errors: ops/losses.h,
// ops/vector_pairs.h.
#pragma once

#include "nn/layer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct CosineSimilarityOptions {
  int64_t dim = 1;
  double eps = 1e-8;
};

/// <x1, x2> / (max(|x1|, eps) max(|x2|, eps)) along `dim`, which disappears.
struct CosineSimilarity : OptionsLayer<CosineSimilarity, CosineSimilarityOptions> {
  static constexpr std::string_view type_name = "CosineSimilarity";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x1, const Tensor& x2) const;
  std::string extra_repr() const;
};

struct PairwiseDistanceOptions {
  double p = 2.0, eps = 1e-6;
  bool keepdim = false;
};

/// |x1 - x2 + eps| along the last dim, in the norm p.
struct PairwiseDistance : OptionsLayer<PairwiseDistance, PairwiseDistanceOptions> {
  static constexpr std::string_view type_name = "PairwiseDistance";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x1, const Tensor& x2) const;
  std::string extra_repr() const;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
