// Factorisations of dense matrices, a block for each: see cuda/kernels/linalg_call.h. The methods are those of the CPU
// (cpu/kernels/levels/factor.h, cofactor.h): partial pivoting, Cholesky, and full pivoting, for matrices that are
// singular or nearly so.
//
// A small matrix is kept in shared memory. With partial pivoting and in Cholesky's method a panel of kPanel columns is
// factored column by column; then the rest of the matrix is updated by the whole panel, so that it is read and written
// once per panel. Full pivoting has no panels: each pivot is searched for in the whole rest, so all of it is updated at
// each step. Of pivots of equal size the first is used, independent of the thread that finds it.
#include "cuda/kernels/linalg_call.h"

#include "cuda/kernels/launch.h"
// Included after it, since it needs RG_TARGET.
#include "cuda/kernels/linalg.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

constexpr int64_t kPanel = 16;
constexpr int kAcross = 32, kDown = kThreads / kAcross;  // threads that share the elements of a matrix
constexpr size_t kMostShared = 40 << 10;                 // bytes of a matrix in shared memory

template <class T>
__device__ void exchange(T& a, T& b) {
  const T held = a;
  a = b;
  b = held;
}

// The largest of the values that the threads have found; of equal ones the first.
template <class T>
struct Largest {
  T size[kThreads];
  int64_t at[kThreads];

  /// Called by all threads of the block, with -1 if they have none; returns the position.
  __device__ int64_t of(T mine, int64_t place) {
    size[me()] = mine;
    at[me()] = place;
    __syncthreads();
    for (int64_t half = kThreads / 2; half > 0; half /= 2) {
      if (me() < half) {
        const T other = size[me() + half];
        if (other > size[me()] || (other == size[me()] && at[me() + half] < at[me()])) {
          size[me()] = other;
          at[me()] = at[me() + half];
        }
      }
      __syncthreads();
    }
    const int64_t found = at[0];
    __syncthreads();
    return found;
  }
};

// f(row, column) for all from `begin` to n; neighbouring threads have neighbouring columns.
template <class F>
__device__ void for_square(int64_t begin, int64_t n, const F& f) {
  for (int64_t i = begin + me() / kAcross; i < n; i += kDown)
    for (int64_t j = begin + me() % kAcross; j < n; j += kAcross) f(i, j);
}

// The position of a row or column after the exchange of a and b.
__device__ inline int64_t exchanged(int64_t place, int64_t a, int64_t b) {
  return place == a ? b : place == b ? a : place;
}

// ---- partial pivoting -------------------------------------------------------------------------------------

template <class T>
__device__ void factor_panel(T* a, int32_t* permutation, int64_t n, int64_t first, int64_t end,
                             Largest<T>& largest) {
  for (int64_t k = first; k < end; ++k) {
    T most = -1;
    int64_t row = k;
    for (int64_t i = k + me(); i < n; i += kThreads) {
      const T v = magnitude(a[i * n + k]);
      if (v > most) most = v, row = i;
    }
    row = largest.of(most, row);
    if (row != k) {
      for (int64_t j = me(); j < n; j += kThreads) exchange(a[k * n + j], a[row * n + j]);
      for (int64_t i = me(); i < n; i += kThreads)
        permutation[i] = static_cast<int32_t>(exchanged(permutation[i], k, row));
    }
    __syncthreads();
    const T pivot = a[k * n + k];
    for (int64_t i = k + 1 + me(); i < n; i += kThreads) {
      T l = a[i * n + k];
      if (pivot != 0) a[i * n + k] = l /= pivot;
      for (int64_t j = k + 1; j < end; ++j) a[i * n + j] = without(a[i * n + j], l, a[k * n + j]);
    }
    __syncthreads();
  }
}

