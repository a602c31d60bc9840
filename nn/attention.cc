// The module of nn/attention.h. Each forward opens the scope of its caller's line, as in nn/layers.cc.
#include "nn/attention.h"

#include <fmt/format.h>

#include "nn/init.h"
#include "ops/creation.h"

namespace retrograd::inline v0::nn {
namespace {

using Options = MultiheadAttentionOptions;

int64_t checked_width(int64_t width, int64_t heads, const Options& o, SourceLocation where) {
  const auto refuse = [&](const std::string& text) {
    fail(Category::bad_argument, MultiheadAttention::type_name, text, where);
  };
  if (width < 1 || heads < 1 || width % heads != 0)
    refuse(fmt::format("{} heads do not divide a width of {}", heads, width));
  if (o.kdim.value_or(1) < 1 || o.vdim.value_or(1) < 1)
    refuse(
        fmt::format("widths of {} and {} for key and value", o.kdim.value_or(width), o.vdim.value_or(width)));
  if (!(o.dropout >= 0 && o.dropout <= 1))
    refuse(fmt::format("the probability {} is outside [0, 1]", o.dropout));
  return width;
}

// Whether queries, keys and values are equally wide, so that one weight projects them.
bool is_packed(const MultiheadAttention& m) {
  return m.options.kdim.value_or(m.embed_dim) == m.embed_dim &&
         m.options.vdim.value_or(m.embed_dim) == m.embed_dim;
}

Tensor packed_weight(const MultiheadAttention& m) {
  return is_packed(m) ? empty({Dim::checked_mul(3, m.embed_dim), m.embed_dim}) : Tensor();
}
Tensor separate_weight(const MultiheadAttention& m, std::optional<int64_t> columns) {
  return is_packed(m) ? Tensor() : empty({m.embed_dim, columns.value_or(m.embed_dim)});
}
Tensor further_key(const MultiheadAttention& m) {
  return m.options.add_bias_kv ? empty({1, 1, m.embed_dim}) : Tensor();
}

}  // namespace

MultiheadAttention::MultiheadAttention(Module* parent, std::string name, int64_t width, int64_t heads,
                                       Options o, SourceLocation where)
    : Layer(parent, std::move(name)),
      embed_dim(checked_width(width, heads, o, where)),
      num_heads(heads),
      options(o),
      in_proj_weight(this, "in_proj_weight", packed_weight(*this)),
      q_proj_weight(this, "q_proj_weight", separate_weight(*this, {})),
      k_proj_weight(this, "k_proj_weight", separate_weight(*this, o.kdim)),
      v_proj_weight(this, "v_proj_weight", separate_weight(*this, o.vdim)),
      in_proj_bias(this, "in_proj_bias", o.bias ? zeros({Dim::checked_mul(3, width)}) : Tensor()),
      bias_k(this, "bias_k", further_key(*this)),
      bias_v(this, "bias_v", further_key(*this)),
      out_proj(this, "out_proj", width, width, {.bias = o.bias}) {
  for (const Parameter* p : {&in_proj_weight, &q_proj_weight, &k_proj_weight, &v_proj_weight})
    if (p->defined()) init::xavier_uniform_(*p);
  for (const Parameter* p : {&bias_k, &bias_v})
    if (p->defined()) init::xavier_normal_(*p);
  if (o.bias) init::zeros_(out_proj.bias);
}

MultiheadAttention::Output MultiheadAttention::forward(Operand query, const Tensor& key, const Tensor& value,
                                                       const Tensor& key_padding_mask, bool need_weights,
                                                       const Tensor& attn_mask, bool average_attn_weights,
                                                       bool is_causal) const {
  const CallScope scope(query.where());
  return functional::multi_head_attention_forward(query, key, value,
                                                  {.embed_dim_to_check = embed_dim,
                                                   .num_heads = num_heads,
                                                   .in_proj_weight = in_proj_weight,
                                                   .in_proj_bias = in_proj_bias,
                                                   .bias_k = bias_k,
                                                   .bias_v = bias_v,
                                                   .add_zero_attn = options.add_zero_attn,
                                                   .dropout_p = options.dropout,
                                                   .out_proj_weight = out_proj.weight,
                                                   .out_proj_bias = out_proj.bias,
                                                   .training = is_training(),
                                                   .key_padding_mask = key_padding_mask,
                                                   .need_weights = need_weights,
                                                   .attn_mask = attn_mask,
                                                   .use_separate_proj_weight = !is_packed(*this),
                                                   .q_proj_weight = q_proj_weight,
                                                   .k_proj_weight = k_proj_weight,
                                                   .v_proj_weight = v_proj_weight,
                                                   .average_attn_weights = average_attn_weights,
                                                   .is_causal = is_causal,
                                                   .batch_first = options.batch_first});
}

MultiheadAttention::Output MultiheadAttention::operator()(Operand query, const Tensor& key,
                                                          const Tensor& value, const Tensor& key_padding_mask,
                                                          bool need_weights, const Tensor& attn_mask,
                                                          bool average_attn_weights, bool is_causal) const {
  return call(*this, query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights,
              is_causal);
}

std::tuple<int64_t, int64_t, MultiheadAttentionOptions> MultiheadAttention::arguments() const {
  return {embed_dim, num_heads, options};
}

}  // namespace retrograd::nn
