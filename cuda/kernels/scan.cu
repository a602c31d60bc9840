// Scans of rows. The effect of an element on the preceding result is a Step; steps are combined, the earlier one first:
//
//   sum         a          then b: a + b                    product   a          then b: a * b
//   recurrence  y -> a y + b     then c, d: y -> c a y + (c b + d)
//   largest     a value and its place: the later one unless it is less        smallest   the same
//   logsumexp   the maximum m, and sum(exp(x - m)) without one element that is m (ops/reductions.h)
//
// A team processes its row in pieces: each thread combines the elements of a pack, the team combines packs in order
// (CUB's scans over a warp or a block), and a second pass over the pack writes. If a row is split, a first kernel
// computes the step of each part, and each part begins with the combined previous ones. Floats are in double; integers
// wrap around. No order depends on the device. A few long rows of int64 are scanned by CUB alone.
//
// Limit: a product of several elements, combined before it is applied, may leave the range of double where the same
// elements one after the other would not. That takes more than 8 neighbouring floats near the end of their range.
#include "cuda/kernels/scan_call.h"

#include <iterator>

#include "cuda/kernels/launchers.h"
#include "cuda/kernels/rows.cuh"
#include "ops/reductions.h"
// Included after it, since it needs RG_TARGET.
#include "cuda/kernels/library_scan.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

template <class C>
using Accumulated = std::conditional_t<std::is_same_v<C, int64_t>, uint64_t, double>;

template <class A>
struct One {
  A a;
};
template <class A>
struct Two {
  A a, b;
};
template <class C>
struct Extreme {
  C value;
  int64_t place;  // -1: of no element
};
struct Exponentials {
  double value, second;
};
template <ScanKind kind, class C>
using Step =
    std::conditional_t<gives_places(kind), Extreme<C>,
                       std::conditional_t<kind == ScanKind::logsumexp, Exponentials,
                                          std::conditional_t<kind == ScanKind::recurrence,
                                                             Two<Accumulated<C>>, One<Accumulated<C>>>>>;

template <ScanKind kind, class C>
RG_HD Step<kind, C> no_step() {
  using A = Accumulated<C>;
  if constexpr (kind == ScanKind::sum) return {A(0)};
  if constexpr (kind == ScanKind::product) return {A(1)};
  if constexpr (kind == ScanKind::recurrence) return {A(1), A(0)};
  if constexpr (gives_places(kind)) return {C(0), -1};
  if constexpr (kind == ScanKind::logsumexp) return ops::nothing<ops::Reduction::logsumexp, Exponentials>();
}
/// Whether a later element is the extreme: if it is not beaten, or NaN.
template <ScanKind kind, class C>
RG_HD bool takes_over(const Extreme<C>& first, const Extreme<C>& then) {
  if (first.place < 0 || then.place < 0) return then.place >= 0;
  if (then.value != then.value) return true;
  return kind == ScanKind::largest ? then.value >= first.value : then.value <= first.value;
}
template <ScanKind kind, class S>
RG_HD S combined(const S& first, const S& then) {
  if constexpr (kind == ScanKind::sum) return {first.a + then.a};
  if constexpr (kind == ScanKind::product) return {first.a * then.a};
  if constexpr (kind == ScanKind::recurrence) return {first.a * then.a, then.a * first.b + then.b};
  if constexpr (gives_places(kind)) return takes_over<kind>(first, then) ? then : first;
  if constexpr (kind == ScanKind::logsumexp) {
    S both = first;
    ops::merge_exponentials(both, then);
    return both;
  }
}
/// The result of a scan after a step from the beginning of the row.
template <class A>
RG_HD A value_of(const One<A>& s) {
  return s.a;
}
template <class A>
RG_HD A value_of(const Two<A>& s) {
  return s.b;
}
template <class C>
RG_HD C value_of(const Extreme<C>& s) {
  return s.value;
}
RG_HD inline double value_of(const Exponentials& s) { return ops::log_sum_exp_of(s); }

// A row in the direction of the scan.
template <ScanKind kind, class C>
using SecondRows = StridedRows<std::conditional_t<gives_places(kind), int64_t, C>>;

