// See ops/channels.h.
#include "ops/channels.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/family_parts.h"
#include "ops/pooling.h"
#include "ops/unary.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace {

void check_rank(std::string_view op, Operand x) {
  if (shape_of(x).rank() < 3)
    fail(Category::bad_dim, op, fmt::format("at least 3 dims are needed, not {}", describe(x.tensor())),
         x.where());
}

// The factor of a size; products of two factors must not overflow.
Dim checked_factor(std::string_view op, Operand x, int64_t factor) {
  if (factor < 1 || factor > INT32_MAX)
    fail(Category::bad_argument, op, fmt::format("{} is not from 1 to 2^31 - 1", factor), x.where());
  return factor;
}

Dim quotient(std::string_view op, Operand x, Dim size, Dim by) {
  if (!(size % by == Dim(0)))
    fail(Category::shape_mismatch, op,
         fmt::format("{} does not divide {} of {}", to_string(by), to_string(size), describe(x.tensor())),
         x.where());
  return size / by;
}

// The shape without its last three sizes.
Shape batch_of(Operand x) {
  Shape batch = shape_of(x);
  batch.resize(batch.rank() - 3);
  return batch;
}
Shape joined(Shape a, std::initializer_list<Dim> b) {
  for (Dim d : b) a.push_back(d);
  return a;
}

// The dims of a batch, then `order` counted from the end of the batch.
IntArray after_batch(int batch, std::initializer_list<int64_t> order) {
  IntArray dims;
  for (int i = 0; i < batch; ++i) dims.push_back(i);
  for (int64_t d : order) dims.push_back(batch + d);
  return dims;
}

}  // namespace

Tensor pixel_shuffle(Operand x, int64_t upscale_factor) {
  constexpr std::string_view op = "pixel_shuffle";
  const NamedCall call(op, x.where());
  check_rank(op, x);
  const Dim r = checked_factor(op, x, upscale_factor);
  const Shape batch = batch_of(x), &shape = shape_of(x);
  const int rank = batch.rank();
  const Dim channels = quotient(op, x, shape[rank], r * r), height = shape[rank + 1], width = shape[rank + 2];
  const Tensor parts = reshape_to(x, joined(batch, {channels, r, r, height, width}));
  const Tensor turned = permute(parts, after_batch(rank, {0, 3, 1, 4, 2}));
  return reshape_to(turned, joined(batch, {channels, height * r, width * r}));
}

Tensor pixel_unshuffle(Operand x, int64_t downscale_factor) {
  constexpr std::string_view op = "pixel_unshuffle";
  const NamedCall call(op, x.where());
  check_rank(op, x);
  const Dim r = checked_factor(op, x, downscale_factor);
  const Shape batch = batch_of(x), &shape = shape_of(x);
  const int rank = batch.rank();
  const Dim channels = shape[rank], height = quotient(op, x, shape[rank + 1], r),
            width = quotient(op, x, shape[rank + 2], r);
  const Tensor parts = reshape_to(x, joined(batch, {channels, height, r, width, r}));
  const Tensor turned = permute(parts, after_batch(rank, {0, 2, 4, 1, 3}));
  return reshape_to(turned, joined(batch, {channels * r * r, height, width}));
}

Tensor channel_shuffle(Operand x, int64_t groups) {
  constexpr std::string_view op = "channel_shuffle";
  const NamedCall call(op, x.where());
  check_rank(op, x);
  const Shape& shape = shape_of(x);
  const Dim g = checked_factor(op, x, groups), each = quotient(op, x, shape[1], g);
  Dim rest = 1;
  for (int i = 2; i < shape.rank(); ++i) rest = rest * shape[i];
  const Tensor parts = reshape_to(x, {shape[0], g, each, rest});
  return reshape_to(transpose(parts, 1, 2), shape);
}

Tensor local_response_norm(Operand x, int64_t size, Scalar alpha, Scalar beta, Scalar k) {
  constexpr std::string_view op = "local_response_norm";
  const NamedCall call(op, x.where());
  check_rank(op, x);
  checked_factor(op, x, size);
  if (!is_floating(x.tensor().dtype()))
    fail(Category::dtype_mismatch, op, fmt::format("{} is not floating", describe(x.tensor())), x.where());
  const Shape& shape = shape_of(x);
  for (Dim d : shape)
    if (d == Dim(0)) return clone(x);
  const ops::Widened wide(x.tensor());
  const Tensor input = wide(x.tensor());
  Dim rest = 1;
  for (int i = 2; i < shape.rank(); ++i) rest = rest * shape[i];
  // Windows along the channels with size / 2 zeros at both ends: of an even size, one window more than channels.
  const Tensor squares = reshape_to(Operand(square(input), x.where()), {shape[0], 1, shape[1], rest});
  Tensor means = avg_pool2d(squares, {size, 1}, 1, {size / 2, 0});
  if (size % 2 == 0) means = narrow(means, 2, 0, shape[1]);
  const Tensor scale = pow(add(mul(reshape_to(means, shape), alpha), k), beta);
  return wide.back(div(input, scale));
}

}  // namespace retrograd
