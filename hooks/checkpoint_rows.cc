// See hooks/checkpoint_rows.h.
#include "hooks/checkpoint_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/error.h"
#include "ops/join.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace {

constexpr const char* kRowsOp = "checkpoint_rows";

int64_t common_rows(const Tensors& inputs, SourceLocation where) {
  if (inputs.empty()) fail(Category::bad_argument, kRowsOp, "there are no inputs", where);
  const int64_t all = inputs[0].size(0, where);
  for (const Tensor& x : inputs)
    if (x.size(0, where) != all)
      fail(Category::shape_mismatch, kRowsOp, fmt::format("inputs have {} and {} rows", all, x.size(0)),
           where);
  return all;
}

}  // namespace

Tensor checkpoint_rows(const std::function<Tensor(const Tensors&)>& function, const Tensors& inputs,
                       int64_t rows, const CheckpointOptions& options, SourceLocation where) {
  require_function(static_cast<bool>(function), kRowsOp, where);
  if (rows < 1) fail(Category::bad_argument, kRowsOp, fmt::format("{} rows at a time", rows), where);
  const int64_t all = common_rows(inputs, where);
  Tensors results;
  for (int64_t begin = 0; begin < all || results.empty(); begin += rows) {
    const int64_t count = std::min(rows, all - begin);
    Tensors piece;
    for (const Tensor& x : inputs) piece.push_back(narrow(Operand(x, where), 0, begin, count));
    results.push_back(checkpoint(function, piece, options, where));
    const Tensor& result = results.back();
    if (!result.defined() || result.dim() == 0 || result.size(0) != count)
      fail(Category::bad_argument, kRowsOp,
           fmt::format("for {} rows the function gives {}", count,
                       result.defined() ? to_string(result.impl().shape()) : "an undefined tensor"),
           where);
  }
  return results.size() == 1 ? results[0] : cat(results, 0, where);
}

Tensor checkpoint_rows(const std::function<Tensor(const Tensor&)>& function, const Tensor& input,
                       int64_t rows, const CheckpointOptions& options, SourceLocation where) {
  require_function(static_cast<bool>(function), kRowsOp, where);
  return checkpoint_rows([&](const Tensors& piece) { return function(piece[0]); }, Tensors{input}, rows,
                         options, where);
}

}  // namespace retrograd
