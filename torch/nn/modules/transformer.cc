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

rn::AnyModule clone_of_any(const rn::AnyModule& module) {
  return module.is_empty() ? module : module.clone();
}

}  // namespace

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& o)
    : Wrapped(o, o.d_model(), o.nhead(), transformer_layer_options(o)) {}
TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& o)
    : Wrapped(o, o.d_model(), o.nhead(), transformer_layer_options(o)) {}

TransformerEncoderImpl::TransformerEncoderImpl(const TransformerEncoderOptions& o)
    : Wrapped(o, *o.encoder_layer(), o.num_layers(),
              rn::TransformerStackOptions{.norm = clone_of_any(o.norm())}) {}
TransformerDecoderImpl::TransformerDecoderImpl(const TransformerDecoderOptions& o)
    : Wrapped(o, *o.decoder_layer(), o.num_layers(),
              rn::TransformerStackOptions{.norm = clone_of_any(o.norm())}) {}

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

// The constructor gives initial values to a custom encoder or decoder, so the copy needs its own.
std::unique_ptr<Module> TransformerImpl::remade() const {
  const retrograd::nn::detail::KeptRandomState kept;
  TransformerOptions copy = options;
  copy.custom_encoder(clone_of_any(options.custom_encoder()));
  copy.custom_decoder(clone_of_any(options.custom_decoder()));
  return clone_as<TransformerImpl>(copy);
}

}  // namespace torch::nn
