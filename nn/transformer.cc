// See nn/transformer.h. Each forward opens the scope of its caller's line, as in nn/layers.cc.
#include "nn/transformer.h"

#include <limits>

#include <fmt/format.h>

#include "engine/emitter.h"
#include "nn/init.h"
#include "ops/rearrange.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn {
namespace {

TransformerLayerOptions layer_options(const TransformerOptions& o) {
  return {o.dim_feedforward, o.dropout, o.activation, o.layer_norm_eps, o.batch_first, o.norm_first, o.bias};
}
TransformerStackOptions stack_options(const TransformerOptions& o) {
  return {.norm = LayerNormOptions{.eps = o.layer_norm_eps, .bias = o.bias}};
}

}  // namespace

namespace detail {

template <class Layer>
TransformerStack<Layer>::TransformerStack(Module* parent, std::string name, int64_t d_model, int64_t nhead,
                                          int64_t num_layers, TransformerLayerOptions layer_options,
                                          TransformerStackOptions options, SourceLocation where)
    : Module(parent, std::move(name)), layers(this, "layers") {
  if (num_layers < 0)
    fail(Category::bad_argument, "TransformerStack", fmt::format("{} layers", num_layers), where);
  for (int64_t i = 0; i < num_layers; ++i) layers.emplace_back(d_model, nhead, layer_options, where);
  if (options.norm) norm.emplace(this, "norm", IntArray{d_model}, *options.norm);
}

template <class Layer>
TransformerStack<Layer>::TransformerStack(Module* parent, std::string name, const Layer& layer,
                                          int64_t num_layers, TransformerStackOptions options,
                                          SourceLocation where)
    : TransformerStack(parent, std::move(name), layer.d_model(), layer.nhead(), num_layers, layer.options(),
                       options, where) {
  const Tensor& like = layer.linear1.weight;
  const StateDict values = layer.state_dict();
  this->to(like.dtype(), where);
  this->to(like.device(), where);
  for (const auto& copy : layers.items()) copy->load_state_dict(values, true, where);
}

template class TransformerStack<TransformerEncoderLayer>;
template class TransformerStack<TransformerDecoderLayer>;

}  // namespace detail

Tensor TransformerEncoder::forward(Operand src, const Tensor& mask, const Tensor& src_key_padding_mask,
                                   bool is_causal) const {
  const CallScope scope(src.where());
  Tensor x = src.tensor();
  for (const auto& layer : layers.items()) x = (*layer)(x, mask, src_key_padding_mask, is_causal);
  return normalized(x);
}

Tensor TransformerDecoder::forward(Operand tgt, const Tensor& memory, const Tensor& tgt_mask,
                                   const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                   const Tensor& memory_key_padding_mask, bool tgt_is_causal,
                                   bool memory_is_causal) const {
  const CallScope scope(tgt.where());
  Tensor x = tgt.tensor();
  for (const auto& layer : layers.items())
    x = (*layer)(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                 tgt_is_causal, memory_is_causal);
  return normalized(x);
}

Transformer::Transformer(Module* parent, std::string name, TransformerOptions o, SourceLocation where)
    : Module(parent, std::move(name)),
      encoder(this, "encoder", o.d_model, o.nhead, o.num_encoder_layers, layer_options(o), stack_options(o),
              where),
      decoder(this, "decoder", o.d_model, o.nhead, o.num_decoder_layers, layer_options(o), stack_options(o),
              where) {
  for (const Tensor& p : parameters())
    if (p.dim() > 1) init::xavier_uniform_(p);
}

Tensor Transformer::forward(Operand src, const Tensor& tgt, const Tensor& src_mask, const Tensor& tgt_mask,
                            const Tensor& memory_mask, const Tensor& src_key_padding_mask,
                            const Tensor& tgt_key_padding_mask, const Tensor& memory_key_padding_mask,
                            bool src_is_causal, bool tgt_is_causal, bool memory_is_causal) const {
  const CallScope scope(src.where());
  const Tensor memory = encoder(src, src_mask, src_key_padding_mask, src_is_causal);
  return decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                 tgt_is_causal, memory_is_causal);
}

Tensor Transformer::generate_square_subsequent_mask(Dim size, TensorOptions options, SourceLocation where) {
  const NoGradGuard no_grad;
  const CallScope scope(where);
  return triu(full({size, size}, -std::numeric_limits<double>::infinity(), options), 1);
}

}  // namespace retrograd::nn
