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

template <class Item>
std::vector<std::shared_ptr<Item>> copies_of(const Item& layer, int64_t count, SourceLocation where) {
  if (count < 0) fail(Category::bad_argument, "Transformer", fmt::format("{} layers", count), where);
  std::vector<std::shared_ptr<Item>> copies;
  for (int64_t i = 0; i < count; ++i) copies.push_back(copy_of(layer));
  return copies;
}

AnyModule cloned(const AnyModule& module) { return module.is_empty() ? module : module.clone(); }

TransformerLayerOptions layer_options(const TransformerOptions& o) {
  return {o.dim_feedforward, o.dropout, o.activation, o.layer_norm_eps, o.batch_first, o.norm_first, o.bias};
}

template <class Stack, class Item>
std::shared_ptr<Stack> stack_of(const TransformerOptions& o, int64_t num_layers, SourceLocation where) {
  const Item layer(nullptr, "", o.d_model, o.nhead, layer_options(o), where);
  const auto norm = std::make_shared<LayerNorm>(nullptr, "", IntArray{o.d_model},
                                                LayerNormOptions{.eps = o.layer_norm_eps, .bias = o.bias});
  return std::make_shared<Stack>(nullptr, "", layer, num_layers, TransformerStackOptions{.norm = norm},
                                 where);
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
  if (!norm.is_empty()) register_module("norm", norm.ptr());
}

template <class Item>
std::tuple<std::vector<std::shared_ptr<Item>>, TransformerStackOptions> TransformerStack<Item>::arguments()
    const {
  std::vector<std::shared_ptr<Item>> copies;
  for (const auto& layer : layers) copies.push_back(copy_of(*layer));
  return {copies, {.norm = cloned(norm)}};
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

Tensor TransformerEncoder::operator()(Operand src, const Tensor& mask, const Tensor& src_key_padding_mask,
                                      bool is_causal) const {
  return call(*this, src, mask, src_key_padding_mask, is_causal);
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

Tensor TransformerDecoder::operator()(Operand tgt, const Tensor& memory, const Tensor& tgt_mask,
                                      const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                      const Tensor& memory_key_padding_mask, bool tgt_is_causal,
                                      bool memory_is_causal) const {
  return call(*this, tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
              tgt_is_causal, memory_is_causal);
}

Transformer::Transformer(Module* parent, std::string name, TransformerOptions o, SourceLocation where)
    : Layer(parent, std::move(name)), options(o), encoder(o.custom_encoder), decoder(o.custom_decoder) {
  if (encoder.is_empty())
    encoder = stack_of<TransformerEncoder, TransformerEncoderLayer>(o, o.num_encoder_layers, where);
  if (decoder.is_empty())
    decoder = stack_of<TransformerDecoder, TransformerDecoderLayer>(o, o.num_decoder_layers, where);
  register_module("encoder", encoder.ptr());
  register_module("decoder", decoder.ptr());
  for (const Tensor& p : parameters())
    if (p.dim() > 1) init::xavier_uniform_(p);
}

std::tuple<TransformerOptions> Transformer::arguments() const {
  TransformerOptions copy = options;
  copy.custom_encoder = cloned(options.custom_encoder);
  copy.custom_decoder = cloned(options.custom_decoder);
  return {copy};
}

Tensor Transformer::forward(Operand src, const Tensor& tgt, const Tensor& src_mask, const Tensor& tgt_mask,
                            const Tensor& memory_mask, const Tensor& src_key_padding_mask,
                            const Tensor& tgt_key_padding_mask, const Tensor& memory_key_padding_mask,
                            bool src_is_causal, bool tgt_is_causal, bool memory_is_causal) const {
  const CallScope scope(src.where());
  const Tensor memory = encoder.forward(src, src_mask, src_key_padding_mask, src_is_causal);
  return decoder.forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                         tgt_is_causal, memory_is_causal);
}

Tensor Transformer::operator()(Operand src, const Tensor& tgt, const Tensor& src_mask, const Tensor& tgt_mask,
                               const Tensor& memory_mask, const Tensor& src_key_padding_mask,
                               const Tensor& tgt_key_padding_mask, const Tensor& memory_key_padding_mask,
                               bool src_is_causal, bool tgt_is_causal, bool memory_is_causal) const {
  return call(*this, src, tgt, src_mask, tgt_mask, memory_mask, src_key_padding_mask, tgt_key_padding_mask,
              memory_key_padding_mask, src_is_causal, tgt_is_causal, memory_is_causal);
}

Tensor Transformer::generate_square_subsequent_mask(Dim size, TensorOptions options, SourceLocation where) {
  const NoGradGuard no_grad;
  const CallScope scope(where);
  return triu(full({size, size}, -std::numeric_limits<double>::infinity(), options), 1);
}

}  // namespace retrograd::nn
