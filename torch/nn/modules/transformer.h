// The Transformer, its stacks and their layers. The parts of a layer are members, as in retrograd::nn, where libtorch has
// holders: layer->linear1->weight is written for both. Names of parameters are the same.
// The forward of a custom encoder or decoder has all parameters of nn/transformer.h's, to is_causal.
#pragma once

#include "nn/transformer.h"
#include "torch/nn/modules/container.h"
#include "torch/nn/options/transformer.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_LAYER(TransformerEncoderLayer);
RG_TORCH_LAYER(TransformerDecoderLayer);

/// Layers as the given one is, with its values, or of its options. The stack gets a copy of `norm`.
struct TransformerEncoderOptions {
  TransformerEncoderOptions(TransformerEncoderLayer encoder_layer, int64_t num_layers)
      : encoder_layer_(std::move(encoder_layer)), num_layers_(num_layers) {}
  TransformerEncoderOptions(const TransformerEncoderLayerOptions& layer, int64_t num_layers)
      : TransformerEncoderOptions(TransformerEncoderLayer(layer), num_layers) {}
  TORCH_ARG(TransformerEncoderLayer, encoder_layer);
  TORCH_ARG(int64_t, num_layers);
  TORCH_ARG(AnyModule, norm);
};

struct TransformerDecoderOptions {
  TransformerDecoderOptions(TransformerDecoderLayer decoder_layer, int64_t num_layers)
      : decoder_layer_(std::move(decoder_layer)), num_layers_(num_layers) {}
  TransformerDecoderOptions(const TransformerDecoderLayerOptions& layer, int64_t num_layers)
      : TransformerDecoderOptions(TransformerDecoderLayer(layer), num_layers) {}
  TORCH_ARG(TransformerDecoderLayer, decoder_layer);
  TORCH_ARG(int64_t, num_layers);
  TORCH_ARG(AnyModule, norm);
};

RG_TORCH_LAYER(TransformerEncoder);
RG_TORCH_LAYER(TransformerDecoder);
// Its remade() copies what the options hold.
RG_TORCH_IMPL(Transformer, Transformer, TransformerOptions, std::unique_ptr<Module> remade() const;);
using Transformer = LayerHolder<TransformerImpl>;

}  // namespace torch::nn
#pragma GCC visibility pop
