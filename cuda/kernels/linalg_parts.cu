// Operations on matrices other than factorisations and triangular systems: see cuda/kernels/linalg_call.h.
#include "cuda/kernels/linalg_call.h"

#include "cuda/kernels/launch.h"
// Included after it, since it needs RG_TARGET.
#include "cuda/kernels/linalg.cuh"
#include "cuda/kernels/note.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

__device__ inline int64_t first_of_thread() { return static_cast<int64_t>(blockIdx.x) * kThreads + me(); }
__device__ inline int64_t threads_of_grid() { return static_cast<int64_t>(gridDim.x) * kThreads; }

// ---- moves ------------------------------------------------------------------------------------------------

template <class T>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    move_kernel(const MoveCall call, const Matrices<T> from, const Matrices<T> to, const Divider by_columns,
                const Divider by_rows) {
  const int64_t numel = call.batch.count * call.rows * call.columns;
  for (int64_t e = first_of_thread(); e < numel; e += threads_of_grid()) {
    const int64_t line = by_columns(e), j = e - line * call.columns;
    const int64_t item = by_rows(line), i = line - item * call.rows;
    if (call.only && !call.only[item]) continue;
    const int64_t row = call.rows_of ? call.rows_of[line] : i;
    const int64_t column = call.columns_of ? call.columns_of[item * call.columns + j] : j;
    T v = 0;
    if (!from.data)
      v = T(row == column);
    else if (row >= 0 && row < call.from_rows && column >= 0 && column < call.from_columns)
      v = from.at(item)(row, column);
    if (call.scale) v *= static_cast<const T*>(call.scale)[item];
    to.at(item)(i, j) = v;
  }
}

