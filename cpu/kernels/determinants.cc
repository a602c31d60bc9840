// Kernels of the determinants of ops/linalg.h, and of cofactors.
//
// Determinants are computed from LU factors passed as operands: for_determinants() traverses the batch, checks that
// the permutation is valid, and provides its sign. Cofactors are det A * inverse(A)' if the pivots show that this
// keeps the digits, else they come from cpu/kernels/cofactor.h. Each matrix is processed by one thread; an error
// names the first failing batch entry.
#include <cmath>
#include <limits>

#include "cpu/kernels/cofactor.h"
#include "cpu/kernels/matrix_items.h"
#include "cpu/kernels/table.h"
#include "ops/linalg.h"

namespace retrograd::inline v0::cpu {
namespace {

// The sign of a permutation, by its cycles. `seen` has room for n.
bool is_odd(const int32_t* permutation, int64_t n, bool* seen) {
  std::fill_n(seen, n, false);
  bool odd = false;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i; !seen[j]; j = permutation[j]) {
      seen[j] = true;
      odd ^= permutation[j] != i;
    }
  return odd;
}

// Calls f(batch entry, its LU, its permutation, the sign of that).
template <class T, class F>
void for_determinants(const Call& call, const F& f) {
  const Items<T> lu(*call.operands[1], 2);
  const Items<int32_t> permutation(*call.operands[2], 1);
  const int64_t n = lu.rows(), count = lu.count(), work = n * n;
  const ItemRoom<T> factors(lu, count, work);
  const ItemRoom<int32_t> rows(permutation, count, work);
  const ItemRoom<bool> seen(n, count, work);
  FirstFailure unordered;
  for_items(count, work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int32_t* p = permutation.dense(i, rows.mine());
      if (is_permutation(p, n, seen.mine()))
        f(i, lu.dense(i, factors.mine()), p, is_odd(p, n, seen.mine()) ? T{-1} : T{1});
      else
        unordered.note(i);
    }
  });
  unordered.report(call, Category::bad_argument, kNoPermutation);
}

template <class T>
T determinant(const T* lu, int64_t n, T sign) {
  for (int64_t i = 0; i < n; ++i) sign *= lu[i * (n + 1)];
  return sign;
}

void lu_det_kernel(const Call& call, TensorImpl* const* outputs) {
  const int64_t n = call.operands[0]->shape().back().raw();
  with_type(call, [&]<class T>(T) {
    T* det = static_cast<T*>(outputs[0]->data());
    for_determinants<T>(
        call, [&](int64_t i, const T* lu, const int32_t*, T sign) { det[i] = determinant(lu, n, sign); });
  });
}

void lu_slogdet_kernel(const Call& call, TensorImpl* const* outputs) {
  const int64_t n = call.operands[0]->shape().back().raw();
  with_type(call, [&]<class T>(T) {
    T *signs = static_cast<T*>(outputs[0]->data()), *logs = static_cast<T*>(outputs[1]->data());
    for_determinants<T>(call, [&](int64_t i, const T* lu, const int32_t*, T sign) {
      T log = 0;
      for (int64_t k = 0; k < n; ++k) {
        const T pivot = lu[k * (n + 1)];
        sign *= static_cast<T>((pivot > 0) - (pivot < 0));
        log += std::log(std::abs(pivot));
      }
      signs[i] = sign;
      logs[i] = log;
    });
  });
}

// Whether det A * inverse(A)' keeps at least three quarters of the digits, as far as the pivots tell.
template <class T>
bool is_well_conditioned(const T* lu, int64_t n) {
  T smallest = std::numeric_limits<T>::infinity(), largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T pivot = std::abs(lu[i * (n + 1)]);
    smallest = std::min(smallest, pivot);
    largest = std::max(largest, pivot);
  }
  return smallest > largest * std::sqrt(std::sqrt(std::numeric_limits<T>::epsilon()));
}

void cofactor_kernel(const Call& call, TensorImpl* const* outputs) {
  with_type(call, [&]<class T>(T) {
    const Items<T> a(*call.operands[0], 2), out(*outputs[0], 2);
    const int64_t n = a.rows();
    for_determinants<T>(call, [&](int64_t i, const T* lu, const int32_t* permutation, T sign) {
      T* c = out.at(i);
      if (!is_well_conditioned(lu, n)) {
        a.copy(i, c);
        cofactors(c, n);
        return;
      }
      set_identity(c, n);
      factor_kernels<T>().lu_solve(lu, permutation, n, c, n, true);
      const T det = determinant(lu, n, sign);
      for (int64_t k = 0; k < n * n; ++k) c[k] *= det;
    });
  });
}

void cofactor_derivative_kernel(const Call& call, TensorImpl* const* outputs) {
  with_type(call, [&]<class T>(T) {
    const Items<T> a(*call.operands[0], 2), e(*call.operands[1], 2), out(*outputs[0], 2);
    const ItemRoom<T> room(a, a.count(), cube(a.rows()));
    for_items(a.count(), cube(a.rows()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        e.copy(i, out.at(i));
        cofactor_derivative(a.dense(i, room.mine()), out.at(i), a.rows());
      }
    });
  });
}

}  // namespace

void add_determinants_kernels(KernelTable& table) {
  table.set(&ops::info<ops::LuDet>, lu_det_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::LuSlogdet>, lu_slogdet_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Cofactor>, cofactor_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::CofactorDerivative>, cofactor_derivative_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
