// See ops/quantile.h.
#include "ops/quantile.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/index_ops.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/sort.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace {

void check_operands(Operand x, Operand q, std::string_view interpolation, std::string_view op) {
  const auto refuse = [&](Category category, std::string_view text) { fail(category, op, text, x.where()); };
  const Tensor& from = x.tensor();
  if (from.dtype() != kFloat32 && from.dtype() != kFloat64)
    refuse(Category::dtype_mismatch, fmt::format("{} is neither float32 nor float64", describe(from)));
  if (q.is_scalar()) {
    const double number = q.scalar().to_double();
    if (!(number >= 0 && number <= 1))
      refuse(Category::bad_argument, fmt::format("q is {}, not in [0, 1]", number));
  } else if (q.tensor().dtype() != from.dtype()) {
    refuse(Category::dtype_mismatch, fmt::format("q is {}, for {}", describe(q.tensor()), describe(from)));
  } else if (q.tensor().dim() > 1) {
    refuse(Category::bad_dim, fmt::format("q is {}, neither a number nor a vector", describe(q.tensor())));
  }
  constexpr std::array<std::string_view, 5> kKnown = {"linear", "lower", "higher", "midpoint", "nearest"};
  if (std::ranges::find(kKnown, interpolation) == kKnown.end())
    refuse(Category::bad_argument, fmt::format("interpolation \"{}\" is unknown", interpolation));
  if (from.impl().numel() == Dim(0)) refuse(Category::bad_argument, "there are no elements");
}

// The places of quantiles among the sorted elements along the last dim, [.., q]: those of NaN and -1 are no places.
Tensor places_of(const Tensor& sorted, const Tensor& q, bool ignores_nan) {
  const Tensor is_nan = isnan(sorted);
  if (ignores_nan) {
    const Tensor last = sub(sum(to(logical_not(is_nan), sorted.dtype()), -1, true), 1);
    return mul(q, clamp(last, 0.0));
  }
  const Dim last = shape_of(sorted).back() - 1;
  return where(any(is_nan, -1, true), full_like(q, Scalar(last)), mul(q, Scalar(last)));
}

Tensor at_places(const Tensor& sorted, const Tensor& places, std::string_view interpolation) {
  const auto entries = [&](const Tensor& at) { return gather(sorted, -1, to(detach(at), kInt64)); };
  if (interpolation == "lower") return entries(floor(places));
  if (interpolation == "higher") return entries(ceil(places));
  if (interpolation == "nearest") return entries(round(places));
  const Tensor below = floor(places);
  const Tensor low = entries(below), high = entries(ceil(places));
  if (interpolation == "midpoint") return lerp(low, high, 0.5);
  return lerp(low, high, sub(places, below));
}

Tensor quantiles(Operand x, Operand q, std::optional<int64_t> dim, bool keepdim,
                 std::string_view interpolation, bool ignores_nan, std::string_view op) {
  const NamedCall call(op, x.where());
  check_operands(x, q, interpolation, op);
  const int rank = x.tensor().impl().rank();
  const int along = dim ? wrap_dim(*dim, rank, op) : 0;
  const Tensor lines = dim && rank > 0 ? movedim(x, {along}, {-1}) : flat(x.tensor(), x.where());
  const Tensor wanted =
      q.is_scalar() ? full({}, q.scalar(), {lines.dtype(), lines.device()}, x.where()) : q.tensor();
  const Tensor sorted = sort(Operand(lines, x.where())).values;
  const Tensor found =
      at_places(sorted, places_of(sorted, flat(wanted, x.where()), ignores_nan), interpolation);
  const Tensor first = movedim(found, {-1}, {0});  // q's dim
  Shape shape;
  if (wanted.dim() == 1) shape.push_back(shape_of(wanted)[0]);
  for (int d = 0; d < rank; ++d) {
    const bool is_reduced = !dim || d == along;
    if (!is_reduced || keepdim) shape.push_back(is_reduced ? Dim(1) : shape_of(x)[d]);
  }
  return reshape_to(Operand(first, x.where()), shape);
}

}  // namespace

Tensor quantile(Operand x, Operand q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return quantiles(x, q, dim, keepdim, interpolation, false, "quantile");
}

Tensor nanquantile(Operand x, Operand q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return quantiles(x, q, dim, keepdim, interpolation, true, "nanquantile");
}

}  // namespace retrograd
