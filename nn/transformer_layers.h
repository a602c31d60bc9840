// The layers of a Transformer (Vaswani et al. 2017): TransformerEncoderLayer and TransformerDecoderLayer. Stacks of
// them, and the whole model, are in nn/transformer.h. Children, their names and initial values are PyTorch's.
//
//   nn::TransformerEncoderLayer layer{this, "layer", 512, 8, {.activation = "gelu", .batch_first = true}};
//   const Tensor y = layer(x);                                            // x (batch, length, 512)
//
// Each part (self-attention, attention to the memory, the network of two Linear layers) is added to its input and
// normalised, or with norm_first applied to the normalised input and added.
// Sizes, N the batch, E d_model: src (S, N, E), tgt (T, N, E), memory, an encoder's output, (S, N, E); with batch_first
// (N, S, E) and so on; or without a batch (S, E). Masks are those of MultiheadAttention: mask (S, S) or
// (N heads, S, S), key_padding_mask (N, S); bool masks are true where a key is left out. For is_causal see
// MultiheadAttention::forward.
#pragma once

#include <functional>
#include <variant>

#include "nn/attention.h"
#include "nn/dropout.h"
#include "nn/norms.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

/// "relu", "gelu", or a function.
using TransformerActivation = std::variant<std::string, std::function<Tensor(const Tensor&)>>;

struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = "relu";
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false;
  bool bias = true;  // of linear layers, attention and norms
};
using TransformerEncoderLayerOptions = TransformerLayerOptions;
using TransformerDecoderLayerOptions = TransformerLayerOptions;

namespace detail {

/// Common base of the two: how it was made, and what both do with their parts.
class TransformerLayer : public Module {
 public:
  std::tuple<int64_t, int64_t, TransformerLayerOptions> arguments() const;

  const int64_t d_model, nhead;
  const TransformerLayerOptions options;

 protected:
  TransformerLayer(Module* parent, std::string name, int64_t d_model, int64_t nhead,
                   const TransformerLayerOptions& options, SourceLocation where);

  MultiheadAttentionOptions attention_options() const;
  LayerNormOptions norm_options() const { return {.eps = options.layer_norm_eps, .bias = options.bias}; }
  /// x + part(norm(x)), or norm(x + part(x)).
  template <class Part>
  Tensor residual(const Tensor& x, const LayerNorm& norm, Part&& part) const;
  Tensor activation(const Tensor& x) const { return activation_(x); }

 private:
  const std::function<Tensor(const Tensor&)> activation_;
};

}  // namespace detail

class TransformerEncoderLayer : public Layer<TransformerEncoderLayer, detail::TransformerLayer> {
 public:
  static constexpr std::string_view type_name = "TransformerEncoderLayer";
  /// Errors are those of MultiheadAttention; bad_argument also for another activation.
  TransformerEncoderLayer(Module* parent, std::string name, int64_t d_model, int64_t nhead,
                          TransformerEncoderLayerOptions options = {},
                          SourceLocation where = SourceLocation::current());
  Tensor forward(Operand src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {},
                 bool is_causal = false) const;
  Tensor operator()(Operand src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {},
                    bool is_causal = false) const;

  MultiheadAttention self_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2;
  Dropout dropout1, dropout2;
};

class TransformerDecoderLayer : public Layer<TransformerDecoderLayer, detail::TransformerLayer> {
 public:
  static constexpr std::string_view type_name = "TransformerDecoderLayer";
  /// Errors are those of MultiheadAttention; bad_argument also for another activation.
  TransformerDecoderLayer(Module* parent, std::string name, int64_t d_model, int64_t nhead,
                          TransformerDecoderLayerOptions options = {},
                          SourceLocation where = SourceLocation::current());
  Tensor forward(Operand tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}, bool tgt_is_causal = false,
                 bool memory_is_causal = false) const;
  Tensor operator()(Operand tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                    const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                    const Tensor& memory_key_padding_mask = {}, bool tgt_is_causal = false,
                    bool memory_is_causal = false) const;

  MultiheadAttention self_attn, multihead_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout1, dropout2, dropout3;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
