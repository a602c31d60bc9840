// See ops/order_statistics.h.
#include "ops/order_statistics.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/index_ops.h"
#include "ops/shape_ops.h"
#include "ops/sort.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace ops {

void KthValue::infer(const Call& call, TensorImpl* const* outputs) {
  ExtremeAlong::infer(call, outputs);
  const Attrs& a = call.attrs_as<Attrs>();
  const Dim size = reduced_numel(call.operands[0]->shape(), a.dim);
  if (a.k < 1 || a.k > size)
    fail_call(call, Category::index_out_of_range,
              fmt::format("k is {}, for {} elements", to_string(a.k), to_string(size)));
}

void OverallMedian::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  if (is_float8(x.dtype())) fail_call(call, Category::dtype_mismatch, "it is not defined for float8");
  if (!is_floating(x.dtype()) && x.numel() == Dim(0))
    fail_call(call, Category::bad_argument, "there are no elements to choose from");
  outputs[0]->set_type(x.dtype(), x.device(), {});
}

namespace {

// 1 over the number of ties at each tie, 0 elsewhere; all NaNs are ties of a NaN. In the wider dtype, where ties can be
// counted.
template <class C>
Tensor median_shares(C& c) {
  const Widened wide(c.out());
  const Tensor x = c.in(0).tensor(), y = c.out();
  const Tensor ties = wide(to(logical_or(eq(x, y), logical_and(isnan(x), isnan(y))), c.type(0).dtype));
  return div(ties, sum(ties));
}

}  // namespace

void OverallMedian::vjp(RuleContext& c) {
  const Widened wide(c.grad());
  c.give(0, wide.back(mul(wide(c.grad()), median_shares(c))));
}

void OverallMedian::jvp(TangentContext& c) {
  const Widened wide(c.tangent(0));
  c.give(0, wide.back(sum(mul(wide(c.tangent(0)), median_shares(c)))));
}

}  // namespace ops

namespace {

template <class Op>
ValuesAndIndices choose(Operand x, typename Op::Attrs attrs, int64_t dim, bool keepdim) {
  attrs.dim = ops::reduction_dims(dim, x.tensor().impl().rank(), Op::name);
  attrs.keepdim = keepdim;
  TensorImpl* operand = x.tensor().get();
  Tensor results[2];
  Emitter::current().emit({&ops::info<Op>, {&operand, 1}, &attrs, effective_location(x.where()), 2}, results);
  return {results[0], results[1]};
}

// Other devices sort: one thread that selects in a line would be slower than all of them.
bool is_selected(Operand x) { return x.tensor().device() == kCPU; }

/// The sorted lines of a dim, of which one entry each is wanted.
class SortedLines {
 public:
  SortedLines(Operand x, int64_t dim, std::string_view op)
      : x_(x.tensor()), dims_(ops::reduction_dims(dim, x_.impl().rank(), op)), sorted_(sort(x, dim)) {
    if (size() == Dim(0)) fail(Category::bad_argument, op, "there are no elements to choose from", x.where());
  }
  Dim size() const { return ops::reduced_numel(x_.impl().shape(), dims_); }
  /// How many of a line are not NaN; these are the first. int64, with size 1 along the dim.
  Tensor numbers() const { return sum(logical_not(isnan(x_)), dims_, true); }
  /// The entries at these places.
  ValuesAndIndices at(const Tensor& places, bool keepdim) const {
    const int64_t dim = dims_.empty() ? 0 : dims_[0];
    const Shape shape = ops::reduced_shape(x_.impl().shape(), dims_, keepdim);
    return {reshape_to(gather(sorted_.values, dim, places), shape),
            reshape_to(gather(sorted_.indices, dim, places), shape)};
  }

 private:
  Tensor x_;
  IntList dims_;
  ValuesAndIndices sorted_;
};

}  // namespace

ValuesAndIndices kthvalue(Operand x, Dim k, int64_t dim, bool keepdim) {
  const NamedCall call("kthvalue", x.where());
  if (is_selected(x)) {
    ops::KthAttrs attrs;
    attrs.k = k;
    return choose<ops::KthValue>(x, attrs, dim, keepdim);
  }
  const SortedLines lines(x, dim, "kthvalue");
  if (k < 1 || k > lines.size())
    fail(Category::index_out_of_range, "kthvalue", fmt::format("k is {}", to_string(k)), x.where());
  return lines.at(full_like(lines.numbers(), Scalar(k - 1)), keepdim);
}

ValuesAndIndices median(Operand x, int64_t dim, bool keepdim) {
  const NamedCall call("median", x.where());
  if (is_selected(x)) return choose<ops::Median>(x, {}, dim, keepdim);
  const SortedLines lines(x, dim, "median");
  const Tensor numbers = lines.numbers();  // also the place of the first NaN
  return lines.at(where(lt(numbers, Scalar(lines.size())), numbers, Scalar((lines.size() - 1) / 2)), keepdim);
}

ValuesAndIndices nanmedian(Operand x, int64_t dim, bool keepdim) {
  const NamedCall call("nanmedian", x.where());
  if (is_selected(x)) return choose<ops::NanMedian>(x, {}, dim, keepdim);
  const SortedLines lines(x, dim, "nanmedian");
  return lines.at(div(clamp(sub(lines.numbers(), 1), 0), 2, "floor"), keepdim);
}

Tensor median(Operand x) {
  const NamedCall call("median", x.where());
  return ops::emit<ops::MedianOfAll>({x.tensor().get()}, {}, x.where());
}

Tensor nanmedian(Operand x) {
  const NamedCall call("nanmedian", x.where());
  return ops::emit<ops::NanMedianOfAll>({x.tensor().get()}, {}, x.where());
}

ValuesAndIndices mode(Operand x, int64_t dim, bool keepdim) {
  const NamedCall call("mode", x.where());
  return choose<ops::Mode>(x, {}, dim, keepdim);
}

}  // namespace retrograd
