// Convolutions as products of matrices that are never stored (implicit GEMM): for each group
//
//   wanted   rows       columns            terms              left            right
//   small    features   batch, places      channels, kernel   w[k, c, t]      x[n, c, i(o, t)]
//   large    channels   batch, places      features, kernel   w[k, c, t]      g[n, k, o(i, t)]
//   weight   features   channels, kernel   batch, places      g[n, k, o]      x[n, c, i(o, t)]
//
// Elements outside x, or between the strides, count as 0. Sums are computed by tiles (cuda/kernels/tiles.h); with few
// rows, as in depthwise convolutions, `lanes` threads compute each result. Long sums are split into parts that a second
// kernel adds in order. Sums are in the compute type: float32 for the narrower floats, modulo 2^64 for integers.
#include "cuda/kernels/convolution_call.h"

#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/strided.h"
#include "cuda/kernels/tiles.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

constexpr int kTile = 64;
using Wanted = ConvolutionWanted;

template <class C>
struct Convolution {
  ConvolutionCall call;
  Grid3 kernel, small, large;
  Divider of_row, of_group, stride[3];  // divide results by the columns, rows of results by those of a group

  explicit Convolution(const ConvolutionCall& c)
      : call(c),
        kernel(c.kernel, c.channels > c.features ? c.channels : c.features),
        small(c.small, c.batch),
        large(c.large, c.batch),
        of_row(c.columns, c.columns * c.rows * c.groups),
        of_group(c.rows, c.rows * c.groups) {
    for (int d = 0; d < 3; ++d) stride[d] = Divider(c.stride[d], c.large[d] + c.padding[d]);
  }

  RG_HD static int64_t offset(const ConvolutionSide& s, int64_t first, int64_t second,
                              const int64_t (&at)[3]) {
    return first * s.first + second * s.second + at[0] * s.place[0] + at[1] * s.place[1] + at[2] * s.place[2];
  }
  RG_HD Sum<C> read(const ConvolutionSide& s, int64_t offset) const {
    return static_cast<Sum<C>>(load<C>(s.data, call.element, offset));
  }

  // x of group `group` at positions o and t, or g at i and t; 0 where they do not meet.
  RG_HD Sum<C> read_large(int64_t group, int64_t n, int64_t c, const int64_t (&o)[3],
                          const int64_t (&t)[3]) const {
    int64_t i[3];
    RG_UNROLL
    for (int d = 0; d < 3; ++d) {
      i[d] = o[d] * call.stride[d] + t[d] * call.dilation[d] - call.padding[d];
      if (i[d] < 0 || i[d] >= call.large[d]) return 0;
    }
    return read(call.x, offset(call.x, n, group * call.channels + c, i));
  }
  RG_HD Sum<C> read_small(int64_t group, int64_t n, int64_t k, const int64_t (&i)[3],
                          const int64_t (&t)[3]) const {
    int64_t o[3];
    RG_UNROLL
    for (int d = 0; d < 3; ++d) {
      const int64_t scaled = i[d] + call.padding[d] - t[d] * call.dilation[d];
      if (scaled < 0) return 0;
      o[d] = stride[d](scaled);
      if (o[d] * call.stride[d] != scaled || o[d] >= call.small[d]) return 0;
    }
    return read(call.g, offset(call.g, n, group * call.features + k, o));
  }

  template <Wanted wanted>
  RG_HD Sum<C> left(int64_t group, int64_t row, int64_t term) const {
    int64_t at[3];
    if constexpr (wanted == Wanted::weight) {
      const int64_t n = small.split(term, at);
      return read(call.g, offset(call.g, n, group * call.features + row, at));
    } else {
      const int64_t other = kernel.split(term, at);
      const int64_t k = wanted == Wanted::small ? row : other, c = wanted == Wanted::small ? other : row;
      return read(call.w, offset(call.w, group * call.features + k, c, at));
    }
  }
  template <Wanted wanted>
  RG_HD Sum<C> right(int64_t group, int64_t column, int64_t term) const {
    int64_t place[3], at[3];
    if constexpr (wanted == Wanted::small) {
      const int64_t n = small.split(column, place), c = kernel.split(term, at);
      return read_large(group, n, c, place, at);
    } else if constexpr (wanted == Wanted::large) {
      const int64_t n = large.split(column, place), k = kernel.split(term, at);
      return read_small(group, n, k, place, at);
    } else {
      const int64_t n = small.split(term, place), c = kernel.split(column, at);
      return read_large(group, n, c, place, at);
    }
  }

  template <Wanted wanted>
  RG_HD void write(int64_t group, int64_t row, int64_t column, Sum<C> sum) const {
    int64_t at[3];
    if constexpr (wanted == Wanted::weight) {
      const int64_t c = kernel.split(column, at);
      store<C>(call.w.data, call.element, offset(call.w, group * call.features + row, c, at),
               static_cast<C>(sum));
    } else {
      const bool is_small = wanted == Wanted::small;
      const int64_t n = is_small ? small.split(column, at) : large.split(column, at);
      const int64_t channel = group * call.rows + row;
      const ConvolutionSide& out = is_small ? call.g : call.x;
      if (call.bias) sum += static_cast<Sum<C>>(load<C>(call.bias, call.element, channel * call.bias_step));
      store<C>(out.data, call.element, offset(out, n, channel, at), static_cast<C>(sum));
    }
  }

  // The address of result `number`, or of its part y of the sum.
  RG_HD int64_t number(int64_t group, int64_t row, int64_t column) const {
    return (group * call.rows + row) * call.columns + column;
  }
  template <Wanted wanted>
  RG_HD void finish(int64_t group, int64_t row, int64_t column, int64_t part, Sum<C> sum) const {
    if (call.splits == 1) return write<wanted>(group, row, column, sum);
    static_cast<Sum<C>*>(call.partials)[number(group, row, column) * call.splits + part] = sum;
  }
};

