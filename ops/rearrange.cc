// See ops/rearrange.h. Padding is in ops/padding.cc.
#include "ops/rearrange.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/attributes.h"
#include "ops/batching.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/index_ops.h"
#include "ops/join.h"
#include "ops/reduce.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace ops {

void Rearrangement::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  outputs[0]->set_type(x.dtype(), x.device(), x.shape());
}

void Flip::infer(const Call& call, TensorImpl* const* outputs) {
  check_distinct_dims(call, call.attrs_as<Attrs>().dims);
  Rearrangement::infer(call, outputs);
}

void Triangle::infer(const Call& call, TensorImpl* const* outputs) {
  if (call.operands[0]->rank() < 2) fail_call(call, Category::bad_dim, "the operand is not a matrix");
  Rearrangement::infer(call, outputs);
}

Tensor Flip::transpose(RuleContext& c, int, const Tensor& g) {
  return emit<Flip>({g.get()}, c.attrs<Attrs>(), c.where());
}
Tensor Tril::transpose(RuleContext& c, int, const Tensor& g) {
  return emit<Tril>({g.get()}, c.attrs<Attrs>(), c.where());
}
Tensor Triu::transpose(RuleContext& c, int, const Tensor& g) {
  return emit<Triu>({g.get()}, c.attrs<Attrs>(), c.where());
}

// ---- batches of vmap ------------------------------------------------------------------------------------------------

namespace {

// The dims of one sample after the batch dim, which is not padded.
void skip_batch(PadAttrs& attrs) {
  for (IntList* list : {&attrs.before, &attrs.after}) {
    IntList longer{0};
    for (int64_t n : *list) longer.push_back(n);
    *list = longer;
  }
}

}  // namespace

void Pad::batch(BatchContext& c) {
  Attrs attrs = c.attrs<Attrs>();
  skip_batch(attrs);
  const Tensor x = c.value(0);
  c.give(c.run({&x, 1}, &attrs));
}

void PadBackward::batch(BatchContext& c) {
  Attrs attrs = c.attrs<Attrs>();
  skip_batch(attrs);
  attrs.size.insert(0, c.size());
  const Tensor x = c.value(0);
  c.give(c.run({&x, 1}, &attrs));
}

}  // namespace ops

namespace {

Tensor flat(Operand x) { return reshape_to(x, {x.tensor().impl().numel()}); }

// Dims before `dim`, and dims from `dim` on (or after it), as one dim each.
Dim product(const Shape& shape, int from, int to) {
  Dim n = 1;
  for (int i = from; i < to; ++i) n *= shape[i];
  return n;
}

void check_matrix(Operand x, std::string_view op) {
  if (shape_of(x).rank() < 2)
    fail(Category::bad_dim, op, fmt::format("{} is not a matrix", describe(x.tensor())), x.where());
}

}  // namespace

Tensor flip(Operand x, const IntArray& dims) {
  const NamedCall call("flip", x.where());
  const int rank = shape_of(x).rank();
  IntList list;
  uint64_t seen = 0;
  for (int64_t dim : dims) {
    const int d = wrap_dim(dim, rank, "flip");
    if (seen >> d & 1) fail(Category::bad_dim, "flip", fmt::format("dim {} is given twice", d), x.where());
    seen |= uint64_t{1} << d;
    if (rank > 0) list.push_back(d);
  }
  return ops::emit<ops::Flip>({x.tensor().get()}, {list}, x.where());
}

Tensor roll(Operand x, const IntArray& shifts, const IntArray& dims) {
  const NamedCall call("roll", x.where());
  if (dims.empty() && shifts.size() == 1) {
    const Tensor line = flat(x);
    return reshape_to(Operand(roll(Operand(line, x.where()), shifts, {0}), x.where()), shape_of(x));
  }
  if (shifts.empty() || shifts.size() != dims.size())
    fail(Category::bad_argument, "roll", fmt::format("{} shifts for {} dims", shifts.size(), dims.size()),
         x.where());
  if (shape_of(x).rank() == 0) fail(Category::bad_dim, "roll", "the operand has no dims", x.where());
  Tensor y = x.tensor();
  bool moved = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int d = wrap_dim(dims[i], shape_of(x).rank(), "roll");
    const int64_t n = shape_of(x)[d].value(), rest = n == 0 ? 0 : shifts[i] % n,
                  shift = rest < 0 ? rest + n : rest;
    if (shift == 0) continue;
    const Operand at(y, x.where());
    const Tensor back = narrow(at, d, n - shift, shift), front = narrow(at, d, 0, n - shift);
    y = cat({back, front}, d, x.where());
    moved = true;
  }
  return moved ? y : clone(x);
}

