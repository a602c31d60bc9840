// What batching rules are made of (ops/batch_rules.h, engine/batching.h). For .cc files of ops.
//
// A rule gets operands with the batch dim in front, calls ops on them, and gives results with the batch dim in front.
// It may emit the op itself with other attributes (BatchContext::run) or call public functions; both are differentiated
// by what stands below.
#pragma once

#include <string>
#include <vector>

#include "engine/basic_ops.h"
#include "engine/batching.h"
#include "ops/op.h"

namespace retrograd::inline v0::ops {

/// All samples of each operand; undefined where one is missing.
inline Tensors all_operands(const BatchContext& c) {
  Tensors operands;
  for (int i = 0; i < c.operands(); ++i) operands.push_back(c.all(i));
  return operands;
}
/// x with dims of size 1 after the first one, up to `rank` dims: a view.
Tensor align(const Tensor& x, int rank, SourceLocation where);
/// (batch, n, ...) as (batch * n, ...), and the reverse.
Tensor fold(const Tensor& x, SourceLocation where);
Tensor unfold_first(const Tensor& x, Dim batch, Dim n, SourceLocation where);
/// (batch, m, n, ...) as (m, batch * n, ...), and the reverse.
Tensor fold_second(const Tensor& x, SourceLocation where);
Tensor unfold_second(const Tensor& x, Dim batch, Dim n, SourceLocation where);
/// Dim `from` moved to the place `to`.
Tensor move_dim(const Tensor& x, int from, int to, SourceLocation where);

/// The ops that have been called once for each sample in this process, in alphabetical order.
std::vector<std::string> looped_ops();

}  // namespace retrograd::inline v0::ops
