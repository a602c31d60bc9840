// Statistics of elements made of reductions: sums without NaNs, a variance with its mean, covariances, and others.
//
// All are compositions of public functions, so they are differentiable and traceable like these. 16-bit floats are
// computed in float32 and rounded once. Order statistics are in ops/order_statistics.h, quantiles in ops/quantile.h,
// counts in ops/counts.h.
#pragma once

#include <optional>
#include <tuple>

#include "ops/named_tensors.h"
#include "ops/reduce.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

// Dims as for the reductions of ops/reduce.h: they are dropped, or have size 1 with keepdim; an empty `dim` means all.
// Errors: bad_dim, dtype_mismatch for integers where floats are needed.

/// Sum and mean of what is not NaN over `dim`, of the elements converted to `dtype` if that is given. Without such
/// elements the sum is 0 and the mean NaN. Integers sum to int64; they have no mean.
Tensor nansum(Operand input, const IntList& dim = {}, bool keepdim = false,
              std::optional<ScalarType> dtype = {});
Tensor nanmean(Operand input, const IntList& dim = {}, bool keepdim = false,
               std::optional<ScalarType> dtype = {});

/// std() or var(), and mean().
std::tuple<Tensor, Tensor> std_mean(Operand input, const IntList& dim = {}, Scalar correction = 1,
                                    bool keepdim = false);
std::tuple<Tensor, Tensor> var_mean(Operand input, const IntList& dim = {}, Scalar correction = 1,
                                    bool keepdim = false);

RG_NAMED_PAIR(MinAndMax, min, max);
/// amin() and amax() along `dim`, or of all elements.
MinAndMax aminmax(Operand input, std::optional<int64_t> dim = {}, bool keepdim = false);

/// The covariances of the rows of a matrix, whose columns are observations: [n, n], a number for one row or a vector.
/// sum(w (x - m)(y - n)) / (sum(w) - correction), m and n the weighted means; with aweights a, correction times
/// sum(w a) / sum(w). `fweights` (integers, not negative): how often each observation occurs; `aweights` (floats): its
/// weight. A denominator below 0 counts as 0. Errors: bad_dim, dtype_mismatch, shape_mismatch.
Tensor cov(Operand input, int64_t correction = 1, const Tensor& fweights = {}, const Tensor& aweights = {});
/// cov(input) divided by the standard deviations, in [-1, 1].
Tensor corrcoef(Operand input);

/// Each slice along `dim` whose p-norm n is larger than maxnorm, times maxnorm / (n + 1e-7). Errors: bad_dim for fewer
/// than two dims, bad_argument unless p > 0 and maxnorm >= 0.
Tensor renorm(Operand input, Scalar p, int64_t dim, Scalar maxnorm);

}  // namespace retrograd
#pragma GCC visibility pop
