// Checks that embedding and embedding_bag share.
#pragma once

#include <fmt/format.h>

#include "ops/embedding.h"

namespace retrograd::inline v0::ops {

/// Error(bad_argument) unless the padding is a row of a table, or -1 for none.
inline void check_padding(const Call& call, const EmbeddingAttrs& a, Dim rows) {
  if (a.padding_idx < -1 || a.padding_idx >= rows.hint())
    fail_call(call, Category::bad_argument,
              fmt::format("padding_idx {} for {} rows", a.padding_idx, to_string(rows)));
}

/// The row that is padding, or -1 for none; a negative one counts from the end. Error(bad_dim) unless the weight is a
/// matrix, Error(bad_argument) for a row that it has not.
inline int64_t padding_row(std::string_view op, const Tensor& weight, std::optional<int64_t> padding_idx,
                           SourceLocation where) {
  if (weight.dim() != 2)
    fail(Category::bad_dim, op, fmt::format("the weight is {}, not a matrix", describe(weight)), where);
  if (!padding_idx) return -1;
  const int64_t rows = weight.size(0);
  if (*padding_idx < -rows || *padding_idx >= rows)
    fail(Category::bad_argument, op, fmt::format("padding_idx {} for {} rows", *padding_idx, rows), where);
  return *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
}

}  // namespace retrograd::ops
