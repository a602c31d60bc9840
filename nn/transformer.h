// TransformerEncoder and TransformerDecoder, stacks of the layers of nn/transformer_layers.h, and Transformer, the
// model of both. State keys are PyTorch's: "encoder.layers.0.self_attn.in_proj_weight", "decoder.norm.weight".
//
//   nn::Transformer model{this, "model", {.d_model = 512, .nhead = 8, .batch_first = true}};
//   const Tensor out = model(src, tgt, {}, nn::Transformer::generate_square_subsequent_mask(tgt.size(1)));
//
// Sizes and masks are those of the layers; mask and key_padding_mask go to every layer.
#pragma once

#include "nn/any_module.h"
#include "nn/module_list.h"
#include "nn/transformer_layers.h"
#include "ops/creation.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct TransformerStackOptions {
  AnyModule norm = {};  // of the output; becomes a child
};
using TransformerEncoderOptions = TransformerStackOptions;
using TransformerDecoderOptions = TransformerStackOptions;

namespace detail {

/// Common base of the two stacks: layers, and a norm.
template <class Item>
class TransformerStack : public Module {
 public:
  /// num_layers clones of `layer`, which is not part of this module. Error(bad_argument) for a negative number.
  TransformerStack(Module* parent, std::string name, const Item& layer, int64_t num_layers,
                   TransformerStackOptions options = {}, SourceLocation where = SourceLocation::current());
  /// These layers, which may be used elsewhere, too.
  TransformerStack(Module* parent, std::string name, const std::vector<std::shared_ptr<Item>>& layers,
                   TransformerStackOptions options = {});

  /// For a clone: copies of the layers and the norm.
  std::tuple<std::vector<std::shared_ptr<Item>>, TransformerStackOptions> arguments() const;

  ModuleList<Item> layers{this, "layers"};
  AnyModule norm;  // empty: none

 protected:
  Tensor normalized(const Tensor& x) const { return norm.is_empty() ? x : norm.forward(x); }
};

}  // namespace detail

class TransformerEncoder
    : public Layer<TransformerEncoder, detail::TransformerStack<TransformerEncoderLayer>> {
 public:
  static constexpr std::string_view type_name = "TransformerEncoder";
  using Layer::Layer;
  Tensor forward(Operand src, const Tensor& mask = {}, const Tensor& src_key_padding_mask = {},
                 bool is_causal = false) const;
  Tensor operator()(Operand src, const Tensor& mask = {}, const Tensor& src_key_padding_mask = {},
                    bool is_causal = false) const;
};

class TransformerDecoder
    : public Layer<TransformerDecoder, detail::TransformerStack<TransformerDecoderLayer>> {
 public:
  static constexpr std::string_view type_name = "TransformerDecoder";
  using Layer::Layer;
  Tensor forward(Operand tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}, bool tgt_is_causal = false,
                 bool memory_is_causal = false) const;
  Tensor operator()(Operand tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                    const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                    const Tensor& memory_key_padding_mask = {}, bool tgt_is_causal = false,
                    bool memory_is_causal = false) const;
};

struct TransformerOptions {
  int64_t d_model = 512, nhead = 8, num_encoder_layers = 6, num_decoder_layers = 6, dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = "relu";
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false, bias = true;
  /// In place of the library's: modules with the forward of TransformerEncoder and TransformerDecoder, with all its
  /// parameters.
  AnyModule custom_encoder = {}, custom_decoder = {};
};

/// Encoder and decoder, each with a norm at its end. Weights of at least two dims are xavier_uniform.
class Transformer : public Layer<Transformer> {
 public:
  static constexpr std::string_view type_name = "Transformer";
  /// Errors are those of the layers; bad_argument also for a negative number of layers.
  explicit Transformer(Module* parent, std::string name = "", TransformerOptions options = {},
                       SourceLocation where = SourceLocation::current());
  /// src (S, N, E), tgt (T, N, E) -> (T, N, E), or with batch_first, or without a batch.
  Tensor forward(Operand src, const Tensor& tgt, const Tensor& src_mask = {}, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& src_key_padding_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {},
                 bool src_is_causal = false, bool tgt_is_causal = false, bool memory_is_causal = false) const;
  Tensor operator()(Operand src, const Tensor& tgt, const Tensor& src_mask = {}, const Tensor& tgt_mask = {},
                    const Tensor& memory_mask = {}, const Tensor& src_key_padding_mask = {},
                    const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {},
                    bool src_is_causal = false, bool tgt_is_causal = false,
                    bool memory_is_causal = false) const;

  /// (size, size): -infinity above the diagonal, else 0: a mask that leaves out what follows a position.
  static Tensor generate_square_subsequent_mask(Dim size, TensorOptions options = {},
                                                SourceLocation where = SourceLocation::current());

  std::tuple<TransformerOptions> arguments() const;

  const TransformerOptions options;
  /// encoder.get<TransformerEncoder>() and decoder.get<TransformerDecoder>(), or the custom ones.
  AnyModule encoder, decoder;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
