// Normalisation of rows, forward and backward. Formulas: ops/norms.h.
//
// Statistics are sums of d and d^2, d = x - (the row's first element), in double. They need one pass, and can be added
// over the parts of a row. A shift far from the mean does no harm: the square of the distance is at most n variances,
// so the variance's relative error is at most n * 2^-53. If a row is split, a first kernel sums its parts, and each
// block of the second adds up the parts of its row.
#include "cuda/kernels/norms_call.h"

#include "cuda/kernels/launchers.h"
#include "cuda/kernels/rows.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

template <class Rows>
__device__ Pair moments(const Team& team, const typename Rows::Row& x, double shift) {
  typename Rows::C v[Rows::N];
  Pair sums{0, 0};
  for (int64_t i = team.begin; i < team.end; i += team.step) {
    const int count = x.read(i, v);
    for (int k = 0; k < Rows::N; ++k) {
      if (k >= count) break;
      const double d = static_cast<double>(v[k]) - shift;
      sums.a += d;
      sums.b += d * d;
    }
  }
  return {sum_over_team(team, sums.a), sum_over_team(team, sums.b)};
}

__device__ inline void put_part(const Team& team, const RowCut& cut, Pair* partials, const Pair& sums) {
  if (team.lane == 0 && team.row < cut.rows) partials[team.row * cut.splits + blockIdx.y] = sums;
}

template <class Rows>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    moments_kernel(const Rows xs, const bool center, const RowCut cut, Pair* partials) {
  const Team team = Team::of<Rows::N>(cut);
  const auto x = xs.row(team.safe_row(cut));
  put_part(team, cut, partials, moments<Rows>(team, x, center ? static_cast<double>(x.at(0)) : 0));
}

struct NormNumbers {
  void *mean, *rstd;
  double eps;
  bool center;
  const Pair* partials;
};

template <class Rows>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    normalize_kernel(const Rows xs, const StridedRows<typename Rows::C> weights,
                     const StridedRows<typename Rows::C> biases, const Rows ys, const NormNumbers numbers,
                     const RowCut cut) {
  using C = typename Rows::C;
  const Team team = Team::of<Rows::N>(cut);
  const int64_t row = team.safe_row(cut);
  const auto x = xs.row(row), y = ys.row(row);
  const auto weight = weights.row(row), bias = biases.row(row);
  const double n = static_cast<double>(cut.length), shift = numbers.center ? static_cast<double>(x.at(0)) : 0;
  const Pair sums = numbers.partials ? sum_of_parts(team, numbers.partials + row * cut.splits, cut.splits)
                                     : moments<Rows>(team, x, shift);
  const double beyond = numbers.center ? sums.a / n : 0, exact = shift + beyond;
  const double variance = sums.b / n - beyond * beyond;
  const double deviation = 1 / ::sqrt((variance < 0 ? 0 : variance) + numbers.eps);
  // The mean as C, and its rounding error.
  const C mean = static_cast<C>(exact), rest = static_cast<C>(exact - static_cast<double>(mean)),
          rstd = static_cast<C>(deviation);
  if (team.lane == 0 && team.row < cut.rows && blockIdx.y == 0) {
    static_cast<C*>(numbers.mean)[row] = mean;
    static_cast<C*>(numbers.rstd)[row] = rstd;
  }
  for (int64_t i = team.begin; i < team.end; i += team.step) {
    C v[Rows::N], w[Rows::N], b[Rows::N];
    x.read(i, v);
    if (weights.exists()) weight.read(i, w);
    if (biases.exists()) bias.read(i, b);
    for (int k = 0; k < Rows::N; ++k) {
      v[k] = ((v[k] - mean) - rest) * rstd;
      if (weights.exists()) v[k] = v[k] * w[k];
      if (biases.exists()) v[k] = v[k] + b[k];
    }
    y.write(i, v);
  }
}

// h = g * weight and xhat of a pack; returns the number of its elements.
template <class Rows>
struct Gradients {
  using C = typename Rows::C;
  typename Rows::Row g, x;
  typename StridedRows<C>::Row weight;
  bool is_weighted;
  C mean, rstd;

  __device__ int read(int64_t i, C (&h)[Rows::N], C (&xhat)[Rows::N]) const {
    C w[Rows::N];
    const int count = g.read(i, h);
    x.read(i, xhat);
    if (is_weighted) weight.read(i, w);
    for (int k = 0; k < Rows::N; ++k) {
      xhat[k] = (xhat[k] - mean) * rstd;
      if (is_weighted) h[k] = h[k] * w[k];
    }
    return count;
  }
};

// The sums of h and of h * xhat.
template <class Rows>
__device__ Pair gradient_sums(const Team& team, const Gradients<Rows>& of) {
  using C = typename Rows::C;
  Pair sums{0, 0};
  for (int64_t i = team.begin; i < team.end; i += team.step) {
    C h[Rows::N], xhat[Rows::N], a = 0, b = 0;
    const int count = of.read(i, h, xhat);
    for (int k = 0; k < Rows::N; ++k) {
      if (k >= count) break;
      a += h[k];
      b += h[k] * xhat[k];
    }
    sums.a += static_cast<double>(a);
    sums.b += static_cast<double>(b);
  }
  return {sum_over_team(team, sums.a), sum_over_team(team, sums.b)};
}

