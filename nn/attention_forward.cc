// functional::multi_head_attention_forward of nn/attention.h.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "nn/attention.h"
#include "nn/functional.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/index_ops.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/rearrange.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn::functional {
namespace {

constexpr std::string_view kName = "multi_head_attention_forward";

using Options = MultiheadAttentionForwardFuncOptions;

[[noreturn]] void refuse(Category category, const std::string& text) { fail(category, kName, text); }

void check_mask(const Tensor& mask, std::string_view name, const Shape& wanted) {
  if (mask.dtype() != kBool && !is_floating(mask.dtype()))
    refuse(Category::dtype_mismatch,
           fmt::format("{} is {}: neither bool nor floating", name, describe(mask)));
  if (!(mask.sym_sizes() == wanted))
    refuse(Category::shape_mismatch,
           fmt::format("{} is {}, which must be {}", name, describe(mask), to_string(wanted)));
}

// To be added to scores: -infinity where a bool mask is true.
Tensor added(const Tensor& mask, ScalarType dtype) {
  if (mask.dtype() != kBool) return mask.to(dtype);
  return masked_fill(zeros(mask.sym_sizes(), {dtype, mask.device()}), mask,
                     -std::numeric_limits<double>::infinity());
}

// One call: its inputs with a batch, and their sizes. Inputs that are one tensor stay one tensor.
class HeadedCall {
 public:
  HeadedCall(const Tensor& query, const Tensor& key, const Tensor& value, const Options& options);
  AttentionOutput run() const;

 private:
  struct Projected {
    Tensor query, key, value;
  };

  void check_inputs(const Tensor& query, const Tensor& key, const Tensor& value) const;
  Projected projected() const;
  Tensors projected(const Tensor& x, int64_t first, int64_t count) const;
  int64_t further_keys() const { return o_.bias_k.defined() + o_.add_zero_attn; }
  Tensor keys(const Tensor& projected, const Tensor& fixed, const Tensor& bias) const;
  Tensor in_heads(const Tensor& x) const;
  Tensor joined(const Tensor& x) const;
  Tensor causal_mask() const;
  Tensor merged_mask() const;
  AttentionOutput attend(const Tensor& q, const Tensor& k, const Tensor& v) const;

