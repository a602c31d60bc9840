// See torch/factories.h.
#include "torch/factories.h"

#include <array>
#include <cmath>
#include <memory>
#include <numbers>

#include <fmt/format.h>

#include "ops/operators.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace torch {

using retrograd::Category;
using retrograd::Shape;
using retrograd::SourceLocation;

namespace detail {

TensorData::TensorData(std::initializer_list<TensorData> list) : shape_{static_cast<int64_t>(list.size())} {
  if (list.size() == 0) return;
  const TensorData& first = *list.begin();
  dtype_ = first.dtype_;
  shape_.insert(shape_.end(), first.shape_.begin(), first.shape_.end());
  for (const TensorData& item : list) {
    if (item.shape_ != first.shape_)
      retrograd::fail(Category::shape_mismatch, "tensor",
                      fmt::format("lists of shapes {} and {} in one list", to_string(Shape(first.shape_)),
                                  to_string(Shape(item.shape_))));
    if (item.dtype_ != first.dtype_)
      retrograd::fail(Category::dtype_mismatch, "tensor",
                      fmt::format("numbers of kinds {} and {} in one list; write all as one kind",
                                  name(first.dtype_), name(item.dtype_)));
    numbers_.insert(numbers_.end(), item.numbers_.begin(), item.numbers_.end());
    integers_.insert(integers_.end(), item.integers_.begin(), item.integers_.end());
  }
}

Tensor TensorData::tensor(const TensorOptions& options, SourceLocation where) const {
  const Shape shape(shape_, where);
  if (!is_floating(dtype_)) return retrograd::tensor(integers_, shape, options.or_else(dtype_), where);
  return retrograd::tensor(numbers_, shape, dtype_ == kFloat ? options : options.or_else(dtype_), where);
}

}  // namespace detail

namespace {

struct Owned {
  Deleter deleter;
  void* data;
};

void release(void* context) {
  const std::unique_ptr<Owned> owned(static_cast<Owned*>(context));
  owned->deleter(owned->data);
}

// How many elements there are from the first to the last.
IntArrayRef extent(IntArrayRef sizes, IntArrayRef strides, SourceLocation where) {
  if (sizes.size() != strides.size())
    retrograd::fail(Category::bad_argument, "from_blob",
                    fmt::format("{} sizes and {} strides", sizes.size(), strides.size()), where);
  int64_t count = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] < 0)
      retrograd::fail(Category::bad_argument, "from_blob",
                      fmt::format("a stride is negative: {}", strides[i]), where);
    if (sizes[i] == 0) return 0;
    count = retrograd::Dim::checked_add(count, retrograd::Dim::checked_mul(sizes[i] - 1, strides[i]));
  }
  return count;
}

// The elements of `all`, a vector, in these places.
Tensor strided(const Tensor& all, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options,
               SourceLocation where) {
  const Tensor result = as_strided(retrograd::Operand(all, where), sizes, strides);
  return result.requires_grad_(options.requires_grad(), where);
}

}  // namespace

Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options,
                     SourceLocation where) {
  const IntArrayRef count = extent(sizes, strides, where);
  return strided(retrograd::empty(count, options.requires_grad(false), where), sizes, strides, options,
                 where);
}

Tensor range(Scalar start, Scalar end, Scalar step, const TensorOptions& options, SourceLocation where) {
  const double distance = end.to_double() - start.to_double(), by = step.to_double();
  if (by == 0 || distance / by < 0)
    retrograd::fail(Category::bad_argument, "range", "the step does not lead to the end", where);
  const double steps = std::floor(distance / by);
  return linspace(start, start.to_double() + steps * by, static_cast<int64_t>(steps) + 1, options, where);
}

namespace {

// a0 - a1 cos(p) + a2 cos(2 p), p from 0 to 2 pi.
Tensor cosine_window(int64_t length, bool periodic, const std::array<double, 3>& a,
                     const TensorOptions& options, SourceLocation where) {
  const retrograd::CallScope scope(where);
  if (length == 1) return ones({1}, options);
  const double step = 2 * std::numbers::pi / static_cast<double>(periodic ? length : length - 1);
  const Tensor phase = arange(length, TensorOptions(kDouble)) * step;
  const Tensor window = a[0] - cos(phase) * a[1] + cos(phase * 2) * a[2];
  return window.to(options.device(), options.dtype()).requires_grad_(options.requires_grad());
}

}  // namespace

Tensor hann_window(int64_t length, bool periodic, const TensorOptions& options, SourceLocation where) {
  return cosine_window(length, periodic, {0.5, 0.5, 0}, options, where);
}
Tensor hamming_window(int64_t length, bool periodic, const TensorOptions& options, SourceLocation where) {
  return cosine_window(length, periodic, {0.54, 0.46, 0}, options, where);
}
Tensor blackman_window(int64_t length, bool periodic, const TensorOptions& options, SourceLocation where) {
  return cosine_window(length, periodic, {0.42, 0.5, 0.08}, options, where);
}
Tensor bartlett_window(int64_t length, bool periodic, const TensorOptions& options, SourceLocation where) {
  const retrograd::CallScope scope(where);
  if (length == 1) return ones({1}, options);
  const double half = static_cast<double>(periodic ? length : length - 1) / 2;
  const Tensor window = 1 - abs(arange(length, TensorOptions(kDouble)) / half - 1);
  return window.to(options.device(), options.dtype()).requires_grad_(options.requires_grad());
}

Tensor from_blob(void* data, IntArrayRef sizes, const Deleter& deleter, const TensorOptions& options,
                 SourceLocation where) {
  if (!deleter) return from_blob(data, sizes, options, where);
  auto owned = std::make_unique<Owned>(deleter, data);
  const Tensor result =
      retrograd::from_blob(data, sizes, options.requires_grad(false), release, owned.get(), where);
  owned.release();  // the tensor has it, also if the next line throws
  return result.requires_grad_(options.requires_grad(), where);
}

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options,
                 SourceLocation where) {
  const IntArrayRef count = extent(sizes, strides, where);
  return strided(from_blob(data, count, options.requires_grad(false), where), sizes, strides, options, where);
}

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const Deleter& deleter,
                 const TensorOptions& options, SourceLocation where) {
  const IntArrayRef count = extent(sizes, strides, where);
  return strided(from_blob(data, count, deleter, options.requires_grad(false), where), sizes, strides,
                 options, where);
}

}  // namespace torch