template <class Rows>
struct BackwardSides {
  Rows g, x, dx;
  StridedRows<typename Rows::C> mean, rstd, weight;
  __device__ Gradients<Rows> row(int64_t r) const {
    return {g.row(r), x.row(r), weight.row(r), weight.exists(), mean.row(r).at(0), rstd.row(r).at(0)};
  }
};

template <class Rows>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    gradient_sums_kernel(const BackwardSides<Rows> sides, const RowCut cut, Pair* partials) {
  const Team team = Team::of<Rows::N>(cut);
  put_part(team, cut, partials, gradient_sums(team, sides.row(team.safe_row(cut))));
}

template <class Rows>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    normalize_backward_kernel(const BackwardSides<Rows> sides, const bool center, const Pair* partials,
                              const RowCut cut) {
  using C = typename Rows::C;
  const Team team = Team::of<Rows::N>(cut);
  const int64_t row = team.safe_row(cut);
  const Gradients<Rows> of = sides.row(row);
  const auto dx = sides.dx.row(row);
  const Pair sums =
      partials ? sum_of_parts(team, partials + row * cut.splits, cut.splits) : gradient_sums(team, of);
  const double n = static_cast<double>(cut.length);
  const C a = static_cast<C>(center ? sums.a / n : 0), b = static_cast<C>(sums.b / n);
  for (int64_t i = team.begin; i < team.end; i += team.step) {
    C h[Rows::N], xhat[Rows::N];
    of.read(i, h, xhat);
    for (int k = 0; k < Rows::N; ++k) h[k] = of.rstd * ((h[k] - a) - xhat[k] * b);
    dx.write(i, h);
  }
}

template <class C>
struct AffineSides {
  StridedRows<C> g, x, mean, rstd;
};

template <class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    affine_sums_kernel(const AffineSides<C> sides, const RowCut cut, Pair* partials) {
  constexpr int N = kPack<C>;
  const Team team = Team::of<N>(cut);
  const int64_t row = team.safe_row(cut);
  const auto g = sides.g.row(row), x = sides.x.row(row), mean = sides.mean.row(row),
             rstd = sides.rstd.row(row);
  Pair sums{0, 0};
  for (int64_t i = team.begin; i < team.end; i += team.step) {
    C v[N], w[N], m[N], r[N];
    const int count = g.read(i, v);
    x.read(i, w);
    mean.read(i, m);
    rstd.read(i, r);
    for (int k = 0; k < N; ++k) {
      if (k >= count) break;
      sums.a += static_cast<double>(v[k] * ((w[k] - m[k]) * r[k]));
      sums.b += static_cast<double>(v[k]);
    }
  }
  put_part(team, cut, partials, {sum_over_team(team, sums.a), sum_over_team(team, sums.b)});
}

template <class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    affine_store_kernel(const Pair* partials, const RowCut cut, Element element, void* dweight, void* dbias) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= cut.rows) return;
  Pair sums{0, 0};
  for (int s = 0; s < cut.splits; ++s) {
    sums.a += partials[row * cut.splits + s].a;
    sums.b += partials[row * cut.splits + s].b;
  }
  store<C>(dweight, element, row, static_cast<C>(sums.a));
  store<C>(dbias, element, row, static_cast<C>(sums.b));
}

void launch_forward(const NormCall& call, StreamHandle stream) {
  with_rows(call.x.element, call.x.is_dense && call.y.is_dense, [&]<class Rows>() {
    using Numbers = StridedRows<typename Rows::C>;
    const Rows x(call.x);
    if (call.partials)
      launch(moments_kernel<Rows>, row_shape(call.cut), stream, x, call.center, call.cut, call.partials);
    launch(normalize_kernel<Rows>, row_shape(call.cut), stream, x, Numbers(call.weight), Numbers(call.bias),
           Rows(call.y), NormNumbers{call.mean, call.rstd, call.eps, call.center, call.partials}, call.cut);
  });
}

void launch_backward(const NormBackwardCall& call, StreamHandle stream) {
  const bool is_dense = call.g.is_dense && call.x.is_dense && call.dx.is_dense;
  with_rows(call.x.element, is_dense, [&]<class Rows>() {
    using Numbers = StridedRows<typename Rows::C>;
    const BackwardSides<Rows> sides{Rows(call.g),       Rows(call.x),       Rows(call.dx),
                                    Numbers(call.mean), Numbers(call.rstd), Numbers(call.weight)};
    if (call.partials)
      launch(gradient_sums_kernel<Rows>, row_shape(call.cut), stream, sides, call.cut, call.partials);
    launch(normalize_backward_kernel<Rows>, row_shape(call.cut), stream, sides, call.center, call.partials,
           call.cut);
  });
}

template <class C>
void launch_affine_in(const AffineGradientCall& call, StreamHandle stream) {
  using Numbers = StridedRows<C>;
  const AffineSides<C> sides{Numbers(call.g), Numbers(call.x), Numbers(call.mean), Numbers(call.rstd)};
  launch(affine_sums_kernel<C>, row_shape(call.cut), stream, sides, call.cut, call.partials);
  launch(affine_store_kernel<C>, threads_for(call.cut.rows), stream, call.partials, call.cut, call.x.element,
         call.dweight, call.dbias);
}

void launch_affine(const AffineGradientCall& call, StreamHandle stream) {
  if (call.x.element == Element::f64) return launch_affine_in<double>(call, stream);
  launch_affine_in<float>(call, stream);
}

}  // namespace

void add_norms_launchers(Launchers& all) {
  static constexpr NormLaunchers own{launch_forward, launch_backward, launch_affine};
  all.norms = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
