// See ops/reshaping.h.
#include "ops/reshaping.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/family_parts.h"
#include "ops/rearrange.h"
#include "ops/scan.h"

namespace retrograd::inline v0 {
namespace {

void check_rank(Operand x, int least, std::string_view op) {
  if (shape_of(x).rank() < least)
    fail(Category::bad_dim, op, fmt::format("{} has fewer than {} dims", describe(x.tensor()), least),
         x.where());
}

// `shape` with dims of size 1 up to a rank, in front.
Shape extended(Shape shape, int rank) {
  while (shape.rank() < rank) shape.insert(0, 1);
  return shape;
}

template <auto F>
Tensors of_each(const Tensors& tensors, SourceLocation where) {
  Tensors results;
  for (const Tensor& x : tensors) results.push_back(F(Operand(x, where)));
  return results;
}

}  // namespace

Tensor ravel(Operand x) {
  const NamedCall call("ravel", x.where());
  return flat(x.tensor(), x.where());
}

Tensor atleast_1d(Operand x) {
  const NamedCall call("atleast_1d", x.where());
  return shape_of(x).rank() ? x.tensor() : reshape_to(x, {1});
}

Tensor atleast_2d(Operand x) {
  const NamedCall call("atleast_2d", x.where());
  return shape_of(x).rank() < 2 ? reshape_to(x, extended(shape_of(x), 2)) : x.tensor();
}

Tensor atleast_3d(Operand x) {
  const NamedCall call("atleast_3d", x.where());
  if (shape_of(x).rank() >= 3) return x.tensor();
  Shape shape = extended(shape_of(x), 2);
  shape.push_back(1);
  return reshape_to(x, shape);
}

Tensors atleast_1d(const Tensors& tensors, SourceLocation where) {
  return of_each<static_cast<Tensor (*)(Operand)>(atleast_1d)>(tensors, where);
}
Tensors atleast_2d(const Tensors& tensors, SourceLocation where) {
  return of_each<static_cast<Tensor (*)(Operand)>(atleast_2d)>(tensors, where);
}
Tensors atleast_3d(const Tensors& tensors, SourceLocation where) {
  return of_each<static_cast<Tensor (*)(Operand)>(atleast_3d)>(tensors, where);
}

Tensor swapaxes(Operand x, int64_t axis0, int64_t axis1) {
  const NamedCall call("swapaxes", x.where());
  return transpose(x, axis0, axis1);
}

Tensor swapdims(Operand x, int64_t dim0, int64_t dim1) {
  const NamedCall call("swapdims", x.where());
  return transpose(x, dim0, dim1);
}

Tensor moveaxis(Operand x, const IntArray& source, const IntArray& destination) {
  const NamedCall call("moveaxis", x.where());
  return movedim(x, source, destination);
}

namespace {

// The sizes with the one that is -1 inferred, for a dim of n.
Shape inferred(const IntArray& sizes, Dim n, SourceLocation where) {
  Shape shape;
  Dim product = 1;
  int open = -1;
  for (const int64_t size : sizes) {
    if (size < -1 || (size == -1 && open >= 0))
      fail(Category::bad_argument, "unflatten", "a size is negative, or several are to be inferred", where);
    if (size == -1)
      open = shape.rank();
    else
      product *= size;
    shape.push_back(size == -1 ? 1 : size);
  }
  if (open >= 0 && !(product == 0) && n % product == 0)
    shape[open] = n / product;
  else if (open >= 0 || !(product == n))
    fail(Category::shape_mismatch, "unflatten",
         fmt::format("the sizes do not multiply up to the dim of {}", to_string(n)), where);
  return shape;
}

}  // namespace

Tensor unflatten(Operand x, int64_t dim, const IntArray& sizes) {
  const NamedCall call("unflatten", x.where());
  check_rank(x, 1, "unflatten");
  if (sizes.empty()) fail(Category::bad_argument, "unflatten", "there are no sizes", x.where());
  const Shape& from = shape_of(x);
  const int d = wrap_dim(dim, from.rank(), "unflatten");
  Shape shape;
  for (int i = 0; i < d; ++i) shape.push_back(from[i]);
  for (const Dim size : inferred(sizes, from[d], x.where())) shape.push_back(size);
  for (int i = d + 1; i < from.rank(); ++i) shape.push_back(from[i]);
  return reshape_to(x, shape);  // a view: a dim can always be taken apart
}

Tensor view_as(Operand x, const Tensor& other) {
  const NamedCall call("view_as", x.where());
  return view(x, shape_of(other));
}

Tensor reshape_as(Operand x, const Tensor& other) {
  const NamedCall call("reshape_as", x.where());
  return reshape(x, shape_of(other));
}

Tensor expand_as(Operand x, const Tensor& other) {
  const NamedCall call("expand_as", x.where());
  return expand(x, shape_of(other));
}

Tensor rot90(Operand x, int64_t k, const IntArray& dims) {
  const NamedCall call("rot90", x.where());
  if (dims.size() != 2)
    fail(Category::bad_argument, "rot90", fmt::format("{} dims, where two are needed", dims.size()),
         x.where());
  check_rank(x, 2, "rot90");
  const int a = wrap_dim(dims[0], shape_of(x).rank(), "rot90"),
            b = wrap_dim(dims[1], shape_of(x).rank(), "rot90");
  if (a == b) fail(Category::bad_dim, "rot90", fmt::format("dim {} is given twice", a), x.where());
  switch (k & 3) {  // k modulo 4, for negative k as well
    case 0: return clone(x);
    case 1: return transpose(Operand(flip(x, {b}), x.where()), a, b);
    case 2: return flip(x, {a, b});
    default: return transpose(Operand(flip(x, {a}), x.where()), a, b);
  }
}

Tensor fliplr(Operand x) {
  const NamedCall call("fliplr", x.where());
  check_rank(x, 2, "fliplr");
  return flip(x, {1});
}

Tensor flipud(Operand x) {
  const NamedCall call("flipud", x.where());
  check_rank(x, 1, "flipud");
  return flip(x, {0});
}

Tensor kron(Operand x, const Tensor& other) {
  const NamedCall call("kron", x.where());
  const int rank = std::max(shape_of(x).rank(), shape_of(other).rank());
  if (2 * rank > kMaxRank)
    fail(Category::unsupported, "kron", fmt::format("{} dims are more than {}", rank, kMaxRank / 2),
         x.where());
  const Shape blocks = extended(shape_of(x), rank), block = extended(shape_of(other), rank);
  Shape outer, inner, result;  // the dims of both alternate: [a, 1, b, 1] and [1, c, 1, d]
  for (int i = 0; i < rank; ++i) {
    outer.push_back(blocks[i]), outer.push_back(1);
    inner.push_back(1), inner.push_back(block[i]);
    result.push_back(blocks[i] * block[i]);
  }
  const Tensor product =
      mul(Operand(reshape_to(x, outer), x.where()), reshape_to(Operand(other, x.where()), inner));
  return reshape_to(Operand(product, x.where()), result);
}

// Products of equal factors: without a division or a logarithm, right at 0 in all orders.
Tensor vander(Operand x, std::optional<int64_t> N, bool increasing) {
  const NamedCall call("vander", x.where());
  check_rank(x, 1, "vander");
  if (N && *N < 0) fail(Category::bad_argument, "vander", fmt::format("{} powers", *N), x.where());
  Shape shape = shape_of(x);
  shape.push_back(N ? Dim(*N) : shape.back());
  const Tensor factor = is_integral(x.tensor().dtype(), true) ? to(x, kInt64) : x.tensor();
  const Tensor factors = expand_to(Operand(unsqueeze(Operand(factor, x.where()), -1), x.where()), shape);
  return ops::exclusive_cumprod(Operand(factors, x.where()), shape.rank() - 1, !increasing);
}

}  // namespace retrograd
