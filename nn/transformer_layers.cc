// See nn/transformer_layers.h. Each forward opens the scope of its caller's line, as in nn/layers.cc.
#include "nn/transformer_layers.h"

#include <fmt/format.h>

#include "nn/functional.h"
#include "ops/arithmetic.h"
#include "ops/operators.h"

namespace retrograd::inline v0::nn {
namespace {

std::function<Tensor(const Tensor&)> function_of(const TransformerActivation& activation,
                                                 SourceLocation where) {
  if (const auto* function = std::get_if<1>(&activation); function && *function) return *function;
  const std::string name = activation.index() == 0 ? std::get<0>(activation) : "";
  if (name == "relu") return [](const Tensor& x) { return relu(x); };
  if (name == "gelu") return [](const Tensor& x) { return gelu(x); };
  fail(Category::bad_argument, "TransformerLayer",
       fmt::format("the activation \"{}\" is neither \"relu\", \"gelu\" nor a function", name), where);
}

}  // namespace

namespace detail {

TransformerLayer::TransformerLayer(Module* parent, std::string name, int64_t width, int64_t heads,
                                   const TransformerLayerOptions& o, SourceLocation where)
    : Module(parent, std::move(name)),
      d_model(width),
      nhead(heads),
      options(o),
      activation_(function_of(o.activation, where)) {}

MultiheadAttentionOptions TransformerLayer::attention_options() const {
  return {.dropout = options.dropout, .bias = options.bias, .batch_first = options.batch_first};
}

template <class Part>
Tensor TransformerLayer::residual(const Tensor& x, const LayerNorm& norm, Part&& part) const {
  return options.norm_first ? x + part(norm(x)) : norm(x + part(x));
}

}  // namespace detail

TransformerEncoderLayer::TransformerEncoderLayer(Module* parent, std::string name, int64_t d_model,
                                                 int64_t nhead, TransformerEncoderLayerOptions o,
                                                 SourceLocation where)
    : Layer(parent, std::move(name), d_model, nhead, o, where),
      self_attn(this, "self_attn", d_model, nhead, attention_options(), where),
      linear1(this, "linear1", d_model, o.dim_feedforward, {.bias = o.bias}),
      dropout(this, "dropout", o.dropout, {}, where),
      linear2(this, "linear2", o.dim_feedforward, d_model, {.bias = o.bias}),
      norm1(this, "norm1", {d_model}, norm_options()),
      norm2(this, "norm2", {d_model}, norm_options()),
      dropout1(this, "dropout1", o.dropout, {}, where),
      dropout2(this, "dropout2", o.dropout, {}, where) {}

Tensor TransformerEncoderLayer::forward(Operand src, const Tensor& src_mask,
                                        const Tensor& src_key_padding_mask, bool is_causal) const {
  const CallScope scope(src.where());
  const Tensor mixed = residual(src.tensor(), norm1, [&](const Tensor& x) {
    return dropout1(self_attn(x, x, x, src_key_padding_mask, false, src_mask, true, is_causal).output);
  });
  return residual(mixed, norm2,
                  [&](const Tensor& x) { return dropout2(linear2(dropout(activation(linear1(x))))); });
}

Tensor TransformerEncoderLayer::operator()(Operand src, const Tensor& src_mask,
                                           const Tensor& src_key_padding_mask, bool is_causal) const {
  return call(*this, src, src_mask, src_key_padding_mask, is_causal);
}

TransformerDecoderLayer::TransformerDecoderLayer(Module* parent, std::string name, int64_t d_model,
                                                 int64_t nhead, TransformerDecoderLayerOptions o,
                                                 SourceLocation where)
    : Layer(parent, std::move(name), d_model, nhead, o, where),
      self_attn(this, "self_attn", d_model, nhead, attention_options(), where),
      multihead_attn(this, "multihead_attn", d_model, nhead, attention_options(), where),
      linear1(this, "linear1", d_model, o.dim_feedforward, {.bias = o.bias}),
      dropout(this, "dropout", o.dropout, {}, where),
      linear2(this, "linear2", o.dim_feedforward, d_model, {.bias = o.bias}),
      norm1(this, "norm1", {d_model}, norm_options()),
      norm2(this, "norm2", {d_model}, norm_options()),
      norm3(this, "norm3", {d_model}, norm_options()),
      dropout1(this, "dropout1", o.dropout, {}, where),
      dropout2(this, "dropout2", o.dropout, {}, where),
      dropout3(this, "dropout3", o.dropout, {}, where) {}

Tensor TransformerDecoderLayer::forward(Operand tgt, const Tensor& memory, const Tensor& tgt_mask,
                                        const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                        const Tensor& memory_key_padding_mask, bool tgt_is_causal,
                                        bool memory_is_causal) const {
  const CallScope scope(tgt.where());
  const Tensor own = residual(tgt.tensor(), norm1, [&](const Tensor& x) {
    return dropout1(self_attn(x, x, x, tgt_key_padding_mask, false, tgt_mask, true, tgt_is_causal).output);
  });
  const Tensor mixed = residual(own, norm2, [&](const Tensor& x) {
    return dropout2(
        multihead_attn(x, memory, memory, memory_key_padding_mask, false, memory_mask, true, memory_is_causal)
            .output);
  });
  return residual(mixed, norm3,
                  [&](const Tensor& x) { return dropout3(linear2(dropout(activation(linear1(x))))); });
}

Tensor TransformerDecoderLayer::operator()(Operand tgt, const Tensor& memory, const Tensor& tgt_mask,
                                           const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                           const Tensor& memory_key_padding_mask, bool tgt_is_causal,
                                           bool memory_is_causal) const {
  return call(*this, tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
              tgt_is_causal, memory_is_causal);
}

std::tuple<int64_t, int64_t, TransformerLayerOptions> detail::TransformerLayer::arguments() const {
  return {d_model, nhead, options};
}

}  // namespace retrograd::nn
