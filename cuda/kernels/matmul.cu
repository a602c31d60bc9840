// Products of matrices with any strides and dtype, by two kernels.
//
// tile_kernel: a block computes a tile of results (cuda/kernels/tiles.h). thin_kernel: if a factor is a vector, nothing
// can be reused; `lanes` threads share the terms of a result, and their sums are added as a tree. Long sums are split
// into parts that a second kernel adds in order. Sums are in the compute type: float32 for the narrower floats, modulo
// 2^64 for integers.
#include "cuda/kernels/matmul_call.h"

#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/strided.h"
#include "cuda/kernels/tiles.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

constexpr int kTile = 64;

template <class C>
struct Product {
  MatmulCall call;
  StridedGrid<MatmulCall::kSides> batch;
  Divider of_matrix, of_row;  // divide by the number of results of a matrix, of a row
  Sum<C> alpha, beta;

  explicit Product(const MatmulCall& c)
      : call(c), batch(c.batches), of_matrix(c.m * c.n, c.m * c.n * c.batches), of_row(c.n, c.m * c.n) {
    for (int d = 0; d < c.batch_rank; ++d) {
      int64_t stride[MatmulCall::kSides];
      for (int s = 0; s < MatmulCall::kSides; ++s) stride[s] = c.side[s].batch[d];
      batch.add(c.batch_size[d], stride);
    }
    const bool integers = std::is_same_v<C, int64_t>;
    alpha = integers ? static_cast<Sum<C>>(c.integer_alpha) : static_cast<Sum<C>>(c.alpha);
    beta = integers ? static_cast<Sum<C>>(c.integer_beta) : static_cast<Sum<C>>(c.beta);
  }

  using Places = Offsets<MatmulCall::kSides>;

  RG_HD Sum<C> read(int side, int64_t base, int64_t i, int64_t j) const {
    const BatchMatrix& s = call.side[side];
    return static_cast<Sum<C>>(load<C>(s.data, call.element, base + i * s.row + j * s.column));
  }
  RG_HD void write(const Places& base, int64_t i, int64_t j, Sum<C> sum) const {
    if (alpha != 1) sum *= alpha;
    if (call.side[MatmulCall::kStart].data)
      sum += beta * read(MatmulCall::kStart, base[MatmulCall::kStart], i, j);
    const BatchMatrix& out = call.side[MatmulCall::kOut];
    store<C>(out.data, call.element, base[MatmulCall::kOut] + i * out.row + j * out.column,
             static_cast<C>(sum));
  }
};

// One factor of a block's tile. `along`: the positions remaining from `base` on; steps between positions and between
// terms.
template <class C>
struct Factor {
  const void* data;
  Element element;
  int64_t base, along, terms, along_step, terms_step;
  bool terms_first;

  RG_HD Sum<C> operator()(int place, int64_t term) const {
    if (place >= along || term >= terms) return 0;
    return static_cast<Sum<C>>(load<C>(data, element, base + place * along_step + term * terms_step));
  }
};

// Blocks: tiles of a row of tiles, rows of tiles, matrices.
template <class C>
__global__ void __launch_bounds__(kThreads) tile_kernel(const Product<C> p) {
  using T = Tiles<Sum<C>, kTile>;
  __shared__ T tiles;
  const MatmulCall& call = p.call;
  const TilePlace at = tile_of_block<T>(call.m, call.n);
  const int64_t row = at.row, column = at.column;
  const typename Product<C>::Places base(p.batch, at.matrix);
  const BatchMatrix &a = call.side[MatmulCall::kA], &b = call.side[MatmulCall::kB];
  const Factor<C> left{a.data,       call.element, base[MatmulCall::kA] + row * a.row,
                       call.m - row, call.k,       a.row,
                       a.column,     a.column == 1};
  const Factor<C> right{b.data,          call.element, base[MatmulCall::kB] + column * b.column,
                        call.n - column, call.k,       b.column,
                        b.row,           b.row == 1};
  Sum<C> sum[T::kOwn][T::kOwn] = {};
  multiply_terms(left, right, 0, call.k, tiles, sum);
  for_sums<T>(sum, [&](int i, int j, Sum<C> s) {
    if (row + i < call.m && column + j < call.n) p.write(base, row + i, column + j, s);
  });
}