template <class T>
__device__ void factor_lu(T* a, int32_t* permutation, int64_t n, Largest<T>& largest) {
  for (int64_t i = me(); i < n; i += kThreads) permutation[i] = static_cast<int32_t>(i);
  __syncthreads();
  for (int64_t first = 0; first < n; first += kPanel) {
    const int64_t end = first + kPanel < n ? first + kPanel : n;
    factor_panel(a, permutation, n, first, end, largest);
    for (int64_t j = end + me(); j < n; j += kThreads)
      for (int64_t i = first + 1; i < end; ++i) {
        T v = a[i * n + j];
        for (int64_t k = first; k < i; ++k) v = without(v, a[i * n + k], a[k * n + j]);
        a[i * n + j] = v;
      }
    __syncthreads();
    for_square(end, n, [&](int64_t i, int64_t j) {
      T v = a[i * n + j];
      for (int64_t k = first; k < end; ++k) v = without(v, a[i * n + k], a[k * n + j]);
      a[i * n + j] = v;
    });
    __syncthreads();
  }
}

// f(matrix) for the block's matrix, in shared memory if it fits.
template <class T, class F>
__device__ void in_reach(T* a, int64_t elements, bool fits, T* room, const F& f) {
  if (!fits) return f(a);
  for (int64_t i = me(); i < elements; i += kThreads) room[i] = a[i];
  __syncthreads();
  f(room);
  __syncthreads();
  for (int64_t i = me(); i < elements; i += kThreads) a[i] = room[i];
}

// With 128 registers two blocks fit on a multiprocessor.
template <class T>
__global__ void __launch_bounds__(kThreads, 2) lu_kernel(const FactorCall call, const bool fits) {
  RG_DYNAMIC_SHARED(T, room);
  __shared__ Largest<T> largest;
  const int64_t n = call.n;
  for_items(call.count, [&](int64_t item) {
    if (call.only && !call.only[item]) return;
    in_reach(static_cast<T*>(call.a) + item * n * n, n * n, fits, room,
             [&](T* a) { factor_lu(a, call.permutation + item * n, n, largest); });
  });
}

// ---- Cholesky ---------------------------------------------------------------------------------------------

