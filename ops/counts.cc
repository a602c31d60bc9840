// See ops/counts.h.
#include "ops/counts.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/batching.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/index_ops.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"

namespace retrograd::inline v0 {
namespace ops {

void Histc::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  const Attrs& a = call.attrs_as<Attrs>();
  if (a.bins < 1) fail_call(call, Category::bad_argument, fmt::format("there are {} bins", a.bins));
  const double low = a.min.number().as_double(), high = a.max.number().as_double();
  if (!(high - low >= 0) || high - low > std::numeric_limits<double>::max())
    fail_call(call, Category::bad_argument, fmt::format("[{}, {}] is not a finite range", low, high));
  const TensorImpl& x = *call.operands[0];
  check_sizes(call, {a.bins});
  outputs[0]->set_type(x.dtype(), x.device(), {a.bins});
}

// The kernels' arithmetic, in float64. A range of the elements is another one for each sample, and is checked there.
void Histc::batch(BatchContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  if (a.min.to_double() == a.max.to_double()) return batch_by_loop(c);
  const SourceLocation here = c.where();
  const Tensor x =
      reshape_to(Operand(to(Operand(c.all(0), here), kFloat64), here), {c.size(), c.shape(0).numel()});
  const Tensor is_counted = logical_and(ge(x, a.min), le(x, a.max));
  const Tensor place = mul(div(sub(x, a.min), a.max - a.min), a.bins);
  const Tensor bin = minimum(to(where(is_counted, place, 0), kInt64), a.bins - 1);
  const Tensor none = zeros_of({kInt64, x.device(), {c.size(), a.bins}}, here);
  c.give(0, to(scatter_add(none, 1, bin, to(is_counted, kInt64)), c.out_type().dtype));
}

}  // namespace ops

Tensor histc(Operand x, int64_t bins, Scalar min, Scalar max) {
  const NamedCall call("histc", x.where());
  const NoGradGuard no_grad;
  return ops::emit<ops::Histc>({x.tensor().get()}, {bins, min, max}, x.where());
}

namespace {

void check_counted(Operand x, const Tensor& weights, int64_t minlength) {
  const auto refuse = [&](Category category, std::string_view text) {
    fail(category, "bincount", text, x.where());
  };
  if (!is_integral(x.tensor().dtype(), false))
    refuse(Category::dtype_mismatch, fmt::format("{} has no integers", describe(x.tensor())));
  if (x.tensor().dim() != 1)
    refuse(Category::bad_dim, fmt::format("{} has not one dim", describe(x.tensor())));
  if (minlength < 0) refuse(Category::bad_argument, fmt::format("minlength is {}", minlength));
  if (weights.defined() && !(shape_of(weights) == shape_of(x)))
    refuse(Category::shape_mismatch,
           fmt::format("the weights are {}, for {}", describe(weights), describe(x.tensor())));
}

}  // namespace

Tensor bincount(Operand x, const Tensor& weights, int64_t minlength) {
  const NamedCall call("bincount", x.where());
  x.tensor().raw_data(x.where());
  check_counted(x, weights, minlength);
  const NoGradGuard no_grad;
  const Tensor index = to(x, kInt64);
  int64_t size = minlength;
  if (index.numel() > 0) {
    const int64_t least = amin(Operand(index, x.where())).item<int64_t>(x.where());
    if (least < 0) fail(Category::bad_argument, "bincount", fmt::format("{} is negative", least), x.where());
    size = std::max(size, amax(Operand(index, x.where())).item<int64_t>(x.where()) + 1);
  }
  ScalarType dtype = kInt64;
  if (weights.defined() && index.numel() > 0) dtype = weights.dtype() == kFloat32 ? kFloat32 : kFloat64;
  const Tensor counted =
      weights.defined()
          ? to(Operand(weights, x.where()), dtype)
          : expand(Operand(ones({1}, {dtype, index.device()}, x.where()), x.where()), shape_of(x));
  return index_add(Operand(zeros({size}, {dtype, index.device()}, x.where()), x.where()), 0, index, counted);
}

}  // namespace retrograd
