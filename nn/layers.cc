// See nn/layers.h. Each forward opens a scope with its caller's line, so that no error names a line of this file.
#include "nn/layers.h"

#include <cmath>

#include <fmt/format.h>

#include "nn/functional.h"
#include "nn/init.h"
#include "ops/creation.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn {

namespace F = functional;

Linear::Linear(Module* parent, std::string name, int64_t in, int64_t out, LinearOptions options)
    : Module(parent, std::move(name)),
      weight(this, "weight", empty({out, in})),
      bias(this, "bias", options.bias ? empty({out}) : Tensor()) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  if (options.bias) init::uniform_(bias, -bound, bound);
}

Tensor Linear::forward(Operand x) const {
  CallScope scope(x.where());
  return F::linear(x, weight, bias);
}

Embedding::Embedding(Module* parent, std::string name, int64_t rows, int64_t width)
    : Module(parent, std::move(name)), weight(this, "weight", empty({rows, width})) {
  init::normal_(weight);
}

Tensor Embedding::forward(Operand index) const {
  CallScope scope(index.where());
  return F::embedding(Operand(weight, index.where()), index.defined_tensor("embedding"));
}

LayerNorm::LayerNorm(Module* parent, std::string name, const IntArray& normalized_shape,
                     LayerNormOptions options)
    : Module(parent, std::move(name)),
      weight(this, "weight", ones(normalized_shape)),
      bias(this, "bias", options.bias ? zeros(normalized_shape) : Tensor()),
      normalized_shape_(normalized_shape),
      eps_(options.eps) {}

Tensor LayerNorm::forward(Operand x) const {
  CallScope scope(x.where());
  return F::layer_norm(x, normalized_shape_, weight, bias, eps_);
}

Dropout::Dropout(Module* parent, std::string name, double p, SourceLocation where)
    : Module(parent, std::move(name)), p_(p) {
  if (!(p >= 0 && p <= 1))
    fail(Category::bad_argument, "Dropout", fmt::format("the probability {} is outside [0, 1]", p), where);
}

Tensor Dropout::forward(Operand x) const {
  CallScope scope(x.where());
  return F::dropout(x, p_, is_training());
}

Tensor ReLU::forward(Operand x) const {
  CallScope scope(x.where());
  return F::relu(x);
}

Tensor GELU::forward(Operand x) const {
  CallScope scope(x.where());
  return F::gelu(x, options_.approximate);
}

CausalSelfAttention::CausalSelfAttention(Module* parent, std::string name, int64_t width, int64_t heads,
                                         CausalSelfAttentionOptions options, SourceLocation where)
    : Module(parent, std::move(name)),
      qkv(this, "qkv", width, Dim::checked_mul(3, width), {.bias = options.bias}),
      proj(this, "proj", width, width, {.bias = options.bias}),
      heads_(heads) {
  if (heads < 1 || width % heads != 0)
    fail(Category::bad_argument, "CausalSelfAttention",
         fmt::format("{} heads do not divide a width of {}", heads, width), where);
}

Tensor CausalSelfAttention::forward(Operand x) const {
  CallScope scope(x.where());
  if (x.tensor().dim() != 3)
    fail(Category::bad_dim, "CausalSelfAttention",
         "(batch, length, width) is needed, not " + describe(x.tensor()), x.where());
  const Dim batch = x.tensor().sym_size(0), length = x.tensor().sym_size(1);
  const int64_t width = x.tensor().size(2);
  Tensors parts = split(qkv(x), {width, width, width}, 2);
  for (Tensor& part : parts) part = part.view({batch, length, heads_, width / heads_}).transpose(1, 2);
  const Tensor mixed = F::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
  return proj(mixed.transpose(1, 2).reshape({batch, length, width}));
}

}  // namespace retrograd::nn