// The lower triangle of a becomes L; if it is not positive definite, the diagonal shows it.
template <class T>
__device__ void factor_cholesky(const MatrixView<T>& a, int64_t n) {
  for (int64_t first = 0; first < n; first += kPanel) {
    const int64_t end = first + kPanel < n ? first + kPanel : n;
    for (int64_t k = first; k < end; ++k) {
      const T root = scalar::sqrt(scalar::Lane<T>(a(k, k))).v;
      __syncthreads();
      for (int64_t i = k + me(); i < n; i += kThreads) a(i, k) = i == k ? root : a(i, k) / root;
      __syncthreads();
      for (int64_t i = k + 1 + me(); i < n; i += kThreads)
        for (int64_t j = k + 1; j < end && j <= i; ++j) a(i, j) = without(a(i, j), a(i, k), a(j, k));
      __syncthreads();
    }
    for_square(end, n, [&](int64_t i, int64_t j) {
      if (j > i) return;
      T v = a(i, j);
      for (int64_t k = first; k < end; ++k) v = without(v, a(i, k), a(j, k));
      a(i, j) = v;
    });
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    cholesky_kernel(const FactorCall call, const bool fits) {
  RG_DYNAMIC_SHARED(T, room);
  const int64_t n = call.n;
  for_items(call.count, [&](int64_t item) {
    in_reach(static_cast<T*>(call.a) + item * n * n, n * n, fits, room, [&](T* a) {
      factor_cholesky(call.upper ? MatrixView<T>{a, 1, n} : MatrixView<T>{a, n, 1}, n);
    });
  });
}

// ---- full pivoting ----------------------------------------------------------------------------------------

// Positions in the order of rows, without a division.
__device__ inline int64_t place_of(int64_t row, int64_t column) { return row << 32 | column; }

// P A Q = L D U with unit triangles, in place of A, with D separate; returns whether the product of the permutations is
// odd.
template <class T>
__device__ bool factor_fully(T* a, T* diagonal, int32_t* rows, int32_t* columns, int64_t n,
                             Largest<T>& largest) {
  bool is_odd = false;
  for (int64_t i = me(); i < n; i += kThreads) rows[i] = columns[i] = static_cast<int32_t>(i);
  for (int64_t k = 0; k < n; ++k) {
    __syncthreads();
    T most = -1;
    int64_t at = place_of(k, k);
    for_square(k, n, [&](int64_t i, int64_t j) {
      const T v = magnitude(a[i * n + j]);
      if (v > most) most = v, at = place_of(i, j);
    });
    at = largest.of(most, at);
    const int64_t row = at >> 32, column = at & 0xffffffff;
    is_odd ^= (row != k) ^ (column != k);
    if (row != k)
      for (int64_t j = me(); j < n; j += kThreads) exchange(a[k * n + j], a[row * n + j]);
    if (me() == 0) {
      exchange(rows[k], rows[row]);
      exchange(columns[k], columns[column]);
    }
    __syncthreads();
    if (column != k)
      for (int64_t i = me(); i < n; i += kThreads) exchange(a[i * n + k], a[i * n + column]);
    __syncthreads();
    const T pivot = a[k * n + k];
    if (me() == 0) diagonal[k] = pivot;
    if (pivot == 0) continue;  // so is the rest
    for (int64_t i = k + 1 + me(); i < n; i += kThreads) a[i * n + k] /= pivot;
    __syncthreads();
    for_square(k + 1, n, [&](int64_t i, int64_t j) {
      a[i * n + j] = without(a[i * n + j], a[i * n + k], a[k * n + j]);
    });
  }
  __syncthreads();
  for_square(0, n, [&](int64_t i, int64_t j) {
    if (j > i && diagonal[i] != 0) a[i * n + j] /= diagonal[i];
  });
  return is_odd;
}

// What full pivoting tells about a matrix besides its factors.
template <class T>
__device__ void finish_fully(const FactorCall& call, int64_t item, bool is_odd) {
  const int64_t n = call.n, start = item * n;
  const T* const diagonal = static_cast<const T*>(call.diagonal) + start;
  for (int64_t i = me(); i < n; i += kThreads) {
    call.rows_inverse[start + call.permutation[start + i]] = static_cast<int32_t>(i);
    call.columns_inverse[start + call.columns[start + i]] = static_cast<int32_t>(i);
  }
  if (me() > 1) return;
  if (me() == 0) {
    static_cast<T*>(call.sign)[item] = is_odd ? T(-1) : T(1);
    T product = 1;
    for (int64_t i = 0; i < n; product *= diagonal[i++]) static_cast<T*>(call.before)[start + i] = product;
  } else {
    T product = 1;
    for (int64_t i = n - 1; i >= 0; product *= diagonal[i--])
      static_cast<T*>(call.behind)[start + i] = product;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    full_kernel(const FactorCall call, const bool fits) {
  RG_DYNAMIC_SHARED(T, room);
  __shared__ Largest<T> largest;
  const int64_t n = call.n;
  for_items(call.count, [&](int64_t item) {
    if (call.only && !call.only[item]) return;
    const int64_t start = item * n;
    bool is_odd = false;
    in_reach(static_cast<T*>(call.a) + start * n, n * n, fits, room, [&](T* a) {
      is_odd = factor_fully(a, static_cast<T*>(call.diagonal) + start, call.permutation + start,
                            call.columns + start, n, largest);
    });
    finish_fully<T>(call, item, is_odd);
  });
}

// ---- launchers --------------------------------------------------------------------------------------------

static_assert(kMostShared + sizeof(Largest<double>) <= kSharedOfAnyKernel);

template <class T>
void start(void (*kernel)(FactorCall, bool), const FactorCall& call, StreamHandle stream) {
  const size_t bytes = call.n < 256 ? static_cast<size_t>(call.n * call.n) * sizeof(T) : kMostShared + 1;
  const bool fits = bytes <= kMostShared;
  Shape3 shape = blocks_for(call.count);
  shape.shared = fits ? bytes : 0;
  launch(kernel, shape, stream, call, fits);
}

void launch_lu(const FactorCall& call, StreamHandle stream) {
  by_type(call.is_double, [&]<class T>(T) { start<T>(lu_kernel<T>, call, stream); });
}

void launch_cholesky(const FactorCall& call, StreamHandle stream) {
  by_type(call.is_double, [&]<class T>(T) { start<T>(cholesky_kernel<T>, call, stream); });
}

void launch_full(const FactorCall& call, StreamHandle stream) {
  by_type(call.is_double, [&]<class T>(T) { start<T>(full_kernel<T>, call, stream); });
}

}  // namespace

const FactorLaunchers& factor_launchers() {
  static constexpr FactorLaunchers all{launch_lu, launch_cholesky, launch_full};
  return all;
}

}  // namespace retrograd::cuda::RG_TARGET