Tensor repeat(Operand x, const IntArray& repeats) {
  const NamedCall call("repeat", x.where());
  Shape shape = shape_of(x);
  const int added = static_cast<int>(repeats.size()) - shape.rank();
  if (added < 0)
    fail(Category::bad_dim, "repeat",
         fmt::format("{} repeats for {} dimensions", repeats.size(), shape.rank()), x.where());
  for (int i = 0; i < added; ++i) shape.insert(0, 1);
  Tensor y = added ? reshape_to(x, shape) : x.tensor();
  bool copied = false;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t r = repeats[static_cast<size_t>(d)];
    if (r < 0) fail(Category::bad_argument, "repeat", fmt::format("{} repeats", r), x.where());
    if (r == 1) continue;
    const Dim outer = product(shape, 0, d), inner = product(shape, d, shape.rank());
    shape[d] *= r;
    y = reshape_to(Operand(y, x.where()), {outer, 1, inner});
    y = expand_to(Operand(y, x.where()), {outer, r, inner});
    y = reshape_to(Operand(clone(Operand(y, x.where())), x.where()), shape);
    copied = true;
  }
  return copied ? y : clone(Operand(y, x.where()));
}

Tensor tile(Operand x, const IntArray& dims) {
  const NamedCall call("tile", x.where());
  IntArray repeats = dims;
  const auto rank = static_cast<size_t>(shape_of(x).rank());
  if (repeats.size() < rank) repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  return repeat(x, repeats);
}

Tensor repeat_interleave(Operand x, Dim repeats, std::optional<int64_t> dim) {
  const NamedCall call("repeat_interleave", x.where());
  if (repeats < 0)
    fail(Category::bad_argument, "repeat_interleave", fmt::format("{} repeats", to_string(repeats)),
         x.where());
  const Tensor from = dim ? x.tensor() : flat(x);
  Shape shape = from.impl().shape();
  if (shape.rank() == 0) shape.push_back(1);
  const int d = wrap_dim(dim.value_or(0), shape.rank(), "repeat_interleave");
  const Dim outer = product(shape, 0, d + 1), inner = product(shape, d + 1, shape.rank());
  shape[d] *= repeats;
  Tensor y = reshape_to(Operand(from, x.where()), {outer, 1, inner});
  y = expand_to(Operand(y, x.where()), {outer, repeats, inner});
  return reshape_to(Operand(clone(Operand(y, x.where())), x.where()), shape);
}

Tensor repeat_interleave(Operand x, const Tensor& repeats, std::optional<int64_t> dim) {
  const NamedCall call("repeat_interleave", x.where());
  if (repeats.dtype() != kInt64 && repeats.dtype() != kInt32)
    fail(Category::dtype_mismatch, "repeat_interleave", fmt::format("repeats are {}", describe(repeats)),
         x.where());
  const Tensor from = dim ? x.tensor() : flat(x);
  const int d = wrap_dim(dim.value_or(0), from.impl().rank(), "repeat_interleave");
  const int64_t n = from.impl().rank() ? from.impl().shape()[d].value() : 1;
  if (repeats.dim() > 1 || (repeats.numel() != n && repeats.numel() != 1))
    fail(Category::shape_mismatch, "repeat_interleave",
         fmt::format("{} for {} entries", describe(repeats), n), x.where());
  const std::vector<int64_t> counts = repeats.to_vector<int64_t>(x.where());
  for (const int64_t count : counts)
    if (count < 0 || count >= int64_t{1} << 48)
      fail(Category::bad_argument, "repeat_interleave", fmt::format("{} repeats", count), x.where());
  const auto repeats_of = [&](int64_t i) { return counts[counts.size() == 1 ? 0 : static_cast<size_t>(i)]; };
  int64_t total = 0;
  for (int64_t i = 0; i < n; ++i) total = Dim::checked_add(total, repeats_of(i));
  const Tensor rows = empty({total}, {kInt64}, x.where());
  int64_t* row = rows.data_ptr<int64_t>(x.where());
  for (int64_t i = 0; i < n; ++i) row = std::fill_n(row, repeats_of(i), i);
  const Tensor index = from.device() == kCPU ? rows : to(Operand(rows, x.where()), from.device());
  return index_select(Operand(from, x.where()), d, index);
}

Tensor tril(Operand x, int64_t diagonal) {
  const NamedCall call("tril", x.where());
  check_matrix(x, "tril");
  return ops::emit<ops::Tril>({x.tensor().get()}, {diagonal}, x.where());
}

Tensor triu(Operand x, int64_t diagonal) {
  const NamedCall call("triu", x.where());
  check_matrix(x, "triu");
  return ops::emit<ops::Triu>({x.tensor().get()}, {diagonal}, x.where());
}

Tensor diag(Operand x, int64_t k) {
  const NamedCall call("diag", x.where());
  const Shape& shape = shape_of(x);
  if (shape.rank() == 2) return clone(Operand(diagonal(x, k), x.where()));
  if (shape.rank() != 1)
    fail(Category::bad_dim, "diag", fmt::format("{} is neither vector nor matrix", describe(x.tensor())),
         x.where());
  const Dim n = k < 0 ? shape[0] - Dim(k) : shape[0] + Dim(k);
  return ops::emit<ops::Transposed<ops::Diagonal>>({x.tensor().get()}, {{k, 0, 1}, {n, n}}, x.where());
}

}  // namespace retrograd
