// See ops/index_functions.h.
#include "ops/index_functions.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/batching.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/index_parts.h"
#include "ops/sort.h"
#include "ops/ternary.h"

namespace retrograd::inline v0 {
namespace ops {

void IsIn::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &x = *call.operands[0], &sorted = *call.operands[1];
  if (x.dtype() != sorted.dtype())
    fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
  if (is_float8(x.dtype())) fail_call(call, Category::dtype_mismatch, "8-bit floats are not ordered");
  if (sorted.rank() != 1) fail_call(call, Category::bad_dim, "the sorted values are not a vector");
  outputs[0]->set_type(kBool, x.device(), x.shape());
}

void IsIn::batch(BatchContext& c) {
  if (c.is_batched(1)) return batch_by_loop(c);
  const Tensor operands[] = {c.value(0), c.value(1)};
  c.give(c.run(operands));
}

}  // namespace ops

Tensor index(Operand x, const Indices& indices) {
  const NamedCall call("index", x.where());
  return getitem(x, indices);
}

Tensor index_fill(Operand x, int64_t dim, const Tensor& index, Operand value) {
  const NamedCall call("index_fill", x.where());
  const SourceLocation where = x.where();
  const Tensor given = ops::lift(ops::as_index(index, "index_fill", where), where);
  if (given.dim() != 1 || (!value.is_scalar() && value.tensor().dim() != 0))
    fail(Category::bad_dim, "index_fill", "the index has more than one dim, or the value is not a number",
         where);
  const ops::Lifted into(x, dim, "index_fill");
  const ScalarType dtype = into.tensor.dtype();
  const Device device = into.tensor.device();
  const Tensor filler = value.is_scalar() ? scalar_tensor(value.scalar(), {dtype, device}, where)
                                          : to(Operand(to(value, dtype), where), device);
  // Which entries are filled, along the dim.
  const Dim n = shape_of(into.tensor)[into.dim];
  Shape line;
  line.resize(shape_of(into.tensor).rank());
  line[into.dim] = n;
  const Tensor nowhere = repeated_zero({kBool, device, {n}}, where);
  const Tensor marks = index_copy(Operand(nowhere, where), 0, ops::wrapped(given, n, where),
                                  ones_of({kBool, device, shape_of(given)}, where));
  const Tensor filled =
      retrograd::where(Operand(reshape_to(Operand(marks, where), line), where), filler, into.tensor);
  return ops::lower(filled, shape_of(x), where);
}

Tensor put(Operand x, const Tensor& index, const Tensor& source, bool accumulate) {
  const NamedCall call("put", x.where());
  const SourceLocation where = x.where();
  if (source.dtype() != x.tensor().dtype())
    fail(Category::dtype_mismatch, "put", fmt::format("{} into {}", describe(source), describe(x.tensor())),
         where);
  if (!(source.impl().numel() == index.impl().numel()))
    fail(Category::shape_mismatch, "put", fmt::format("{} at {}", describe(source), describe(index)), where);
  const Tensor into = flat(x.tensor(), where), values = flat(source, where);
  const Tensor places =
      ops::wrapped(flat(ops::as_index(index, "put", where), where), shape_of(into)[0], where);
  const Operand line(into, where);
  const Tensor result = accumulate ? index_add(line, 0, places, values) : index_copy(line, 0, places, values);
  return ops::lower(result, shape_of(x), where);
}

Tensor argwhere(Operand x) {
  const NamedCall call("argwhere", x.where());
  return nonzero(x);
}

Tensor isin(Operand elements, Operand test_elements, bool, bool invert) {
  const NamedCall call("isin", elements.where());
  const SourceLocation where = elements.where();
  const Operand both[] = {elements, test_elements};
  if (elements.is_scalar() && test_elements.is_scalar())
    fail(Category::bad_argument, "isin", "at least one operand must be a tensor", where);
  const ScalarType dtype = ops::compute_dtype(ops::typing<ops::Eq>, both, where);
  const Device device = (elements.is_scalar() ? test_elements : elements).tensor().device();
  const auto tensor_of = [&](const Operand& x) {
    return x.is_scalar() ? scalar_tensor(x.scalar(), {dtype, device}, where) : to(x, dtype);
  };
  const Tensor x = tensor_of(elements), values = flat(tensor_of(test_elements), where);
  const Tensor sorted = sort(Operand(values, where)).values;
  return ops::emit<ops::IsIn>({x.get(), sorted.get()}, {invert}, where);
}

}  // namespace retrograd
