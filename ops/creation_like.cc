// Factories with the type of another tensor (ops/creation.h): zeros_like(x), x.new_zeros(size).
//
// In vmap the function may write to what they make, in place, from values that differ between samples. So where the
// other tensor is batched, the new one is, too.
#include "engine/batching.h"
#include "engine/named_call.h"
#include "ops/creation.h"

namespace retrograd::inline v0 {
namespace {

// make(size, options), for each sample of a batched `like`.
template <class Make>
Tensor made_like(const TensorImpl& like, const Shape& size, const TensorOptions& options,
                 SourceLocation where, const Make& make) {
  const TensorOptions all_options = options.or_else({like.dtype(), like.device()});
  if (!is_batched(like)) return make(size, all_options);
  const Batching& batching = Batching::of(like, "", where);
  Tensor made = batching.made_outside(like, [&](const Tensor& all) {
    Shape batch = size;
    batch.insert(0, batching.size());
    return made_like(all.impl(), batch, TensorOptions(all_options).requires_grad(false), where, make);
  });
  if (all_options.requires_grad()) made.requires_grad_(true, where);
  return made;
}

Tensor filled_like(const TensorImpl& like, const Shape& size, Scalar value, const TensorOptions& options,
                   SourceLocation where) {
  return made_like(like, size, options, where,
                   [&](const Shape& s, const TensorOptions& o) { return full(s, value, o, where); });
}
Tensor empty_as(const TensorImpl& like, const Shape& size, const TensorOptions& options,
                SourceLocation where) {
  return made_like(like, size, options, where,
                   [&](const Shape& s, const TensorOptions& o) { return empty(s, o, where); });
}

// The cell of a named function's operand.
const TensorImpl& cell_of(const Operand& input, std::string_view op) {
  return input.tensor().impl(op, input.where());
}

}  // namespace

Tensor full_like(Operand input, Scalar value, TensorOptions options) {
  const NamedCall call("full_like", input.where());
  const TensorImpl& like = cell_of(input, "full_like");
  return filled_like(like, like.shape(), value, options, input.where());
}
Tensor zeros_like(Operand input, TensorOptions options) {
  const NamedCall call("zeros_like", input.where());
  return full_like(input, 0, options);
}
Tensor ones_like(Operand input, TensorOptions options) {
  const NamedCall call("ones_like", input.where());
  return full_like(input, 1, options);
}
Tensor empty_like(Operand input, TensorOptions options) {
  const NamedCall call("empty_like", input.where());
  const TensorImpl& like = cell_of(input, "empty_like");
  return empty_as(like, like.shape(), options, input.where());
}

Tensor Tensor::new_empty(const Shape& size, const TensorOptions& options, SourceLocation where) const {
  const NamedCall call("new_empty", where);
  return empty_as(impl("new_empty", where), size, options, where);
}
Tensor Tensor::new_empty(const Shape& size, SourceLocation where) const { return new_empty(size, {}, where); }
Tensor Tensor::new_full(const Shape& size, Scalar fill_value, const TensorOptions& options,
                        SourceLocation where) const {
  const NamedCall call("new_full", where);
  return filled_like(impl("new_full", where), size, fill_value, options, where);
}
Tensor Tensor::new_full(const Shape& size, Scalar fill_value, SourceLocation where) const {
  return new_full(size, fill_value, {}, where);
}
Tensor Tensor::new_zeros(const Shape& size, const TensorOptions& options, SourceLocation where) const {
  const NamedCall call("new_zeros", where);
  return filled_like(impl("new_zeros", where), size, 0, options, where);
}
Tensor Tensor::new_zeros(const Shape& size, SourceLocation where) const { return new_zeros(size, {}, where); }
Tensor Tensor::new_ones(const Shape& size, const TensorOptions& options, SourceLocation where) const {
  const NamedCall call("new_ones", where);
  return filled_like(impl("new_ones", where), size, 1, options, where);
}
Tensor Tensor::new_ones(const Shape& size, SourceLocation where) const { return new_ones(size, {}, where); }

}  // namespace retrograd
