// Pooling and interpolation on a device against the CPU: every mode, windows that overlap, skip and reach over the
// border, one to three dims, layouts, dtypes, NaN, nothing at all.
#include "cuda/on_host/scheduler.h"
#include "ops/interpolate.h"
#include "ops/pooling.h"
#include "tests/cuda/against_cpu.h"

using namespace retrograd;

namespace {

constexpr auto numbers = unit_numbers;

/// The CPU's results.
template <class Op>
Tensors compare(const Tensors& operands, const typename Op::Attrs& attrs, int outputs = 1) {
  device_on_host();
  return against_cpu<Op>(operands, attrs, outputs, 20);
}

// Tensors with a grid of two dims, in several layouts.
Tensors layouts(ScalarType dtype) {
  const Tensor x = numbers({2, 3, 9, 11}, dtype);
  return {x, x.transpose(0, 1), numbers({2, 11, 9, 3}, dtype).transpose(1, 3),
          expand(numbers({2, 1, 9, 11}, dtype), {2, 3, 9, 11})};
}

template <class Op>
void try_map(const Tensor& x, typename Op::Attrs attrs) {
  const Tensor y = compare<Op>({x}, attrs)[0];
  if (!is_floating(x.dtype())) return;
  const int dims = attrs.size.rank();
  attrs.size = ops::grid_of(x.impl().shape(), dims);
  compare<typename Op::Transpose>({y}, attrs);
}

template <class Op>
void try_max(const Tensor& x, const typename Op::Attrs& attrs, int dims) {
  const Tensors y = compare<Op>({x}, attrs, 2);
  if (!is_floating(x.dtype())) return;
  ops::GridSize size;
  size.size = ops::grid_of(x.impl().shape(), dims);
  compare<ops::MaxPoolBackward>({y[0], y[1]}, size);
}

#define FLOATS kFloat32, kFloat64, kFloat16, kBFloat16

}  // namespace

TEST_CASE("largest elements of windows") {
  ops::MaxPool::Attrs attrs;
  attrs.kernel_size = {3, 2};
  attrs.stride = {2, 1};
  attrs.padding = {1, 0};
  attrs.dilation = {1, 2};
  for (ScalarType dtype : {FLOATS, kInt64, kUInt8})
    for (const Tensor& x : layouts(dtype)) try_max<ops::MaxPool>(x, attrs, 2);
  Tensor x = numbers({2, 3, 9, 11}, kFloat32);
  x = where(gt(x, 0.8), NAN, x);
  compare<ops::MaxPool>({x}, attrs, 2);
}

TEST_CASE("largest elements that cover a grid") {
  ops::GridSize size;
  for (const IntArray& out : {IntArray{4, 5}, {1, 1}, {12, 11}}) {
    size.size = out;
    for (const Tensor& x : layouts(kFloat32)) try_max<ops::AdaptiveMaxPool>(x, size, 2);
  }
  size.size = IntArray{2, 3, 2};
  try_max<ops::AdaptiveMaxPool>(numbers({2, 5, 6, 7}, kFloat64), size, 3);
}

TEST_CASE("averages") {
  ops::AvgPoolAttrs attrs;
  attrs.kernel_size = {3, 2};
  attrs.stride = {2, 1};
  attrs.padding = {1, 1};
  attrs.size = IntArray{5, 12};
  for (bool counts_outside : {true, false})
    for (int64_t divisor : {0, 3}) {
      attrs.count_include_pad = counts_outside;
      attrs.divisor_override = divisor;
      for (ScalarType dtype : {FLOATS, kInt64})
        for (const Tensor& x : layouts(dtype)) try_map<ops::AvgPool>(x, attrs);
    }
  ops::GridSize size;
  for (const IntArray& out : {IntArray{4, 5}, {1, 1}, {12, 11}}) {
    size.size = out;
    for (ScalarType dtype : {FLOATS}) try_map<ops::AdaptiveAvgPool>(layouts(dtype)[1], size);
  }
  compare<ops::AdaptiveAvgPool>({numbers({0, 3, 4, 4}, kFloat32)}, size);
}

TEST_CASE("interpolation in every mode") {
  using ops::InterpolateMode;
  ops::InterpolateAttrs attrs;
  for (InterpolateMode mode : {InterpolateMode::nearest, InterpolateMode::nearest_exact,
                               InterpolateMode::linear, InterpolateMode::cubic, InterpolateMode::lanczos})
    for (const IntArray& out : {IntArray{5, 17}, {18, 22}, {9, 4}}) {
      INFO(static_cast<int64_t>(mode));
      attrs.size = out;
      attrs.mode = static_cast<int64_t>(mode);
      attrs.antialias = mode == InterpolateMode::lanczos;
      for (ScalarType dtype : {FLOATS}) try_map<ops::Interpolate>(layouts(dtype)[out[0] == 5 ? 2 : 0], attrs);
    }
  attrs.antialias = false;
  attrs.mode = static_cast<int64_t>(InterpolateMode::linear);
  attrs.align_corners = true;
  attrs.size = IntArray{3, 5, 4};
  try_map<ops::Interpolate>(numbers({2, 6, 4, 7}, kFloat32), attrs);
  attrs.size = IntArray{13};
  try_map<ops::Interpolate>(numbers({2, 6}, kFloat64), attrs);
  attrs.mode = 0;
  attrs.align_corners = false;
  compare<ops::Interpolate>({numbers({2, 6}, kUInt8)}, attrs);
}

TEST_CASE("gradients of many elements at one place, in one order") {
  device_on_host();
  NoGradGuard no_grad;
  ops::GridSize size;
  size.size = IntArray{3, 3};
  const Tensor g = numbers({2, 30, 30}, kFloat32), places = numbers({2, 30, 30}, kInt64);
  compare<ops::MaxPoolBackward>({g, places}, size);
  const Tensors there{g.to(kCUDA), places.to(kCUDA)};
  const std::vector<double> first = results_of<ops::MaxPoolBackward>(there, size, 1)[0].to_vector();
  on_host::set_seed(3);
  CHECK(results_of<ops::MaxPoolBackward>(there, size, 1)[0].to_vector() == first);
  on_host::set_seed(0);
}