// The position of result `number`, counted over rows and columns.
template <class C>
struct Result {
  typename Product<C>::Places base;
  int64_t row, column;

  RG_HD Result(const Product<C>& p, int64_t number) : Result(p, p.of_matrix(number), number) {}

 private:
  RG_HD Result(const Product<C>& p, int64_t matrix, int64_t number)
      : base(p.batch, matrix), row(p.of_row(number - matrix * p.call.m * p.call.n)) {
    column = number - (matrix * p.call.m + row) * p.call.n;
  }
};

// Block (x, y): results [x * results of a block, ...), part y.
template <class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks) thin_kernel(const Product<C> p) {
  using S = Sum<C>;
  __shared__ S found[kThreads];
  const MatmulCall& call = p.call;
  const int thread = static_cast<int>(threadIdx.x), of_block = kThreads / call.lanes;
  const int lane = call.outputs_first ? thread / of_block : thread % call.lanes;
  const int own = call.outputs_first ? thread % of_block : thread / call.lanes;
  const int64_t results = call.m * call.n * call.batches;
  const int64_t result = static_cast<int64_t>(blockIdx.x) * of_block + own;
  const int64_t begin = blockIdx.y * call.part;
  const int64_t end = begin + call.part < call.k ? begin + call.part : call.k;

  S sum = 0;
  if (result < results) {
    const Result<C> at(p, result);
#pragma unroll 4
    for (int64_t l = begin + lane; l < end; l += call.lanes)
      sum = multiply_add(p.read(MatmulCall::kA, at.base[MatmulCall::kA], at.row, l),
                         p.read(MatmulCall::kB, at.base[MatmulCall::kB], l, at.column), sum);
  }
  S* const of_result = found + own * call.lanes;
  of_result[lane] = sum;
  for (int half = call.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) of_result[lane] += of_result[lane + half];
  }
  if (lane > 0 || result >= results) return;
  if (call.splits > 1) {
    static_cast<S*>(call.partials)[result * call.splits + blockIdx.y] = of_result[0];
    return;
  }
  const Result<C> at(p, result);
  p.write(at.base, at.row, at.column, of_result[0]);
}

template <class C>
__global__ void __launch_bounds__(kThreads) add_parts_kernel(const Product<C> p) {
  const int64_t result = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (result >= p.call.m * p.call.n * p.call.batches) return;
  const Sum<C>* parts = static_cast<const Sum<C>*>(p.call.partials) + result * p.call.splits;
  Sum<C> sum = parts[0];
  for (int s = 1; s < p.call.splits; ++s) sum += parts[s];
  const Result<C> at(p, result);
  p.write(at.base, at.row, at.column, sum);
}

template <class C>
void launch_matmul(const MatmulCall& call, StreamHandle stream) {
  const Product<C> p(call);
  if (!call.is_thin) {
    const int64_t tiles = (call.m + kTile - 1) / kTile * ((call.n + kTile - 1) / kTile);
    launch(tile_kernel<C>, Shape3{static_cast<unsigned>(tiles * call.batches)}, stream, p);
    return;
  }
  const int64_t results = call.m * call.n * call.batches;
  const int of_block = kThreads / call.lanes;
  const Shape3 shape{static_cast<unsigned>((results + of_block - 1) / of_block),
                     static_cast<unsigned>(call.splits)};
  launch(thin_kernel<C>, shape, stream, p);
  if (call.splits > 1) launch(add_parts_kernel<C>, threads_for(results), stream, p);
}

}  // namespace

void add_matmul_launchers(Launchers& all) {
  static constexpr MatmulRow row{launch_matmul<float>, launch_matmul<double>, launch_matmul<int64_t>};
  all.matmul = &row;
}

}  // namespace retrograd::cuda::RG_TARGET
