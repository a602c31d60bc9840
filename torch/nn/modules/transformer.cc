// See torch/nn/modules/transformer.h.
#include "torch/nn/modules/transformer.h"

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
  rn::TransformerLayerOptions to;
  to.dim_feedforward = o.dim_feedforward();
  to.dropout = o.dropout();
  to.activation = layer_activation(o.activation());
  return to;
}

}  // namespace

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& o)
    : Wrapped(o, o.d_model(), o.nhead(), transformer_layer_options(o)) {}
TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& o)
    : Wrapped(o, o.d_model(), o.nhead(), transformer_layer_options(o)) {}

TransformerEncoderImpl::TransformerEncoderImpl(const TransformerEncoderOptions& o)
    : Wrapped(o, *o.encoder_layer(), o.num_layers(), rn::TransformerStackOptions{.norm = o.norm()}) {}
TransformerDecoderImpl::TransformerDecoderImpl(const TransformerDecoderOptions& o)
    : Wrapped(o, *o.decoder_layer(), o.num_layers(), rn::TransformerStackOptions{.norm = o.norm()}) {}

TransformerImpl::TransformerImpl(const TransformerOptions& o)
    : Wrapped(o, rn::TransformerOptions{.d_model = o.d_model(),
                                        .nhead = o.nhead(),
                                        .num_encoder_layers = o.num_encoder_layers(),
                                        .num_decoder_layers = o.num_decoder_layers(),
                                        .dim_feedforward = o.dim_feedforward(),
                                        .dropout = o.dropout(),
                                        .activation = layer_activation(o.activation()),
                                        .custom_encoder = o.custom_encoder(),
                                        .custom_decoder = o.custom_decoder()}) {}

}  // namespace torch::nn
