// See ops/creation.h. The one op is `full`; everything else copies host data or views what `full` makes.
#include "ops/creation.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/runner.h"
#include "ops/full.h"
#include "ops/views.h"

namespace retrograd {
namespace {

void check_size(const Shape& size, std::string_view op, SourceLocation where) {
  for (Dim d : size)
    if (d.hint() < 0)
      fail(Category::bad_argument, op, fmt::format("a size is negative: {}", to_string(size)), where);
  if (!size.is_symbolic()) size.numel();
}

Tensor finish(Tensor t, const TensorOptions& options, SourceLocation where) {
  if (!(options.device == kCPU))
    fail(Category::bad_argument, "factory", fmt::format("there is no device {}", to_string(options.device)),
         where);
  if (options.requires_grad) t.requires_grad_(true, where);
  return t;
}

Tensor fresh(const Shape& size, const TensorOptions& options, std::string_view op, SourceLocation where) {
  check_size(size, op, where);
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(options.dtype, kCPU, size);
  cell->allocate();
  return Tensor(std::move(cell));
}

}  // namespace

Tensor full(const Shape& size, Scalar value, TensorOptions options, SourceLocation where) {
  check_size(size, "full", where);
  return finish(ops::emit<ops::Full>({}, {size, value, options.dtype}, where), options, where);
}

Tensor zeros(const Shape& size, TensorOptions options, SourceLocation where) {
  return full(size, 0, options, where);
}
Tensor ones(const Shape& size, TensorOptions options, SourceLocation where) {
  return full(size, 1, options, where);
}
Tensor scalar_tensor(Scalar value, TensorOptions options, SourceLocation where) {
  return full({}, value, options, where);
}

Tensor empty(const Shape& size, TensorOptions options, SourceLocation where) {
  return finish(fresh(size, options, "empty", where), options, where);
}

Tensor tensor(const std::vector<double>& values, const Shape& size, TensorOptions options,
              SourceLocation where) {
  Tensor t = fresh(size, options, "tensor", where);
  if (static_cast<int64_t>(values.size()) != t.numel())
    fail(Category::shape_mismatch, "tensor",
         fmt::format("{} values for a tensor of shape {}", values.size(), to_string(size)), where);
  dispatch(options.dtype, [&]<class T>(std::type_identity<T>) {
    std::transform(values.begin(), values.end(), static_cast<T*>(t.raw_data(where)),
                   [](double v) { return static_cast<T>(v); });
  });
  return finish(std::move(t), options, where);
}

Tensor tensor(std::initializer_list<double> values, TensorOptions options, SourceLocation where) {
  return tensor(std::vector<double>(values), {static_cast<int64_t>(values.size())}, options, where);
}

Tensor arange(int64_t start, int64_t end, int64_t step, TensorOptions options, SourceLocation where) {
  if (step == 0) fail(Category::bad_argument, "arange", "the step is zero", where);
  const int64_t span = step > 0 ? end - start + step - 1 : start - end - step - 1;
  const int64_t n = std::max<int64_t>(0, span / (step > 0 ? step : -step));
  std::vector<double> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = static_cast<double>(start + i * step);
  return tensor(values, {n}, options, where);
}

Tensor eye(Dim n, std::optional<Dim> m, TensorOptions options, SourceLocation where) {
  const Shape size{n, m.value_or(n)};
  check_size(size, "eye", where);
  const Tensor diagonal = ones({size[0] < size[1] ? size[0] : size[1]}, {options.dtype}, where);
  return finish(ops::emit<ops::Transposed<ops::Diagonal>>({diagonal.get()}, {{0, 0, 1}, size}, where),
                options, where);
}

Tensor from_blob(void* data, const Shape& size, TensorOptions options, void (*release)(void*), void* context,
                 SourceLocation where) {
  check_size(size, "from_blob", where);
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(options.dtype, kCPU, size);
  contiguous_strides(size, cell->mutable_strides());
  const int64_t bytes =
      Dim::checked_mul(size.numel().value(), static_cast<int64_t>(element_size(options.dtype)));
  cell->set_storage(Storage::wrap(data, bytes, release, context));
  return finish(Tensor(std::move(cell)), options, where);
}

Tensor full_like(Operand input, Scalar value) {
  const TensorType type = input.tensor().impl().type();
  return full(type.shape, value, {type.dtype, type.device}, input.where());
}

Tensor zeros_like(Operand input) { return full_like(input, 0); }
Tensor ones_like(Operand input) { return full_like(input, 1); }

Tensor empty_like(Operand input) {
  const TensorType type = input.tensor().impl().type();
  return empty(type.shape, {type.dtype, type.device}, input.where());
}

Tensor zeros_of(const TensorType& type, SourceLocation where) {
  return full(type.shape, 0, {type.dtype, type.device}, where);
}
Tensor ones_of(const TensorType& type, SourceLocation where) {
  return full(type.shape, 1, {type.dtype, type.device}, where);
}

}  // namespace retrograd
