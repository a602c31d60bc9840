// See ops/sampling.h.
#include "ops/sampling.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace ops {

void check_permuted(std::string_view op, int64_t n, ScalarType dtype, SourceLocation where) {
  if (n > end_of_integers(dtype))
    fail(Category::bad_argument, op, fmt::format("{} numbers in {}", n, name(dtype)), where);
}

void Multinomial::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  const Attrs& attrs = call.attrs_as<Attrs>();
  const TensorImpl& weights = *call.operands[0];
  if (weights.rank() != 1 && weights.rank() != 2)
    fail_call(call, Category::bad_dim, "the weights have neither one nor two dims");
  if (attrs.samples <= 0) fail_call(call, Category::bad_argument, "the number of samples is not positive");
  if (!attrs.replacement && attrs.samples > weights.shape().back())
    fail_call(call, Category::bad_argument, "more samples than weights, without replacement");
  Shape shape = weights.shape();
  shape[shape.rank() - 1] = attrs.samples;
  outputs[0]->set_type(kInt64, weights.device(), shape);
}

}  // namespace ops

Tensor randperm(int64_t n, TensorOptions options, SourceLocation where) {
  const NamedCall call("randperm", where);
  options = options.or_else(kInt64);
  const bool dtype_ok = is_integral(options.dtype(), false) || ops::is_drawn_floating(options.dtype());
  ops::check_request("randperm", {n}, options, dtype_ok, where);
  ops::check_permuted("randperm", n, options.dtype(), where);
  Tensor result =
      ops::emit<ops::RandPerm>({}, {n, options.dtype(), ops::reserve_draw("randperm", where)}, where);
  if (!(options.device() == kCPU)) result = to(Operand(result, where), options.device());
  if (options.requires_grad()) result.requires_grad_(true, where);
  return result;
}

Tensor multinomial(Operand input, int64_t num_samples, bool replacement) {
  const NamedCall call("multinomial", input.where());
  return ops::emit<ops::Multinomial>(
      {input.tensor().get()}, {num_samples, replacement, ops::reserve_draw("multinomial", input.where())},
      input.where());
}

}  // namespace retrograd
