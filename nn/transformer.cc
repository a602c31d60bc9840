// See nn/transformer.h. Each forward opens the scope of its caller's line, as in nn/layers.cc.
#include "nn/transformer.h"

#include <limits>

#include <fmt/format.h>

#include "engine/emitter.h"
#include "nn/init.h"
#include "ops/rearrange.h"

namespace retrograd::inline v0::nn {
namespace {

template <class M>
std::shared_ptr<M> copy_of(const M& module) {
  return std::dynamic_pointer_cast<M>(std::shared_ptr<Module>(module.clone()));
}

template <class Layer>
std::vector<std::shared_ptr<Layer>> copies_of(const Layer& layer, int64_t count, SourceLocation where) {
  if (count < 0) fail(Category::bad_argument, "Transformer", fmt::format("{} layers", count), where);
  std::vector<std::shared_ptr<Layer>> copies;
  for (int64_t i = 0; i < count; ++i) copies.push_back(copy_of(layer));
  return copies;
}

TransformerLayerOptions layer_options(const TransformerOptions& o) {
  return {o.dim_feedforward, o.dropout, o.activation, o.layer_norm_eps, o.batch_first, o.norm_first, o.bias};
}

TransformerStackOptions stack_options(const TransformerOptions& o) {
  return {.norm = std::make_shared<LayerNorm>(nullptr, "", IntArray{o.d_model},
                                              LayerNormOptions{.eps = o.layer_norm_eps, .bias = o.bias})};
}

}  // namespace

namespace detail {

template <class Item>
TransformerStack<Item>::TransformerStack(Module* parent, std::string name, const Item& layer,
                                         int64_t num_layers, TransformerStackOptions options,
                                         SourceLocation where)
    : TransformerStack(parent, std::move(name), copies_of(layer, num_layers, where), options) {}

template <class Item>
TransformerStack<Item>::TransformerStack(Module* parent, std::string name,
                                         const std::vector<std::shared_ptr<Item>>& given,
                                         TransformerStackOptions options)
    : Module(parent, std::move(name)), norm(options.norm) {
  layers.extend(given);
  if (norm) register_module("norm", norm);
}

template <class Item>
std::tuple<std::vector<std::shared_ptr<Item>>, TransformerStackOptions> TransformerStack<Item>::arguments()
    const {
  std::vector<std::shared_ptr<Item>> copies;
  for (const auto& layer : layers) copies.push_back(copy_of(*layer));
  return {copies, {.norm = norm ? copy_of(*norm) : nullptr}};
}

template class TransformerStack<TransformerEncoderLayer>;
template class TransformerStack<TransformerDecoderLayer>;

}  // namespace detail

Tensor TransformerEncoder::forward(Operand src, const Tensor& mask, const Tensor& src_key_padding_mask,
                                   bool is_causal) const {
  const CallScope scope(src.where());
  Tensor x = src.tensor();
  for (const auto& layer : layers) x = (*layer)(x, mask, src_key_padding_mask, is_causal);
  return normalized(x);
}

Tensor TransformerDecoder::forward(Operand tgt, const Tensor& memory, const Tensor& tgt_mask,
                                   const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                   const Tensor& memory_key_padding_mask, bool tgt_is_causal,
                                   bool memory_is_causal) const {
  const CallScope scope(tgt.where());
  Tensor x = tgt.tensor();
  for (const auto& layer : layers)
    x = (*layer)(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                 tgt_is_causal, memory_is_causal);
  return normalized(x);
}

Transformer::Transformer(Module* parent, std::string name, TransformerOptions o, SourceLocation where)
    : Layer(parent, std::move(name)),
      options(o),
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
