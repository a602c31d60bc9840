// Reductions of the losses of single elements or samples.
#pragma once

#include <fmt/format.h>

#include "ops/loss_options.h"
#include "ops/reduce.h"

namespace retrograd::inline v0::ops {

enum class Averaging : uint8_t { none, sum, mean };

/// Error(bad_argument) for a name other than "none", "sum" and "mean".
inline Averaging parse_reduction(LossReduction reduction, std::string_view op, SourceLocation where) {
  const std::string_view name = reduction.name();
  if (name == "none") return Averaging::none;
  if (name == "sum") return Averaging::sum;
  if (name == "mean") return Averaging::mean;
  fail(Category::bad_argument, op, fmt::format("reduction \"{}\" is not \"none\", \"sum\" or \"mean\"", name),
       where);
}

/// Error(shape_mismatch) unless input and target have one shape.
inline void check_same_shape(Operand x, const Tensor& target, std::string_view op) {
  const Shape &a = x.tensor().impl().shape(), &b = target.impl().shape();
  if (!(a == b))
    fail(Category::shape_mismatch, op,
         fmt::format("input {} and target {} have different shapes", to_string(a), to_string(b)), x.where());
}

inline Tensor reduce_loss(const Tensor& loss, Averaging averaging) {
  if (averaging == Averaging::none) return loss;
  return averaging == Averaging::sum ? sum(loss) : mean(loss);
}

}  // namespace retrograd::ops