template <class C, Wanted wanted>
struct LeftSource {
  const Convolution<C>& convolution;
  int64_t group, row, end;
  bool terms_first = true;
  RG_HD Sum<C> operator()(int place, int64_t term) const {
    return row + place < convolution.call.rows && term < end
               ? convolution.template left<wanted>(group, row + place, term)
               : Sum<C>(0);
  }
};
template <class C, Wanted wanted>
struct RightSource {
  const Convolution<C>& convolution;
  int64_t group, column, end;
  bool terms_first = wanted == Wanted::weight;
  RG_HD Sum<C> operator()(int place, int64_t term) const {
    return column + place < convolution.call.columns && term < end
               ? convolution.template right<wanted>(group, column + place, term)
               : Sum<C>(0);
  }
};

struct Range {
  int64_t begin, end;
};
RG_HD inline Range part_of(const ConvolutionCall& call, int64_t part) {
  const int64_t begin = part * call.part, end = begin + call.part;
  return {begin, end < call.terms ? end : call.terms};
}

// Block (x, y): tiles of a row of tiles, rows of tiles, groups; part y.
template <class C, Wanted wanted>
__global__ void __launch_bounds__(kThreads) convolution_tile_kernel(const Convolution<C> p) {
  using T = Tiles<Sum<C>, kTile>;
  __shared__ T tiles;
  const ConvolutionCall& call = p.call;
  const TilePlace at = tile_of_block<T>(call.rows, call.columns);
  const Range terms = part_of(call, blockIdx.y);
  Sum<C> sum[T::kOwn][T::kOwn] = {};
  multiply_terms(LeftSource<C, wanted>{p, at.matrix, at.row, terms.end},
                 RightSource<C, wanted>{p, at.matrix, at.column, terms.end}, terms.begin, terms.end, tiles,
                 sum);
  for_sums<T>(sum, [&](int i, int j, Sum<C> s) {
    if (at.row + i < call.rows && at.column + j < call.columns)
      p.template finish<wanted>(at.matrix, at.row + i, at.column + j, blockIdx.y, s);
  });
}

// Block (x, y): results [x * results of a block, ...), part y.
template <class C, Wanted wanted>
__global__ void __launch_bounds__(kThreads) convolution_thin_kernel(const Convolution<C> p) {
  __shared__ Sum<C> found[kThreads];
  const ConvolutionCall& call = p.call;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % call.lanes, own = thread / call.lanes;
  const int64_t result = static_cast<int64_t>(blockIdx.x) * (kThreads / call.lanes) + own;
  const int64_t line = p.of_row(result), group = p.of_group(line);
  const int64_t column = result - line * call.columns, row = line - group * call.rows;
  const Range terms = part_of(call, blockIdx.y);
  Sum<C> sum = 0;
  if (group < call.groups)
    for (int64_t l = terms.begin + lane; l < terms.end; l += call.lanes)
      sum = multiply_add(p.template left<wanted>(group, row, l), p.template right<wanted>(group, column, l),
                         sum);
  Sum<C>* const of_result = found + own * call.lanes;
  of_result[lane] = sum;
  for (int half = call.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) of_result[lane] += of_result[lane + half];
  }
  if (lane == 0 && group < call.groups)
    p.template finish<wanted>(group, row, column, blockIdx.y, of_result[0]);
}

template <class C, Wanted wanted>
__global__ void __launch_bounds__(kThreads) convolution_parts_kernel(const Convolution<C> p) {
  const ConvolutionCall& call = p.call;
  const int64_t result = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t line = p.of_row(result), group = p.of_group(line);
  const int64_t column = result - line * call.columns, row = line - group * call.rows;
  if (group >= call.groups) return;
  const Sum<C>* parts = static_cast<const Sum<C>*>(call.partials) + result * call.splits;
  Sum<C> sum = parts[0];
  for (int s = 1; s < call.splits; ++s) sum += parts[s];
  p.template write<wanted>(group, row, column, sum);
}

template <class C, Wanted wanted>
void launch_convolution(const ConvolutionCall& call, StreamHandle stream) {
  const Convolution<C> p(call);
  const int64_t results = call.rows * call.columns * call.groups;
  Shape3 shape{1, static_cast<unsigned>(call.splits)};
  if (call.lanes > 0) {
    const int of_block = kThreads / call.lanes;
    shape.blocks = static_cast<unsigned>((results + of_block - 1) / of_block);
    launch(convolution_thin_kernel<C, wanted>, shape, stream, p);
  } else {
    const int64_t across = (call.columns + kTile - 1) / kTile, down = (call.rows + kTile - 1) / kTile;
    shape.blocks = static_cast<unsigned>(across * down * call.groups);
    launch(convolution_tile_kernel<C, wanted>, shape, stream, p);
  }
  if (call.splits > 1) launch(convolution_parts_kernel<C, wanted>, threads_for(results), stream, p);
}

}  // namespace

void add_convolution_launchers(Launchers& all) {
  static constexpr ConvolutionRow rows[kConvolutionsWanted] = {
      {launch_convolution<float, Wanted::small>, launch_convolution<double, Wanted::small>,
       launch_convolution<int64_t, Wanted::small>},
      {launch_convolution<float, Wanted::large>, launch_convolution<double, Wanted::large>,
       launch_convolution<int64_t, Wanted::large>},
      {launch_convolution<float, Wanted::weight>, launch_convolution<double, Wanted::weight>, nullptr}};
  all.convolution = rows;
}

}  // namespace retrograd::cuda::RG_TARGET
