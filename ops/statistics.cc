// See ops/statistics.h.
#include "ops/statistics.h"

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/index_ops.h"
#include "ops/matmul.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace {

Tensor in_dtype(Operand x, std::optional<ScalarType> dtype) { return dtype ? to(x, *dtype) : x.tensor(); }

}  // namespace

Tensor nansum(Operand x, const IntList& dim, bool keepdim, std::optional<ScalarType> dtype) {
  const NamedCall call("nansum", x.where());
  const detail::AutocastOff as_asked(dtype.has_value());
  const Tensor from = in_dtype(x, dtype);
  if (!is_floating(from.dtype())) return sum(Operand(from, x.where()), dim, keepdim);
  return sum(masked_fill(Operand(from, x.where()), isnan(from), 0), dim, keepdim);
}

Tensor nanmean(Operand x, const IntList& dim, bool keepdim, std::optional<ScalarType> dtype) {
  const NamedCall call("nanmean", x.where());
  const Tensor from = in_dtype(x, dtype);
  if (!is_floating(from.dtype()))
    fail(Category::dtype_mismatch, "nanmean", fmt::format("{} has no floating dtype", describe(from)),
         x.where());
  const ops::Widened wide(from);
  const Tensor numbers = wide(from), count = sum(logical_not(isnan(from)), dim, keepdim);
  return wide.back(div(nansum(Operand(numbers, x.where()), dim, keepdim), count));
}

std::tuple<Tensor, Tensor> std_mean(Operand x, const IntList& dim, Scalar correction, bool keepdim) {
  const NamedCall call("std_mean", x.where());
  return {std(x, dim, correction, keepdim), mean(x, dim, keepdim)};
}

std::tuple<Tensor, Tensor> var_mean(Operand x, const IntList& dim, Scalar correction, bool keepdim) {
  const NamedCall call("var_mean", x.where());
  return {var(x, dim, correction, keepdim), mean(x, dim, keepdim)};
}

MinAndMax aminmax(Operand x, std::optional<int64_t> dim, bool keepdim) {
  const NamedCall call("aminmax", x.where());
  const IntList dims = dim ? IntList(*dim) : IntList();
  return {amin(x, dims, keepdim), amax(x, dims, keepdim)};
}

// ---- covariances ----------------------------------------------------------------------------------------------------

namespace {

void check_weights(const Tensor& weights, bool floating, Dim observations, SourceLocation where) {
  if (!weights.defined()) return;
  const std::string_view name = floating ? "aweights" : "fweights";
  if (weights.dim() != 1)
    fail(Category::bad_dim, "cov", fmt::format("{} have one dim, not {}", name, describe(weights)), where);
  if (floating ? !is_floating(weights.dtype()) : !is_integral(weights.dtype(), false))
    fail(Category::dtype_mismatch, "cov",
         fmt::format("{} are {}, not {}", name, floating ? "floats" : "integers", describe(weights)), where);
  if (!(shape_of(weights)[0] == observations))
    fail(Category::shape_mismatch, "cov",
         fmt::format("{} are {}, for {} observations", name, describe(weights), to_string(observations)),
         where);
}

/// The weights of the observations, undefined if each is 1, and what a sum of products is divided by.
struct Observations {
  Tensor weights, total;
  std::optional<Scalar> count;  // in place of the total
  Tensor factor;

  Observations(Dim n, int64_t correction, const Tensor& fweights, const Tensor& aweights, ScalarType dtype) {
    if (!fweights.defined() && !aweights.defined()) {
      const Dim freedom = n - Dim(correction);
      count = Scalar(freedom < 0 ? Dim(0) : freedom);
      return;
    }
    weights = !aweights.defined()   ? to(fweights, dtype)
              : !fweights.defined() ? to(aweights, dtype)
                                    : mul(to(aweights, dtype), to(fweights, dtype));
    total = sum(weights);
    Tensor lost = full_like(total, correction);
    if (aweights.defined()) lost = mul(div(sum(mul(weights, to(aweights, dtype))), total), correction);
    factor = maximum(sub(total, lost), 0.0);
  }
};

// Of rows of floats that are not of 16 bits: [n, n].
Tensor covariances(const Tensor& x, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  const Observations o(shape_of(x)[1], correction, fweights, aweights, x.dtype());
  const Tensor average = o.count ? mean(x, 1, true) : div(sum(mul(x, o.weights), 1, true), o.total);
  const Tensor centered = sub(x, average);
  const Tensor products = mm(centered, t(o.count ? centered : mul(centered, o.weights)));
  return o.count ? div(products, *o.count) : div(products, o.factor);
}

// Rows of variables, in a dtype that is computed in.
Tensor as_rows(Operand x, std::string_view op) {
  const Tensor& from = x.tensor();
  if (from.dim() > 2) fail(Category::bad_dim, op, fmt::format("{} is no matrix", describe(from)), x.where());
  const Tensor floats = is_floating(from.dtype()) ? from : to(x, get_default_dtype());
  const ops::Widened wide(floats);
  return from.dim() == 2 ? wide(floats) : reshape_to(wide(floats), {1, floats.impl().numel()});
}

// Of a float dtype, or else the default.
ScalarType result_dtype(const Tensor& x) { return is_floating(x.dtype()) ? x.dtype() : get_default_dtype(); }

// One variable has a number.
Tensor squeezed(const Tensor& matrix) {
  return shape_of(matrix)[0] == Dim(1) ? reshape_to(matrix, {}) : matrix;
}

}  // namespace

Tensor cov(Operand x, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  const NamedCall call("cov", x.where());
  const Tensor rows = as_rows(x, "cov");
  check_weights(fweights, false, shape_of(rows)[1], x.where());
  check_weights(aweights, true, shape_of(rows)[1], x.where());
  return to(squeezed(covariances(rows, correction, fweights, aweights)), result_dtype(x.tensor()));
}

Tensor corrcoef(Operand x) {
  const NamedCall call("corrcoef", x.where());
  const Tensor c = covariances(as_rows(x, "corrcoef"), 1, {}, {});
  const Tensor deviations = sqrt(diagonal(c));
  const Tensor r = div(div(c, unsqueeze(deviations, 1)), unsqueeze(deviations, 0));
  return to(squeezed(clamp(r, -1.0, 1.0)), result_dtype(x.tensor()));
}

// ---- norms of slices
// --------------------------------------------------------------------------------------------------

Tensor renorm(Operand x, Scalar p, int64_t dim, Scalar maxnorm) {
  const NamedCall call("renorm", x.where());
  const int rank = x.tensor().impl().rank();
  if (rank < 2)
    fail(Category::bad_dim, "renorm", fmt::format("{} has fewer than two dims", describe(x.tensor())),
         x.where());
  if (!(p.number().as_double() > 0) || !(maxnorm.number().as_double() >= 0))
    fail(Category::bad_argument, "renorm",
         fmt::format("p is {} and maxnorm {}", p.number().as_double(), maxnorm.number().as_double()),
         x.where());
  const int along = wrap_dim(dim, rank, "renorm");
  IntList others;
  for (int d = 0; d < rank; ++d)
    if (d != along) others.push_back(d);
  const ops::Widened wide(x.tensor());
  const Tensor from = wide(x.tensor()), size = vector_norm(Operand(from, x.where()), p, others, true);
  return wide.back(mul(from, where(gt(size, maxnorm), div(maxnorm, add(size, 1e-7)), 1.0)));
}

}  // namespace retrograd
