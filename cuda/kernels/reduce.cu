// Reductions. A block takes some rows, or one part of them; `lanes` threads take the elements of a row in turn, and their Partials are merged
// as a tree in shared memory. Parts of a row are merged by a second kernel, in order. So the order of additions depends on sizes alone;
// there are no atomics.
//
// Floating sums are in double: one addition an element costs less than the element's way from memory, and results are those of exact sums
// but for the last rounding.
#include "cuda/kernels/reduce_call.h"

#include "cuda/kernels/launch.h"
#include "cuda/kernels/strided.h"
#include "ops/scalar_math.h"

namespace retrograd::cuda::RG_TARGET {
namespace {

template <class C>
struct Accumulated {
  using Type = double;
};
template <>
struct Accumulated<int64_t> {
  using Type = int64_t;
};

constexpr bool is_extreme(Reduction kind) { return kind >= Reduction::max && kind <= Reduction::abs_min; }
constexpr bool takes_larger(Reduction kind) { return kind == Reduction::max || kind == Reduction::abs_max; }
constexpr bool is_of_magnitude(Reduction kind) {
  return kind == Reduction::abs_sum || kind == Reduction::power_sum || kind == Reduction::abs_max ||
         kind == Reduction::abs_min;
}

template <Reduction kind, class V>
RG_HD Partial<V> nothing() {
  Partial<V> p{0, 0, 0, 0};
  if constexpr (kind == Reduction::prod) p.value = 1;
  if constexpr (kind == Reduction::logsumexp) p.value = static_cast<V>(-scalar::kInfinity);
  if constexpr (kind == Reduction::moments) p.value = static_cast<V>(scalar::kInfinity - scalar::kInfinity);
  return p;
}

// Whether b is the extreme rather than a: of two NaN, or of equal values, the first.
template <Reduction kind, class V>
RG_HD bool beats(const Partial<V>& b, const Partial<V>& a) {
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan || b_is_nan) return b_is_nan && (!a_is_nan || b.index < a.index);
  if (a.value == b.value) return b.index < a.index;
  return takes_larger(kind) ? b.value > a.value : b.value < a.value;
}

// Chan, Golub and LeVeque's formula for the moments of a union.
template <class V>
RG_HD void merge_moments(Partial<V>& a, const Partial<V>& b) {
  const double n = static_cast<double>(a.count + b.count), share = static_cast<double>(b.count) / n;
  const double delta = b.value - a.value;
  a.value += delta * share;
  a.second += b.second + delta * delta * static_cast<double>(a.count) * share;
}

// Brought to the larger of the two maxima.
template <class V>
RG_HD void merge_exponentials(Partial<V>& a, const Partial<V>& b) {
  if (a.value == b.value) {
    a.second += b.second;
    return;
  }
  const bool a_is_high = b.value < a.value || a.value != a.value;
  const Partial<V> high = a_is_high ? a : b, low = a_is_high ? b : a;
  a.second = high.second + low.second * ::exp(low.value - high.value);
  a.value = high.value;
}

template <Reduction kind, class V>
RG_HD void merge(Partial<V>& a, const Partial<V>& b) {
  if (b.count == 0) return;
  if (a.count == 0) {
    a = b;
    return;
  }
  if constexpr (is_extreme(kind)) {
    if (beats<kind>(b, a)) {
      a.value = b.value;
      a.index = b.index;
    }
  } else if constexpr (kind == Reduction::prod) {
    a.value *= b.value;
  } else if constexpr (kind == Reduction::moments) {
    merge_moments(a, b);
  } else if constexpr (kind == Reduction::logsumexp) {
    merge_exponentials(a, b);
  } else {
    a.value += b.value;
  }
  a.count += b.count;
}

// The Partial of the element x alone.
template <Reduction kind, class C>
RG_HD Partial<typename Accumulated<C>::Type> of_one(C x, int64_t index, double p) {
  using V = typename Accumulated<C>::Type;
  V v = static_cast<V>(x);
  if constexpr (is_of_magnitude(kind)) v = v < 0 ? -v : v;
  if constexpr (kind == Reduction::square_sum) v *= v;
  if constexpr (kind == Reduction::power_sum) v = static_cast<V>(::pow(static_cast<double>(v), p));
  if constexpr (kind == Reduction::nonzero) v = x != 0;
  return {v, static_cast<V>(kind == Reduction::logsumexp ? 1 : 0), index, 1};
}

template <class V>
RG_HD V finished(const ReduceCall& call, const Partial<V>& p) {
  const double n = static_cast<double>(call.along.numel), value = static_cast<double>(p.value);
  const double freedom = n - call.parameter, nan = scalar::kInfinity - scalar::kInfinity;
  // Of numbers that are not all finite there is none.
  const double variance =
      value - value == 0 ? static_cast<double>(p.second) / (freedom > 0 ? freedom : 0) : nan;
  switch (call.finish) {
    case Finish::value: return p.value;
    case Finish::mean: return static_cast<V>(value / n);
    case Finish::index: return static_cast<V>(p.index);
    case Finish::variance: return static_cast<V>(variance);
    case Finish::deviation: return static_cast<V>(::sqrt(variance));
    case Finish::logsumexp:
      return value - value == 0 ? static_cast<V>(value + ::log(static_cast<double>(p.second))) : p.value;
    case Finish::root: return static_cast<V>(::sqrt(value));
    case Finish::power_root: return static_cast<V>(::pow(value, 1 / call.parameter));
    case Finish::is_positive: return p.value > 0;
    case Finish::is_length: return p.value == static_cast<V>(call.along.numel);
  }
  return p.value;
}

template <class V>
RG_HD void write(const ReduceCall& call, int64_t row, const Partial<V>& p) {
  store<V>(call.out, call.out_element, row, finished(call, p));
  if (call.index) call.index[row] = p.index;
}

// Block (x, y): rows [x * rows of a block, ...), part y.
template <Reduction kind, class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    reduce_kernel(const ReduceCall call, const StridedGrid<1> rows, const StridedGrid<1> along) {
  using V = typename Accumulated<C>::Type;
  __shared__ Partial<V> found[kThreads];
  const int thread = static_cast<int>(threadIdx.x), rows_of_block = kThreads / call.lanes;
  const int lane = call.rows_first ? thread / rows_of_block : thread % call.lanes;
  const int row_of_block = call.rows_first ? thread % rows_of_block : thread / call.lanes;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * rows_of_block + row_of_block;
  const int64_t begin = blockIdx.y * call.part;
  const int64_t end = begin + call.part < along.numel ? begin + call.part : along.numel;

  Partial<V> mine = nothing<kind, V>();
  if (row < rows.numel) {
    const int64_t start = Offsets<1>(rows, row)[0];
#pragma unroll 4
    for (int64_t i = begin + lane; i < end; i += call.lanes)
      merge<kind>(mine, of_one<kind>(load<C>(call.x, call.element, start + Offsets<1>(along, i)[0]), i,
                                     call.parameter));
  }
  Partial<V>* const of_row = found + row_of_block * call.lanes;
  of_row[lane] = mine;
  for (int half = call.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) merge<kind>(of_row[lane], of_row[lane + half]);
  }
  if (lane > 0 || row >= rows.numel) return;
  if (call.splits > 1)
    static_cast<Partial<V>*>(call.partials)[row * call.splits + blockIdx.y] = of_row[0];
  else
    write(call, row, of_row[0]);
}

