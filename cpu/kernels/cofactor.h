// Cofactors of one dense row-major matrix, singular or not, and their derivative.
//
// Full pivoting gives A = X D Y with D diagonal and X, Y invertible: X of the permuted unit lower triangle, Y of the
// permuted upper one whose rows were divided by the diagonal D (where that is zero the row is zero, and becomes one
// of the unit matrix). Since cof(A B) = cof(A) cof(B) and cof(X) = det X * inverse(X)', only cofactors of D remain:
// products of the other diagonal elements, found without a division. Exact for every rank: up to rounding relative to
// the n-1st power of the largest element.
#pragma once

#include <cstdint>

namespace retrograd::inline v0::cpu {

/// `a` (n, n) becomes its matrix of cofactors, the derivative of its determinant.
void cofactors(float* a, int64_t n);
void cofactors(double* a, int64_t n);
/// `e` (n, n) becomes the derivative of a's cofactors in the direction e.
void cofactor_derivative(const float* a, float* e, int64_t n);
void cofactor_derivative(const double* a, double* e, int64_t n);

}  // namespace retrograd::cpu
