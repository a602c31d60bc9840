// See ops/search.h.
#include "ops/search.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/batching.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace ops {

void SearchSorted::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &sequences = *call.operands[0], &values = *call.operands[1], *sorter = call.operands[2];
  if (sequences.dtype() != values.dtype())
    fail_call(call, Category::dtype_mismatch, "sequences and values have different dtypes");
  if (is_float8(values.dtype())) fail_call(call, Category::dtype_mismatch, "it is not defined for float8");
  if (sequences.rank() == 0) fail_call(call, Category::bad_dim, "a sequence needs a dimension");
  const bool is_one = sequences.rank() == 1;
  if (!is_one && (values.rank() != sequences.rank() ||
                  !(without_last(values.shape()) == without_last(sequences.shape()))))
    fail_call(call, Category::shape_mismatch, "sequences and values differ in a size before the last");
  if (sorter && sorter->dtype() != kInt64)
    fail_call(call, Category::dtype_mismatch, "the sorter is not int64");
  if (sorter && !(sorter->shape() == sequences.shape()))
    fail_call(call, Category::shape_mismatch, "the sorter's shape is not that of the sequences");
  outputs[0]->set_type(call.attrs_as<Attrs>().out_int32 ? kInt32 : kInt64, values.device(), values.shape());
}

// One sequence is searched for any values; sequences of the samples for the values of each, as one row.
void SearchSorted::batch(BatchContext& c) {
  const SourceLocation where = c.where();
  if (c.rank(0) > 1 || (c.rank(1) == 1 && c.rank(0) == 1)) return batch_leading(c);
  const bool is_own = c.is_batched(0) || c.is_batched(2);
  const Tensor values =
      is_own ? reshape_to(Operand(c.all(1), where), {c.size(), c.shape(1).numel()}) : c.all(1);
  const Tensor operands[] = {is_own ? c.all(0) : c.value(0), values, is_own ? c.all(2) : c.value(2)};
  c.give(0, reshape_to(Operand(c.run(operands)[0], where), c.with_batch(c.out_type().shape)));
}

}  // namespace ops

namespace {

// Both in the dtype that a number and the sequence promote to.
Tensor search_number(const Tensor& sequence, Operand number, ops::SearchSorted::Attrs attrs,
                     const Tensor& sorter, std::string_view op) {
  const SourceLocation where = number.where();
  if (sequence.dim() != 1)
    fail(Category::bad_dim, op,
         fmt::format("a number is searched in one dim, this is {}", describe(sequence)), where);
  TypePromotion join;
  join.add_tensor(sequence.dtype(), false);
  join.add_scalar(number.scalar().is_floating() ? TypeCategory::Floating : TypeCategory::Integral);
  const ScalarType dtype = join.result();
  if (dtype == ScalarType::Undefined)
    fail(Category::dtype_mismatch, op, fmt::format("a number does not promote with {}", describe(sequence)),
         where);
  const Tensor value = scalar_tensor(number.scalar(), {dtype, sequence.device()}, where),
               in = to(Operand(sequence, where), dtype);
  return ops::emit<ops::SearchSorted>({in.get(), value.get(), sorter.get()}, attrs, where);
}

Tensor search(const Tensor& sequence, Operand input, ops::SearchSorted::Attrs attrs, const Tensor& sorter,
              std::string_view op) {
  const NoGradGuard no_grad;
  if (input.is_scalar()) return search_number(sequence, input, attrs, sorter, op);
  return ops::emit<ops::SearchSorted>({sequence.get(), input.tensor().get(), sorter.get()}, attrs,
                                      input.where());
}

}  // namespace

Tensor searchsorted(const Tensor& sorted_sequence, Operand input, bool out_int32, bool right,
                    std::optional<std::string_view> side, const Tensor& sorter) {
  const NamedCall call("searchsorted", input.where());
  if (side && *side != "left" && *side != "right")
    fail(Category::bad_argument, "searchsorted",
         fmt::format("side \"{}\" is not \"left\" or \"right\"", *side), input.where());
  if (side == "left" && right)
    fail(Category::bad_argument, "searchsorted", "side \"left\" contradicts right = true", input.where());
  return search(sorted_sequence, input, {right || side == "right", out_int32}, sorter, "searchsorted");
}

Tensor bucketize(Operand input, const Tensor& boundaries, bool out_int32, bool right) {
  const NamedCall call("bucketize", input.where());
  if (boundaries.dim() != 1)
    fail(Category::bad_dim, "bucketize",
         fmt::format("boundaries have one dim, this is {}", describe(boundaries)), input.where());
  return search(boundaries, input, {right, out_int32}, {}, "bucketize");
}

}  // namespace retrograd