template <Reduction kind, class V>
__global__ void __launch_bounds__(kThreads, kLeastBlocks) merge_kernel(const ReduceCall call) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= call.rows.numel) return;
  const Partial<V>* parts = static_cast<const Partial<V>*>(call.partials) + row * call.splits;
  Partial<V> all = parts[0];
  for (int s = 1; s < call.splits; ++s) merge<kind>(all, parts[s]);
  write(call, row, all);
}

template <Reduction kind, class C>
void launch_reduce(const ReduceCall& call, StreamHandle stream) {
  const int rows_of_block = kThreads / call.lanes;
  const auto blocks = static_cast<unsigned>((call.rows.numel + rows_of_block - 1) / rows_of_block);
  const Shape3 shape{blocks, static_cast<unsigned>(call.splits)};
  launch(reduce_kernel<kind, C>, shape, stream, call, grid_of(call.rows), grid_of(call.along));
  if (call.splits > 1)
    launch(merge_kernel<kind, typename Accumulated<C>::Type>, threads_for(call.rows.numel), stream, call);
}

constexpr bool is_of_integers(Reduction kind) {
  using enum Reduction;
  return kind == sum || kind == prod || kind == max || kind == min || kind == nonzero;
}

template <Reduction kind>
constexpr ReduceRow row_of() {
  ReduceRow row{launch_reduce<kind, float>, launch_reduce<kind, double>, nullptr};
  if constexpr (is_of_integers(kind)) row.i64 = launch_reduce<kind, int64_t>;
  return row;
}

}  // namespace

const ReduceRow* reduce_rows() {
  using enum Reduction;
  static constexpr ReduceRow rows[kReductions] = {
      row_of<sum>(),     row_of<abs_sum>(), row_of<square_sum>(), row_of<power_sum>(),
      row_of<prod>(),    row_of<max>(),     row_of<min>(),        row_of<abs_max>(),
      row_of<abs_min>(), row_of<nonzero>(), row_of<moments>(),    row_of<logsumexp>()};
  return rows;
}

}  // namespace retrograd::cuda::RG_TARGET
