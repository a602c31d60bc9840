// See torch/nn/modules/transformer.h.
#include "torch/nn/modules/transformer.h"

#include "torch/nn/modules/norms.h"

namespace torch::nn {

namespace {

rn::TransformerActivation layer_activation(const activation_t& activation) {
  switch (activation.index()) {
    case 0: return std::string("relu");
    case 1: return std::string("gelu");
    default: return std::get<2>(activation);
  }
}

// Of both kinds of layers.
template <class Options>
rn::TransformerLayerOptions transformer_layer_options(const Options& o) {
  return {.dim_feedforward = o.dim_feedforward(),
          .dropout = o.dropout(),
          .activation = layer_activation(o.activation())};
}

// Error(unsupported) for another norm.
template <class Options>
rn::TransformerStackOptions stack_options(const Options& o) {
  if (o.norm().is_empty()) return {};
  const auto* norm = o.norm().ptr()->template as<LayerNorm>();
  if (!norm)
    retrograd::fail(retrograd::Category::unsupported, "Transformer",
                    "the norm of a stack must be a LayerNorm");
  return {.norm = norm->rn::LayerNorm::options};
}

// The values of the norm that was given become those of the stack's.
template <class Options>
void take_norm(rn::Module& norm, const Options& o) {
  norm.load_state_dict(o.norm().ptr()->state_dict());
}

}  // namespace

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& o)
    : Wrapped(o, o.d_model(), o.nhead(), transformer_layer_options(o)) {}
TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& o)
    : Wrapped(o, o.d_model(), o.nhead(), transformer_layer_options(o)) {}

TransformerEncoderImpl::TransformerEncoderImpl(const TransformerEncoderOptions& o)
    : Wrapped(o, *o.encoder_layer(), o.num_layers(), stack_options(o)) {
  if (norm) take_norm(*norm, o);
}
TransformerDecoderImpl::TransformerDecoderImpl(const TransformerDecoderOptions& o)
    : Wrapped(o, *o.decoder_layer(), o.num_layers(), stack_options(o)) {
  if (norm) take_norm(*norm, o);
}

TransformerImpl::TransformerImpl(const TransformerOptions& o)
    : Wrapped(o, rn::TransformerOptions{.d_model = o.d_model(),
                                        .nhead = o.nhead(),
                                        .num_encoder_layers = o.num_encoder_layers(),
                                        .num_decoder_layers = o.num_decoder_layers(),
                                        .dim_feedforward = o.dim_feedforward(),
                                        .dropout = o.dropout(),
                                        .activation = layer_activation(o.activation())}) {}

}  // namespace torch::nn
