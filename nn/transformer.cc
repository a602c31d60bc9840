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

template <class Layer>
void append_copies(ModuleList<Layer>& layers, const Layer& given, int64_t count, SourceLocation where) {
  if (count < 0) fail(Category::bad_argument, "Transformer", fmt::format("{} layers", count), where);
  const Tensor& like = given.linear1.weight;
  const StateDict values = given.state_dict();
  for (int64_t i = 0; i < count; ++i) {
    Layer& layer = layers.emplace_back(given.d_model(), given.nhead(), given.options(), where);
    layer.to(like.dtype(), where);
    layer.to(like.device(), where);
    layer.load_state_dict(values, true, where);
  }
}

void add_norm(Module* owner, std::optional<LayerNorm>& norm, const std::optional<LayerNormOptions>& options,
              int64_t width) {
  if (options) norm.emplace(owner, "norm", IntArray{width}, *options);
}

TransformerLayerOptions layer_options(const TransformerOptions& o) {
  return {o.dim_feedforward, o.dropout, o.activation, o.layer_norm_eps, o.batch_first, o.norm_first, o.bias};
}
TransformerStackOptions stack_options(const TransformerOptions& o) {
  return {.norm = LayerNormOptions{.eps = o.layer_norm_eps, .bias = o.bias}};
}

}  // namespace

TransformerEncoder::TransformerEncoder(Module* parent, std::string name,
                                       const TransformerEncoderLayer& encoder_layer, int64_t num_layers,
                                       TransformerEncoderOptions options, SourceLocation where)
    : Module(parent, std::move(name)), layers(this, "layers") {
  append_copies(layers, encoder_layer, num_layers, where);
  add_norm(this, norm, options.norm, encoder_layer.d_model());
}

Tensor TransformerEncoder::forward(Operand src, const Tensor& mask, const Tensor& src_key_padding_mask,
                                   bool is_causal) const {
  const CallScope scope(src.where());
  Tensor x = src.tensor();
  for (const auto& layer : layers.items()) x = (*layer)(x, mask, src_key_padding_mask, is_causal);
  return norm ? (*norm)(x) : x;
}

TransformerDecoder::TransformerDecoder(Module* parent, std::string name,
                                       const TransformerDecoderLayer& decoder_layer, int64_t num_layers,
                                       TransformerDecoderOptions options, SourceLocation where)
    : Module(parent, std::move(name)), layers(this, "layers") {
  append_copies(layers, decoder_layer, num_layers, where);
  add_norm(this, norm, options.norm, decoder_layer.d_model());
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
  return norm ? (*norm)(x) : x;
}

Transformer::Transformer(Module* parent, std::string name, TransformerOptions o, SourceLocation where)
    : Module(parent, std::move(name)),
      encoder(this, "encoder",
              TransformerEncoderLayer(nullptr, "", o.d_model, o.nhead, layer_options(o), where),
              o.num_encoder_layers, stack_options(o), where),
      decoder(this, "decoder",
              TransformerDecoderLayer(nullptr, "", o.d_model, o.nhead, layer_options(o), where),
              o.num_decoder_layers, stack_options(o), where) {
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