  const Options& o_;
  bool is_batch_, batch_first_;
  int64_t head_width_ = 0;
  Tensor query_, key_, value_;
  Dim batch_, queries_, keys_;
};

HeadedCall::HeadedCall(const Tensor& query, const Tensor& key, const Tensor& value, const Options& options)
    : o_(options), is_batch_(query.dim() == 3), batch_first_(options.batch_first || !is_batch_) {
  check_inputs(query, key, value);
  head_width_ = o_.embed_dim_to_check / o_.num_heads;
  const auto batched = [&](const Tensor& x) { return is_batch_ ? x : unsqueeze(x, 0); };
  query_ = batched(query);
  key_ = key.is_same(query) ? query_ : batched(key);
  value_ = value.is_same(key) ? key_ : batched(value);
  batch_ = query_.sym_size(batch_first_ ? 0 : 1);
  queries_ = query_.sym_size(batch_first_ ? 1 : 0);
  keys_ = o_.static_k.defined() ? o_.static_k.sym_size(1) : key_.sym_size(batch_first_ ? 1 : 0);
}

void HeadedCall::check_inputs(const Tensor& query, const Tensor& key, const Tensor& value) const {
  const int64_t width = o_.embed_dim_to_check, heads = o_.num_heads;
  if (width < 1 || heads < 1 || width % heads != 0)
    refuse(Category::bad_argument, fmt::format("{} heads do not divide a width of {}", heads, width));
  if (o_.bias_k.defined() != o_.bias_v.defined())
    refuse(Category::bad_argument, "of bias_k and bias_v one is given without the other");
  for (const Tensor* x : {&query, &key, &value})
    if (x->dim() != query.dim() || (x->dim() != 2 && x->dim() != 3))
      refuse(Category::bad_dim,
             fmt::format("query {}, key {} and value {} must all have two dims, or three with a batch",
                         describe(query), describe(key), describe(value)));
  const int batch_dim = o_.batch_first ? 0 : 1;
  if (!(query.sym_size(-1) == width))
    refuse(Category::shape_mismatch,
           fmt::format("query is {}, whose last dim must have {}", describe(query), width));
  if (!(key.sym_size(0) == value.sym_size(0)) ||
      (is_batch_ &&
       !(key.sym_size(1) == value.sym_size(1) && query.sym_size(batch_dim) == key.sym_size(batch_dim))))
    refuse(Category::shape_mismatch,
           fmt::format("query {}, key {} and value {}: batches, or numbers of keys and values, differ",
                       describe(query), describe(key), describe(value)));
}

// The blocks `first`, ... of in_proj_weight: queries, keys, values.
Tensors HeadedCall::projected(const Tensor& x, int64_t first, int64_t count) const {
  const int64_t width = o_.embed_dim_to_check;
  const auto rows = [&](const Tensor& w) {
    return count == 3 || !w.defined() ? w : narrow(w, 0, first * width, count * width);
  };
  const Tensor all = linear(x, rows(o_.in_proj_weight), rows(o_.in_proj_bias));
  return count == 1 ? Tensors{all} : chunk(all, count, -1);
}

HeadedCall::Projected HeadedCall::projected() const {
  if (o_.use_separate_proj_weight) {
    const Tensors b = o_.in_proj_bias.defined() ? chunk(o_.in_proj_bias, 3) : Tensors(3);
    return {linear(query_, o_.q_proj_weight, b[0]), linear(key_, o_.k_proj_weight, b[1]),
            linear(value_, o_.v_proj_weight, b[2])};
  }
  if (!key_.is_same(value_))
    return {projected(query_, 0, 1)[0], projected(key_, 1, 1)[0], projected(value_, 2, 1)[0]};
  if (query_.is_same(key_)) {
    const Tensors p = projected(query_, 0, 3);
    return {p[0], p[1], p[2]};
  }
  const Tensors p = projected(key_, 1, 2);
  return {projected(query_, 0, 1)[0], p[0], p[1]};
}

// To (N, H, length, E / H).
Tensor HeadedCall::in_heads(const Tensor& x) const {
  const Tensor heads = x.view({x.sym_size(0), x.sym_size(1), o_.num_heads, head_width_});
  return batch_first_ ? transpose(heads, 1, 2) : permute(heads, {1, 2, 0, 3});
}

// Back from there.
Tensor HeadedCall::joined(const Tensor& x) const {
  const Dim width = o_.embed_dim_to_check;
  return batch_first_ ? reshape(transpose(x, 1, 2), {batch_, queries_, width})
                      : reshape(permute(x, {2, 0, 1, 3}), {queries_, batch_, width});
}

// The keys, or the values, and what is to follow them, in heads.
Tensor HeadedCall::keys(const Tensor& projected, const Tensor& fixed, const Tensor& bias) const {
  const Tensor own =
      fixed.defined() ? reshape(fixed, {batch_, o_.num_heads, keys_, head_width_}) : in_heads(projected);
  if (further_keys() == 0) return own;
  const Shape one{batch_, o_.num_heads, 1, head_width_};
  Tensors parts{own};
  if (bias.defined()) parts.push_back(expand_to(reshape(bias, {1, o_.num_heads, 1, head_width_}), one));
  if (o_.add_zero_attn) parts.push_back(zeros(one, {own.dtype(), own.device()}));
  return cat(parts, 2);
}

// True above the diagonal.
Tensor HeadedCall::causal_mask() const { return triu(ones({queries_, keys_}, {kBool, query_.device()}), 1); }

// What the masks leave out together, broadcast to (N, H, L, S and further keys): bool, or to be added. Undefined if
// there is none.
Tensor HeadedCall::merged_mask() const {
  Tensor merged = o_.attn_mask;
  if (!merged.defined() && o_.is_causal) merged = causal_mask();
  if (merged.defined() && merged.dim() == 3) {
    check_mask(merged, "attn_mask", {batch_ * o_.num_heads, queries_, keys_});
    merged = reshape(merged, {batch_, o_.num_heads, queries_, keys_});
  } else if (merged.defined()) {
    check_mask(merged, "attn_mask", {queries_, keys_});
  }
  if (o_.key_padding_mask.defined()) {
    check_mask(o_.key_padding_mask, "key_padding_mask", is_batch_ ? Shape{batch_, keys_} : Shape{keys_});
    const Tensor padding = reshape(o_.key_padding_mask, {batch_, 1, 1, keys_});
    if (!merged.defined())
      merged = padding;
    else if (merged.dtype() == kBool && padding.dtype() == kBool)
      merged = logical_or(merged, padding);
    else
      merged = added(merged, query_.dtype()) + added(padding, query_.dtype());
  }
  if (!merged.defined() || further_keys() == 0) return merged;
  Shape shape = merged.sym_sizes();
  shape[shape.rank() - 1] = further_keys();
  return cat({merged, zeros(shape, {merged.dtype(), merged.device()})}, -1);
}

AttentionOutput HeadedCall::attend(const Tensor& q, const Tensor& k, const Tensor& v) const {
  const double dropout_p = o_.training ? o_.dropout_p : 0;
  const bool is_fused_causal =
      o_.is_causal && !o_.need_weights && !o_.key_padding_mask.defined() && further_keys() == 0;
  if (is_fused_causal) return {scaled_dot_product_attention(q, k, v, {}, dropout_p, true), {}};
  Tensor mask = merged_mask();
  if (mask.defined()) mask = mask.dtype() == kBool ? logical_not(mask) : mask.to(q.dtype());
  if (!o_.need_weights) return {scaled_dot_product_attention(q, k, v, mask, dropout_p), {}};
  return ops::attention_and_weights(q, k, v, mask, dropout_p,
                                    1 / std::sqrt(static_cast<double>(head_width_)));
}

AttentionOutput HeadedCall::run() const {
  const Projected p = projected();
  auto [output, weights] =
      attend(in_heads(p.query), keys(p.key, o_.static_k, o_.bias_k), keys(p.value, o_.static_v, o_.bias_v));
  output = linear(joined(output), o_.out_proj_weight, o_.out_proj_bias);
  if (weights.defined() && o_.average_attn_weights) weights = mean(weights, 1);
  if (is_batch_) return {output, weights};
  return {squeeze(output, 0), weights.defined() ? squeeze(weights, 0) : weights};
}

}  // namespace

AttentionOutput multi_head_attention_forward(Operand query, const Tensor& key, const Tensor& value,
                                             const MultiheadAttentionForwardFuncOptions& options) {
  const NamedCall call(kName, query.where());
  return HeadedCall(query.tensor(), key, value, options).run();
}

}  // namespace retrograd::nn::functional
