// See nn/layers.h. Each forward opens a scope with its caller's line, so that no error names a line of this file.
#include "nn/layers.h"

#include <fmt/format.h>

#include "nn/functional.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn {

namespace F = functional;

CausalSelfAttention::CausalSelfAttention(Module* parent, std::string name, int64_t width, int64_t heads,
                                         CausalSelfAttentionOptions options, SourceLocation where)
    : Layer(parent, std::move(name)),
      width(width),
      heads(heads),
      options(options),
      qkv(this, "qkv", width, Dim::checked_mul(3, width), {.bias = options.bias}),
      proj(this, "proj", width, width, {.bias = options.bias}) {
  if (heads < 1 || width % heads != 0)
    fail(Category::bad_argument, type_name, fmt::format("{} heads do not divide a width of {}", heads, width),
         where);
}

Tensor CausalSelfAttention::forward(Operand x) const {
  CallScope scope(x.where());
  if (x.tensor().dim() != 3)
    fail(Category::bad_dim, type_name, "(batch, length, width) is needed, not " + describe(x.tensor()),
         x.where());
  const Dim batch = x.tensor().sym_size(0), length = x.tensor().sym_size(1);
  Tensors parts = split(qkv(x), {width, width, width}, 2);
  for (Tensor& part : parts) part = part.view({batch, length, heads, width / heads}).transpose(1, 2);
  const Tensor mixed = F::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
  return proj(mixed.transpose(1, 2).reshape({batch, length, width}));
}

std::tuple<int64_t, int64_t, CausalSelfAttentionOptions> CausalSelfAttention::arguments() const {
  return {width, heads, options};
}

}  // namespace retrograd::nn
