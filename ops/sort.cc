// See ops/sort.h.
#include "ops/sort.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/attributes.h"
#include "ops/creation.h"
#include "ops/index_ops.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace ops {

void Sort::infer(const Call& call, TensorImpl* const* outputs) {
  const Attrs& a = call.attrs_as<Attrs>();
  const TensorImpl& x = *call.operands[0];
  Shape shape = x.shape();
  const int d = checked_dim(call, a.dim, shape.rank());
  if (a.count < 0 || a.count > shape[d])
    fail_call(call, Category::index_out_of_range, fmt::format("{} entries of dim {}", to_string(a.count), d));
  shape[d] = a.count;
  outputs[0]->set_type(x.dtype(), x.device(), shape);
  outputs[1]->set_type(kInt64, x.device(), shape);
}

void Sort::vjp(RuleContext& c) {
  if (!c.grad().defined()) return;
  c.give(0, scatter_add(Operand(repeated_zero(c.type(0), c.where()), c.where()), c.attrs<Attrs>().dim,
                        c.out(1), c.grad()));
}

void Sort::jvp(TangentContext& c) {
  c.give(0, gather(Operand(c.tangent(0), c.where()), c.attrs<Attrs>().dim, c.out(1)));
}

}  // namespace ops

namespace {

ValuesAndIndices sort_along(Operand x, std::optional<Dim> count, int64_t dim, bool descending,
                            std::string_view op) {
  const Shape shape = x.tensor().impl().shape();
  const int d = wrap_dim(dim, shape.rank(), op);
  const Tensor from = shape.rank() ? x.tensor() : reshape_to(x, {1});
  ops::Sort::Attrs attrs{d, count.value_or(from.impl().shape()[d]), descending};
  TensorImpl* operand = from.get();
  Tensor results[2];
  Emitter::current().emit({&ops::info<ops::Sort>, {&operand, 1}, &attrs, effective_location(x.where()), 2},
                          results);
  if (shape.rank() == 0)
    for (Tensor& r : results) r = reshape_to(Operand(r, x.where()), {});
  return {results[0], results[1]};
}

}  // namespace

ValuesAndIndices sort(Operand x, int64_t dim, bool descending, bool) {
  const NamedCall call("sort", x.where());
  return sort_along(x, {}, dim, descending, "sort");
}

Tensor argsort(Operand x, int64_t dim, bool descending, bool) {
  const NamedCall call("argsort", x.where());
  return sort_along(Operand(detach(x), x.where()), {}, dim, descending, "argsort").indices;
}

ValuesAndIndices topk(Operand x, Dim k, int64_t dim, bool largest, bool) {
  const NamedCall call("topk", x.where());
  return sort_along(x, k, dim, largest, "topk");
}

}  // namespace retrograd