void launch_move(const MoveCall& call, StreamHandle stream) {
  const int64_t lines = call.batch.count * call.rows, numel = lines * call.columns;
  by_type(call.is_double, [&]<class T>(T) {
    launch(move_kernel<T>, threads_for(numel), stream, call, Matrices<T>(call.from, call.batch),
           Matrices<T>(call.to, call.batch), Divider(call.columns, numel), Divider(call.rows, numel));
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    clear_kernel(const FactorCall call, const Divider by_columns, const Divider by_rows) {
  const int64_t numel = call.count * call.n * call.n;
  for (int64_t e = first_of_thread(); e < numel; e += threads_of_grid()) {
    const int64_t line = by_columns(e), j = e - line * call.n, i = line - by_rows(line) * call.n;
    if (call.upper ? j < i : j > i) static_cast<T*>(call.a)[e] = 0;
  }
}

void launch_clear(const FactorCall& call, StreamHandle stream) {
  const int64_t numel = call.count * call.n * call.n;
  by_type(call.is_double, [&]<class T>(T) {
    launch(clear_kernel<T>, threads_for(numel), stream, call, Divider(call.n, numel), Divider(call.n, numel));
  });
}

// ---- permutations -----------------------------------------------------------------------------------------

// The final position of each row.
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    order_kernel(const int64_t* pivots, int32_t* permutation, const int64_t n, const int64_t count,
                 const Divider by_n) {
  for (int64_t e = first_of_thread(); e < count * n; e += threads_of_grid()) {
    const int64_t start = by_n(e) * n;
    int64_t at = e - start;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t other = pivots[start + k] - 1;
      at = at == k ? other : at == other ? k : at;
    }
    permutation[e] = static_cast<int32_t>(at);
  }
}

void launch_order(const int64_t* pivots, int32_t* permutation, int64_t n, int64_t count,
                  StreamHandle stream) {
  launch(order_kernel, threads_for(count * n), stream, pivots, permutation, n, count, Divider(n, count * n));
}

// ---- facts ------------------------------------------------------------------------------------------------

// Findings of the threads of a block about a matrix; updated by atomics, of integers.
struct Found {
  unsigned strange, zeros, negatives, inversions;
};

// Rows and their inverse. A number that occurs twice, or is out of range, leaves a position of the inverse unchanged:
// that is an error.
__device__ void read_permutation(const FactsCall& call, const MatrixView<int32_t>& p, int64_t start,
                                 Found& found) {
  const int64_t n = call.n;
  int32_t *const rows = call.rows + start, *const inverse = call.inverse + start;
  for (int64_t i = me(); i < n; i += kThreads) inverse[i] = -1;
  __syncthreads();
  for (int64_t i = me(); i < n; i += kThreads) {
    const int32_t row = rows[i] = p(i, 0);
    if (row < 0 || row >= n)
      atomicAdd(&found.strange, 1u);
    else
      atomicCAS(inverse + row, -1, static_cast<int32_t>(i));
  }
  __syncthreads();
  for (int64_t i = me(); i < n; i += kThreads) {
    const int32_t row = rows[i];
    if (row >= 0 && row < n && inverse[row] != i) atomicAdd(&found.strange, 1u);
    unsigned inversions = 0;
    if (call.det || call.sign)
      for (int64_t j = i + 1; j < n; ++j) inversions += rows[j] < row;
    if (inversions % 2) atomicAdd(&found.inversions, 1u);
  }
}

// The elements on the diagonal in order, by one thread: as on the CPU an intermediate product may leave the range.
template <class T>
struct Diagonal {
  T value[kThreads], log[kThreads];
  T product, signs, logs, least, most;

  __device__ void begin(bool is_odd) {
    product = signs = is_odd ? T(-1) : T(1);
    logs = most = 0;
    least = static_cast<T>(scalar::kInfinity);
  }
  __device__ void add(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const T v = value[i], size = magnitude(v);
      product *= v;
      signs *= T((v > 0) - (v < 0));
      logs += log[i];
      if (size < least) least = size;
      if (size > most) most = size;
    }
  }
};

template <class T>
__device__ void read_diagonal(const FactsCall& call, const MatrixView<T>& a, Found& found, Diagonal<T>& d) {
  for (int64_t first = 0; first < call.n; first += kThreads) {
    const int64_t i = first + me();
    if (i < call.n) {
      const T v = a(i, i);
      d.value[me()] = v;
      d.log[me()] = call.log ? scalar::log(scalar::Lane<T>(magnitude(v))).v : T(0);
      if (v == 0) atomicAdd(&found.zeros, 1u);
      if (!(v > 0)) atomicAdd(&found.negatives, 1u);
    }
    __syncthreads();
    if (me() == 0) d.add(call.n - first < kThreads ? call.n - first : kThreads);
    __syncthreads();
  }
}

// By one thread.
template <class T>
__device__ void write_facts(const FactsCall& call, int64_t item, const Found& found, const Diagonal<T>& d) {
  MatrixFailure failure = MatrixFailure::none;
  if (found.strange)
    failure = MatrixFailure::no_permutation;
  else if (call.refuses_zeros && found.zeros)
    failure = MatrixFailure::singular;
  else if (call.refuses_negatives && (found.negatives || (call.info && call.info[item])))
    failure = MatrixFailure::not_positive_definite;
  if (call.failure) call.failure[item] = static_cast<int32_t>(failure);
  if (call.det) static_cast<T*>(call.det)[item] = d.product;
  if (call.sign) static_cast<T*>(call.sign)[item] = d.signs;
  if (call.log) static_cast<T*>(call.log)[item] = d.logs;
  if (call.is_ill) call.is_ill[item] = !(d.least > d.most * static_cast<T>(call.least_ratio));
}

template <class T>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    facts_kernel(const FactsCall call, const Matrices<T> factors, const Matrices<int32_t> permutations) {
  __shared__ Found found;
  __shared__ Diagonal<T> d;
  for_items(call.batch.count, [&](int64_t item) {
    if (me() == 0) found = {};
    __syncthreads();
    if (permutations.data) read_permutation(call, permutations.at(item), item * call.n, found);
    __syncthreads();
    if (me() == 0) d.begin(found.inversions % 2);
    __syncthreads();
    read_diagonal(call, factors.at(item), found, d);
    if (me() == 0) write_facts(call, item, found, d);
  });
}

void launch_facts(const FactsCall& call, StreamHandle stream) {
  by_type(call.is_double, [&]<class T>(T) {
    launch(facts_kernel<T>, blocks_for(call.batch.count), stream, call, Matrices<T>(call.factors, call.batch),
           Matrices<int32_t>(call.permutation, call.batch));
  });
}

__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    report_kernel(const int32_t* failure, const int64_t count, const bool is_batch, const FaultNote note) {
  __shared__ int64_t unordered[kThreads], other[kThreads];
  int64_t first = count, first_other = count;
  for (int64_t i = me(); i < count; i += kThreads) {
    const auto what = static_cast<MatrixFailure>(failure[i]);
    if (what == MatrixFailure::no_permutation)
      first = i < first ? i : first;
    else if (what != MatrixFailure::none)
      first_other = i < first_other ? i : first_other;
  }
  unordered[me()] = first;
  other[me()] = first_other;
  __syncthreads();
  if (me() != 0) return;
  for (int t = 1; t < kThreads; ++t) {
    if (unordered[t] < first) first = unordered[t];
    if (other[t] < first_other) first_other = other[t];
  }
  const int64_t item = first < count ? first : first_other;
  if (item < count) note_matrix(note, static_cast<MatrixFailure>(failure[item]), item, is_batch);
}

void launch_report(const int32_t* failure, int64_t count, bool is_batch, const FaultNote& note,
                   StreamHandle stream) {
  launch(report_kernel, {1}, stream, failure, count, is_batch, note);
}

// ---- cofactors of a diagonal matrix -----------------------------------------------------------------------

// Row and column i of c: with d(i, j) the product of all of D but elements i and j, -d(i, j) f(j, i) off the diagonal
// and the sum over k of d(i, k) f(k, k) on it. Thread i writes the elements after (i, i) in its row and its column.
template <class T>
__device__ void derive(const T* d, const T* before, const T* behind, const T* f, T* c, int64_t i, int64_t n) {
  T sum = 0, product = behind[i];
#pragma unroll 1
  for (int64_t j = i - 1; j >= 0; product *= d[j--]) sum += before[j] * product * f[j * (n + 1)];
  product = before[i];
#pragma unroll 1
  for (int64_t j = i + 1; j < n; product *= d[j++]) {
    const T rest = product * behind[j];
    c[i * n + j] = -rest * f[j * n + i];
    c[j * n + i] = -rest * f[i * n + j];
    sum += rest * f[j * (n + 1)];
  }
  c[i * (n + 1)] = sum;
}

template <class T>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    diagonal_kernel(const DiagonalCall call, const Divider by_n) {
  for (int64_t e = first_of_thread(); e < call.count * call.n; e += threads_of_grid()) {
    const int64_t n = call.n, item = by_n(e), start = item * n, i = e - start;
    if (call.only && !call.only[item]) continue;
    const T *const before = static_cast<const T*>(call.before) + start, *const behind = static_cast<const T*>(
                                                                                            call.behind) +
                                                                                        start;
    T* const c = static_cast<T*>(call.c) + start * n;
    if (call.f) {
      derive(static_cast<const T*>(call.diagonal) + start, before, behind,
             static_cast<const T*>(call.f) + start * n, c, i, n);
    } else {
      for (int64_t j = 0; j < n; ++j) c[i * n + j] = i == j ? before[i] * behind[i] : T(0);
    }
  }
}

void launch_diagonal(const DiagonalCall& call, StreamHandle stream) {
  const int64_t numel = call.count * call.n;
  by_type(call.is_double, [&]<class T>(T) {
    launch(diagonal_kernel<T>, threads_for(numel), stream, call, Divider(call.n, numel));
  });
}

}  // namespace

const MatrixLaunchers& matrix_launchers() {
  static constexpr MatrixLaunchers all{launch_move,  launch_facts, launch_diagonal,
                                       launch_clear, launch_order, launch_report};
  return all;
}

}  // namespace retrograd::cuda::RG_TARGET
