// See ops/join.h.
#include "ops/join.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/attributes.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace ops {

void Cat::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& first = *call.operands[0];
  Shape shape = first.shape();
  const int d = checked_dim(call, call.attrs_as<Attrs>().dim, shape.rank());
  for (size_t k = 1; k < call.operands.size(); ++k) {
    const TensorImpl& x = *call.operands[k];
    if (x.dtype() != first.dtype())
      fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
    if (x.rank() != shape.rank())
      fail_call(call, Category::bad_dim, "operands have different numbers of dimensions");
    for (int i = 0; i < shape.rank(); ++i)
      if (i != d && !(x.shape()[i] == shape[i]))
        fail_call(call, Category::shape_mismatch, fmt::format("sizes differ in dim {}", i));
    shape[d] += x.shape()[d];
  }
  outputs[0]->set_type(first.dtype(), first.device(), shape);
}

void Cat::vjp(RuleContext& c) {
  const int d = static_cast<int>(c.attrs<Attrs>().dim);
  Dim start = 0;
  for (int i = 0; i < c.operands(); ++i) {
    const Dim length = c.type(i).shape[d];
    if (c.needs(i)) c.give(i, narrow(Operand(c.grad(), c.where()), d, start, length));
    start += length;
  }
}

}  // namespace ops

namespace {

// For more tensors than an op may have operands.
Tensors cat_pieces(const Tensors& parts, int64_t dim, SourceLocation where) {
  Tensors pieces;
  for (size_t begin = 0; begin < parts.size(); begin += kMaxOperands) {
    const auto first = parts.begin() + static_cast<std::ptrdiff_t>(begin);
    const size_t count = std::min(kMaxOperands, parts.size() - begin);
    pieces.push_back(cat(Tensors(first, first + static_cast<std::ptrdiff_t>(count)), dim, where));
  }
  return pieces;
}

}  // namespace

Tensor cat(const Tensors& tensors, int64_t dim, SourceLocation where) {
  const NamedCall call("cat", where);
  if (tensors.empty()) fail(Category::bad_argument, "cat", "there are no tensors", where);
  TypePromotion join;
  Tensors parts;
  const bool all_vectors =
      std::all_of(tensors.begin(), tensors.end(), [](const Tensor& x) { return x.dim() == 1; });
  for (const Tensor& x : tensors) {
    const Shape& shape = x.impl().shape();
    if (shape.rank() == 0)
      fail(Category::bad_dim, "cat", "a tensor without dimensions cannot be joined. Hint: stack", where);
    join.add_tensor(x.dtype(), false);
    if (all_vectors || shape.rank() != 1 || shape[0].raw() != 0) parts.push_back(x);
  }
  if (parts.empty()) parts.push_back(tensors[0]);
  const ScalarType dtype = join.result();
  if (dtype == ScalarType::Undefined)
    fail(Category::dtype_mismatch, "cat", "these dtypes have none in common", where);
  std::vector<TensorImpl*> operands;
  for (Tensor& x : parts) {
    x = to(Operand(x, where), dtype);
    operands.push_back(x.get());
  }
  if (parts.size() > kMaxOperands) return cat(cat_pieces(parts, dim, where), dim, where);
  ops::Cat::Attrs attrs{wrap_dim(dim, parts[0].impl().rank(), "cat")};
  Tensor result;
  Emitter::current().emit({&ops::info<ops::Cat>, operands, &attrs, effective_location(where), 1}, &result);
  return result;
}

Tensor stack(const Tensors& tensors, int64_t dim, SourceLocation where) {
  const NamedCall call("stack", where);
  if (tensors.empty()) fail(Category::bad_argument, "stack", "there are no tensors", where);
  const Shape& shape = tensors[0].impl().shape();
  const int d = wrap_dim(dim, shape.rank() + 1, "stack");
  Tensors parts;
  for (const Tensor& x : tensors) {
    if (!(x.impl().shape() == shape))
      fail(Category::shape_mismatch, "stack",
           fmt::format("{} and {} have different shapes", describe(tensors[0]), describe(x)), where);
    parts.push_back(unsqueeze(Operand(x, where), d));
  }
  return cat(parts, d, where);
}

}  // namespace retrograd
