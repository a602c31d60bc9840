// See ops/embedding_renorm.h.
#include "ops/embedding_renorm.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/embedding_parts.h"
#include "ops/family_parts.h"
#include "ops/index_ops.h"
#include "ops/reduce.h"
#include "ops/ternary.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {

// A row that is named twice is written twice, with the same values.
const Tensor& embedding_renorm_(const Tensor& weight, const Tensor& indices, double max_norm,
                                double norm_type, SourceLocation where) {
  const NamedCall call("embedding_renorm_", where);
  if (weight.impl("embedding_renorm_", where).rank() != 2)
    fail(Category::bad_dim, "embedding_renorm_",
         fmt::format("the weight {} is not a matrix", describe(weight)), where);
  if (!(max_norm > 0))
    fail(Category::bad_argument, "embedding_renorm_", fmt::format("max_norm {} is not positive", max_norm),
         where);
  const NoGradGuard no_grad;
  const Tensor rows = flat(ops::as_index(indices, "embedding_renorm_", where), where);
  const ops::Widened wide(weight);
  const Tensor found = wide(index_select(weight, 0, rows));
  const Tensor norm = vector_norm(found, norm_type, 1, true);
  const Tensor scale = retrograd::where(gt(norm, max_norm), div(max_norm, add(norm, 1e-7)), 1.0);
  return weight.index_copy_(0, rows, wide.back(mul(found, scale)), where);
}

}  // namespace retrograd