template <ScanKind kind, class C>
struct Elements {
  typename StridedRows<C>::Row x;
  typename SecondRows<kind, C>::Row b;
  typename StridedRows<C>::Row y;
  int64_t n;
  bool reverse;

  RG_HD int64_t at(int64_t i) const { return reverse ? n - 1 - i : i; }
  RG_HD Step<kind, C> step(int64_t i) const {
    using A = Accumulated<C>;
    if constexpr (kind == ScanKind::recurrence) {
      // The factor between this element and the previous one in the direction of the scan; the first has none.
      const int64_t link = reverse ? at(i) + 1 : i;
      return {i == 0 ? A(0) : static_cast<A>(x.at(link)), static_cast<A>(b.at(at(i)))};
    } else if constexpr (gives_places(kind)) {
      return {x.at(at(i)), i};
    } else if constexpr (kind == ScanKind::logsumexp) {
      return {static_cast<double>(x.at(at(i))), 0};
    } else {
      return {static_cast<A>(x.at(at(i)))};
    }
  }
};

template <ScanKind kind, class C>
struct ScanSides {
  StridedRows<C> x;
  SecondRows<kind, C> b;
  StridedRows<C> y;
  bool reverse, exclusive;
  __device__ Elements<kind, C> row(int64_t r, int64_t n) const {
    return {x.row(r), b.row(r), y.row(r), n, reverse};
  }
};

// The steps of the pack of elements from i on.
template <ScanKind kind, class C>
__device__ Step<kind, C> of_pack(const Elements<kind, C>& row, int64_t i, int64_t end) {
  Step<kind, C> all = no_step<kind, C>();
  for (int k = 0; k < kPack<C>; ++k)
    if (i + k < end) all = combined<kind>(all, row.step(i + k));
  return all;
}

// Calls f(i, last, before) for each pack of a part of a row, with all previous steps of the part; returns the step of
// the part. Called by the whole block: all threads make the same number of rounds.
template <ScanKind kind, class C, class F>
__device__ Step<kind, C> walk(const Team& team, const RowCut& cut, const Elements<kind, C>& row, const F& f) {
  using S = Step<kind, C>;
  using Scan = TeamScan<S>;
  __shared__ typename Scan::Room room;
  const auto then = [](const S& a, const S& b) { return combined<kind>(a, b); };
  const int64_t first = team.begin - int64_t{team.lane} * kPack<C>;
  const int64_t last = first + cut.part < cut.length ? first + cut.part : cut.length;
  const bool is_there = team.row < cut.rows;
  const S none = no_step<kind, C>();
  S carry = none;
  for (int64_t base = first; base < last; base += team.step) {
    const int64_t i = base + int64_t{team.lane} * kPack<C>;
    const S mine = of_pack(row, i, is_there ? last : i);
    S before = none, all = mine;
    if (team.lanes > 1) Scan::run(room, team.lanes, mine, none, then, before, all);
    if (is_there && i < last) f(i, last, then(carry, before));
    carry = then(carry, all);
  }
  return carry;
}

template <ScanKind kind, class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    parts_kernel(const ScanSides<kind, C> sides, const RowCut cut, Step<kind, C>* partials) {
  const Team team = Team::of<kPack<C>>(cut);
  const auto row = sides.row(team.safe_row(cut), cut.length);
  const auto all = walk(team, cut, row, [](int64_t, int64_t, const auto&) {});
  if (team.lane == 0 && team.row < cut.rows) partials[team.row * cut.splits + blockIdx.y] = all;
}

template <ScanKind kind, class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    scan_kernel(const ScanSides<kind, C> sides, const RowCut cut, const Step<kind, C>* partials) {
  using S = Step<kind, C>;
  const Team team = Team::of<kPack<C>>(cut);
  const int64_t r = team.safe_row(cut);
  const auto row = sides.row(r, cut.length);
  S earlier = no_step<kind, C>();
  for (unsigned s = 0; partials && s < blockIdx.y; ++s)
    earlier = combined<kind>(earlier, partials[r * cut.splits + s]);
  const bool exclusive = sides.exclusive;
  walk(team, cut, row, [&](int64_t i, int64_t last, const S& in_part) {
    S state = combined<kind>(earlier, in_part);
    for (int k = 0; k < kPack<C>; ++k) {
      if (i + k >= last) break;
      const S before = state;
      state = combined<kind>(state, row.step(i + k));
      row.y.put(row.at(i + k), static_cast<C>(value_of(exclusive ? before : state)));
      if constexpr (gives_places(kind)) row.b.put(row.at(i + k), state.place);
    }
  });
}

