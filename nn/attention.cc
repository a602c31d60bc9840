// The module of nn/attention.h. Each forward opens the scope of its caller's line, as in nn/layers.cc.
#include "nn/attention.h"

#include <cmath>

#include <fmt/format.h>

#include "nn/init.h"
#include "ops/creation.h"

namespace retrograd::inline v0::nn {

bool MultiheadAttention::Config::is_packed() const {
  return options.kdim.value_or(embed_dim) == embed_dim && options.vdim.value_or(embed_dim) == embed_dim;
}

namespace {

// A weight, or a bias of a further key; undefined where it is switched off.
Tensor weight(bool is_on, int64_t rows, int64_t columns) { return is_on ? empty({rows, columns}) : Tensor(); }
Tensor further_key(bool is_on, int64_t width) { return is_on ? empty({1, 1, width}) : Tensor(); }

void check(int64_t width, int64_t heads, const MultiheadAttentionOptions& o, SourceLocation where) {
  const auto refuse = [&](const std::string& text) {
    fail(Category::bad_argument, "MultiheadAttention", text, where);
  };
  if (width < 1 || heads < 1 || width % heads != 0)
    refuse(fmt::format("{} heads do not divide a width of {}", heads, width));
  if (o.kdim.value_or(1) < 1 || o.vdim.value_or(1) < 1)
    refuse(
        fmt::format("widths of {} and {} for key and value", o.kdim.value_or(width), o.vdim.value_or(width)));
  if (!(o.dropout >= 0 && o.dropout <= 1))
    refuse(fmt::format("the probability {} is outside [0, 1]", o.dropout));
}

}  // namespace

MultiheadAttention::MultiheadAttention(Module* parent, std::string name, int64_t embed_dim, int64_t num_heads,
                                       MultiheadAttentionOptions o, SourceLocation where)
    : Module(parent, std::move(name)),
      config_((check(embed_dim, num_heads, o, where), Config{embed_dim, num_heads, o})),
      in_proj_weight(this, "in_proj_weight",
                     weight(config_.is_packed(), Dim::checked_mul(3, embed_dim), embed_dim)),
      q_proj_weight(this, "q_proj_weight", weight(!config_.is_packed(), embed_dim, embed_dim)),
      k_proj_weight(this, "k_proj_weight",
                    weight(!config_.is_packed(), embed_dim, o.kdim.value_or(embed_dim))),
      v_proj_weight(this, "v_proj_weight",
                    weight(!config_.is_packed(), embed_dim, o.vdim.value_or(embed_dim))),
      in_proj_bias(this, "in_proj_bias", o.bias ? zeros({Dim::checked_mul(3, embed_dim)}) : Tensor()),
      bias_k(this, "bias_k", further_key(o.add_bias_kv, embed_dim)),
      bias_v(this, "bias_v", further_key(o.add_bias_kv, embed_dim)),
      out_proj(this, "out_proj", embed_dim, embed_dim, {.bias = o.bias}) {
  for (const Parameter* p : {&in_proj_weight, &q_proj_weight, &k_proj_weight, &v_proj_weight})
    if (p->defined()) init::xavier_uniform_(*p);
  for (const Parameter* p : {&bias_k, &bias_v})
    if (p->defined()) init::normal_(*p, 0, 1 / std::sqrt(static_cast<double>(embed_dim)));  // xavier
  if (o.bias) init::zeros_(out_proj.bias);
}

MultiheadAttention::Output MultiheadAttention::forward(Operand query, const Tensor& key, const Tensor& value,
                                                       const Tensor& key_padding_mask, bool need_weights,
                                                       const Tensor& attn_mask, bool average_attn_weights,
                                                       bool is_causal) const {
  CallScope scope(query.where());
  const MultiheadAttentionOptions& o = config_.options;
  return functional::multi_head_attention_forward(query, key, value,
                                                  {.embed_dim_to_check = config_.embed_dim,
                                                   .num_heads = config_.num_heads,
                                                   .in_proj_weight = in_proj_weight,
                                                   .in_proj_bias = in_proj_bias,
                                                   .bias_k = bias_k,
                                                   .bias_v = bias_v,
                                                   .add_zero_attn = o.add_zero_attn,
                                                   .dropout_p = o.dropout,
                                                   .out_proj_weight = out_proj.weight,
                                                   .out_proj_bias = out_proj.bias,
                                                   .training = is_training(),
                                                   .key_padding_mask = key_padding_mask,
                                                   .need_weights = need_weights,
                                                   .attn_mask = attn_mask,
                                                   .use_separate_proj_weight = !config_.is_packed(),
                                                   .q_proj_weight = q_proj_weight,
                                                   .k_proj_weight = k_proj_weight,
                                                   .v_proj_weight = v_proj_weight,
                                                   .average_attn_weights = average_attn_weights,
                                                   .is_causal = is_causal,
                                                   .batch_first = o.batch_first});
}

std::unique_ptr<Module> MultiheadAttention::clone() const {
  return clone_as<MultiheadAttention>(config_.embed_dim, config_.num_heads, config_.options);
}

}  // namespace retrograd::nn
