// What functions and type rules of pools share: checks of operands and arguments, and shapes.
#pragma once

#include <fmt/format.h>

#include "ops/family_parts.h"

namespace retrograd::inline v0::ops {

[[noreturn]] inline void refuse_pool(std::string_view op, std::string_view text, Operand x) {
  fail(Category::bad_argument, op, text, x.where());
}

/// One channel dim before the grid, and perhaps a batch. From dim `filled` on no dim may be empty; with a batch, from
/// the next one on.
inline void check_pooled(std::string_view op, Operand x, int dims, int filled) {
  const Shape& shape = shape_of(x);
  if (shape.rank() != dims + 1 && shape.rank() != dims + 2)
    fail(Category::bad_dim, op,
         fmt::format("{} or {} dims are needed, not {}", dims + 1, dims + 2, describe(x.tensor())),
         x.where());
  for (int i = filled + shape.rank() - dims - 1; i < shape.rank(); ++i)
    if (shape[i] == 0) refuse_pool(op, fmt::format("dim {} of {} is empty", i, describe(x.tensor())), x);
}

/// `shape` with its last `dims` sizes replaced by those of `grid`.
inline Shape with_grid(const Shape& shape, int dims, const Shape& grid) {
  Shape result(std::span(shape.begin(), static_cast<size_t>(shape.rank() - dims)));
  for (const Dim size : grid) result.push_back(size);
  return result;
}

/// An entry for each dim, from one for all of them.
inline IntList per_dim(std::string_view op, std::string_view name, const IntList& list, int dims, Operand x) {
  if (list.size() == dims) return list;
  if (list.size() != 1)
    refuse_pool(op, fmt::format("{} has {} entries for {} dims", name, list.size(), dims), x);
  IntList all;
  for (int i = 0; i < dims; ++i) all.push_back(list[0]);
  return all;
}

}  // namespace retrograd::ops