// y[i] = x[i - 1] in the direction of the scan.
template <class C>
__global__ void __launch_bounds__(kThreads)
    shift_kernel(const ScanSides<ScanKind::shift, C> sides, const RowCut cut) {
  const Team team = Team::of<kPack<C>>(cut);
  const auto row = sides.row(team.safe_row(cut), cut.length);
  for (int64_t i = team.begin; i < team.end; i += team.step)
    for (int64_t k = i; k < i + kPack<C> && k < cut.length; ++k)
      row.y.put(row.at(k), k == 0 ? C(0) : row.x.at(row.at(k - 1)));
}

template <ScanKind kind, class C>
void launch_scan(const ScanCall& call, StreamHandle stream) {
  using Rows = StridedRows<C>;
  const ScanSides<kind, C> sides{Rows(call.x), SecondRows<kind, C>(call.b), Rows(call.y), call.reverse,
                                 call.exclusive};
  const Shape3 shape = row_shape(call.cut);
  if constexpr (kind == ScanKind::shift) {
    launch(shift_kernel<C>, shape, stream, sides, call.cut);
  } else {
    auto* const partials = static_cast<Step<kind, C>*>(call.partials);
    if (partials) launch(parts_kernel<kind, C>, shape, stream, sides, call.cut, partials);
    launch(scan_kernel<kind, C>, shape, stream, sides, call.cut, partials);
  }
}

// ---- rows of int64 ----------------------------------------------------------------------------------------

// Elements in the direction of the scan, as iterators of the library: the read ones, for an exclusive scan shifted by
// one, and the written ones.
struct Given {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = uint64_t;
  using difference_type = int64_t;
  using pointer = const uint64_t*;
  using reference = uint64_t;

  const uint64_t* data;
  int64_t step, at;
  bool exclusive;
  uint64_t none;  // the value before the first

  RG_HD uint64_t operator[](int64_t i) const {
    const int64_t from = at + i - exclusive;
    return from < 0 ? none : data[from * step];
  }
  RG_HD uint64_t operator*() const { return (*this)[0]; }
  RG_HD Given operator+(int64_t n) const { return {data, step, at + n, exclusive, none}; }
};
struct Found {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = uint64_t;
  using difference_type = int64_t;
  using pointer = uint64_t*;
  using reference = uint64_t&;

  uint64_t* data;
  int64_t step;

  RG_HD uint64_t& operator[](int64_t i) const { return data[i * step]; }
  RG_HD Found operator+(int64_t n) const { return {data + n * step, step}; }
};

template <ScanKind kind>
struct Combine {
  RG_HD uint64_t operator()(uint64_t a, uint64_t b) const { return kind == ScanKind::sum ? a + b : a * b; }
};

template <ScanKind kind>
int scan_integers(void* room, size_t& bytes, const IntegerRow& row, StreamHandle stream) {
  const Given in{static_cast<const uint64_t*>(row.x), row.x_step, 0, row.exclusive,
                 kind == ScanKind::product};
  const Found out{static_cast<uint64_t*>(row.y), row.y_step};
  return scan_row(room, bytes, in, out, Combine<kind>(), row.length, stream);
}

template <ScanKind kind>
constexpr ScanRow row_of() {
  IntegerScan integers = nullptr;
  if constexpr (kind == ScanKind::sum || kind == ScanKind::product) integers = scan_integers<kind>;
  return {launch_scan<kind, float>, launch_scan<kind, double>, launch_scan<kind, int64_t>, integers};
}

}  // namespace

void add_scan_launchers(Launchers& all) {
  using enum ScanKind;
  static constexpr ScanRow rows[kScanKinds] = {row_of<sum>(),      row_of<product>(), row_of<recurrence>(),
                                               row_of<shift>(),    row_of<largest>(), row_of<smallest>(),
                                               row_of<logsumexp>()};
  all.scan = rows;
}

}  // namespace retrograd::cuda::RG_TARGET
