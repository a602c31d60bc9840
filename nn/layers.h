// Layers made of others, and all other layers, one header for each family. Parameters, their names, shapes and initial
// values are PyTorch's. A layer is called like a function. Options are structs: `nn::Linear fc{this, "fc", 64, 10,
// {.bias = false}}`. nn/layer.h says what a layer is made of.
#pragma once

#include "nn/activations.h"
#include "nn/adaptive_softmax.h"
#include "nn/convolution.h"
#include "nn/distances.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/linear_cross_entropy.h"
#include "nn/losses.h"
#include "nn/margin_losses.h"
#include "nn/norms.h"
#include "nn/padding.h"
#include "nn/patches.h"
#include "nn/pooling.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct CausalSelfAttentionOptions {
  bool bias = true;
};

/// Multi-head self-attention of a sequence, where each position attends to itself and earlier ones: x (batch, length,
/// width) -> the same shape. Children: qkv [3 width, width], with queries, keys and values packed in this order, each a
/// row of heads; proj [width, width].
class CausalSelfAttention : public Layer<CausalSelfAttention> {
 public:
  static constexpr std::string_view type_name = "CausalSelfAttention";
  /// Error(bad_argument) unless `heads` divides `width`.
  CausalSelfAttention(Module* parent, std::string name, int64_t width, int64_t heads,
                      CausalSelfAttentionOptions options = {},
                      SourceLocation where = SourceLocation::current());
  Tensor forward(Operand x) const;
  std::tuple<int64_t, int64_t, CausalSelfAttentionOptions> arguments() const;

  const int64_t width, heads;
  const CausalSelfAttentionOptions options;
  Linear qkv, proj;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
