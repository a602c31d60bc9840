// Kernels of the systems, inverse and cholesky of ops/linalg.h; cpu/kernels/determinants.cc has the others.
//
// Each goes over the batch in parallel (for_items of cpu/kernels/matrix_items.h) and works on one matrix at a time by
// the functions of cpu/kernels/levels/factor.h. Results are dense; operands are copied where they are not. A matrix
// that cannot be factored is noted, the rest of the batch is completed, and the error names the first one
// (FirstFailure).
#include "ops/linalg.h"

#include <utility>

#include <fmt/format.h>

#include "cpu/kernels/matrix_items.h"
#include "cpu/kernels/table.h"

namespace retrograd::inline v0::cpu {

void FirstFailure::report(const Call& call, Category category, std::string_view text) const {
  const int64_t item = first_.load();
  if (item == kNone) return;
  const bool batched = call.operands[0]->rank() > 2;
  fail_call(
      call, category,
      batched ? fmt::format("matrix {} of the batch {}", item, text) : fmt::format("the matrix {}", text));
}

bool is_permutation(const int32_t* p, int64_t n, bool* seen) {
  std::fill_n(seen, n, false);
  for (int64_t i = 0; i < n; ++i) {
    if (p[i] < 0 || p[i] >= n || seen[p[i]]) return false;
    seen[p[i]] = true;
  }
  return true;
}

namespace {

template <class T>
bool is_singular(const T* lu, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (lu[i * (n + 1)] == 0) return true;
  return false;
}

void lu_factor_kernel(const Call& call, TensorImpl* const* outputs) {
  with_type(call, [&]<class T>(T) {
    const Items<T> a(*call.operands[0], 2), lu(*outputs[0], 2);
    const Items<int32_t> permutation(*outputs[1], 1);
    for_items(a.count(), cube(a.rows()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        a.copy(i, lu.at(i));
        factor_kernels<T>().lu(lu.at(i), a.rows(), permutation.at(i));
      }
    });
  });
}

void lu_solve_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::LuSolve::Attrs>();
  FirstFailure singular, unordered;
  with_type(call, [&]<class T>(T) {
    const Items<T> lu(*call.operands[1], 2), b(*call.operands[3], 2), x(*outputs[0], 2);
    const Items<int32_t> permutation(*call.operands[2], 1);
    const int64_t n = lu.rows(), work = n * n * std::max<int64_t>(b.columns(), 1);
    const ItemRoom<T> factors(lu, b.count(), work);
    const ItemRoom<int32_t> rows(permutation, b.count(), work);
    const ItemRoom<bool> seen(n, b.count(), work);
    for_items(b.count(), work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* f = lu.dense(i, factors.mine());
        const int32_t* p = permutation.dense(i, rows.mine());
        if (!is_permutation(p, n, seen.mine())) {
          unordered.note(i);
          continue;
        }
        if (attrs.check && is_singular(f, n)) {
          singular.note(i);
          continue;
        }
        b.copy(i, x.at(i));
        factor_kernels<T>().lu_solve(f, p, n, x.at(i), b.columns(), attrs.transposed);
      }
    });
  });
  unordered.report(call, Category::bad_argument, kNoPermutation);
  singular.report(call, Category::singular_matrix, "is singular");
}

void inverse_kernel(const Call& call, TensorImpl* const* outputs) {
  FirstFailure singular;
  with_type(call, [&]<class T>(T) {
    const Items<T> a(*call.operands[0], 2), y(*outputs[0], 2);
    const int64_t n = a.rows();
    const ItemRoom<T> factors(n * n, a.count(), cube(n));
    const ItemRoom<int32_t> rows(n, a.count(), cube(n));
    for_items(a.count(), cube(n), [&](int64_t begin, int64_t end) {
      T* const lu = factors.mine();
      int32_t* const permutation = rows.mine();
      for (int64_t i = begin; i < end; ++i) {
        a.copy(i, lu);
        factor_kernels<T>().lu(lu, n, permutation);
        if (is_singular(lu, n)) {
          singular.note(i);
          continue;
        }
        set_identity(y.at(i), n);
        factor_kernels<T>().lu_solve(lu, permutation, n, y.at(i), n, false);
      }
    });
  });
  singular.report(call, Category::singular_matrix, "is singular");
}

// ---- Cholesky and triangular systems ----------------------------------------------------------------------

template <class T>
void transpose_square(T* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) std::swap(a[i * n + j], a[j * n + i]);
}

// U' U is L L' with L = U': the upper triangle is transposed, factored and transposed back.
void cholesky_kernel(const Call& call, TensorImpl* const* outputs) {
  const bool upper = call.attrs_as<ops::Cholesky::Attrs>().upper;
  FirstFailure failure;
  with_type(call, [&]<class T>(T) {
    const Items<T> a(*call.operands[0], 2), out(*outputs[0], 2);
    const int64_t n = a.rows();
    for_items(a.count(), cube(n) / 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* l = out.at(i);
        a.copy(i, l);
        if (upper) transpose_square(l, n);
        if (!factor_kernels<T>().cholesky(l, n)) failure.note(i);
        for (int64_t row = 0; row < n; ++row) std::fill_n(l + row * n + row + 1, n - row - 1, T{0});
        if (upper) transpose_square(l, n);
      }
    });
  });
  failure.report(call, Category::not_positive_definite, "is not positive definite");
}

void solve_triangular_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::SolveTriangular::Attrs>();
  with_type(call, [&]<class T>(T) {
    const Items<T> a(*call.operands[0], 2), b(*call.operands[1], 2), x(*outputs[0], 2);
    const int64_t n = a.rows(), work = n * n * std::max<int64_t>(b.columns(), 1);
    const ItemRoom<T> room(a, b.count(), work);
    for_items(b.count(), work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        b.copy(i, x.at(i));
        factor_kernels<T>().triangular_solve(a.dense(i, room.mine()), n, attrs.upper, attrs.unitriangular,
                                             x.at(i), b.columns());
      }
    });
  });
}

}  // namespace

void add_linalg_kernels(KernelTable& table) {
  table.set(&ops::info<ops::LuFactor>, lu_factor_kernel);
  table.set(&ops::info<ops::LuSolve>, lu_solve_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Inverse>, inverse_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Cholesky>, cholesky_kernel);
  table.set(&ops::info<ops::SolveTriangular>, solve_triangular_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
