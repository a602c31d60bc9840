// Scans of rows. What an element does to what came before it is a Step; steps are combined, the earlier
// first:
//
//   sum         a          then b: a + b                    product   a          then b: a * b
//   recurrence  y -> a y + b     then c, d: y -> c a y + (c b + d)
//
// A team goes down its row in pieces: each thread combines the elements of a pack, the team combines packs in
// order, by shuffles and then over warps, and a second walk over the pack writes. Where a row is split, a
// first kernel finds the step of each part, and each part begins with all before it. Floats are in double,
// integers wrap around. No order depends on the device.
//
// Limit: a product of many elements on its way into the result may leave the range of double where the same
// elements one after the other would not, which takes more than 8 neighbouring floats near the end of theirs.
#include "cuda/kernels/scan_call.h"

#include "cuda/kernels/rows.cuh"

namespace retrograd::cuda::RG_TARGET {
namespace {

template <class C>
using Accumulated = std::conditional_t<std::is_same_v<C, int64_t>, uint64_t, double>;

template <class A>
struct Step {
  A a, b;  // b: of a recurrence
};

template <ScanKind kind, class A>
RG_HD Step<A> no_step() {
  return {static_cast<A>(kind == ScanKind::sum ? 0 : 1), A(0)};
}
template <ScanKind kind, class A>
RG_HD Step<A> combined(const Step<A>& first, const Step<A>& then) {
  if constexpr (kind == ScanKind::sum) return {first.a + then.a, A(0)};
  if constexpr (kind == ScanKind::product) return {first.a * then.a, A(0)};
  return {first.a * then.a, then.a * first.b + then.b};
}
/// What a scan gives behind a step from the beginning of the row.
template <ScanKind kind, class A>
RG_HD A value_of(const Step<A>& s) {
  return kind == ScanKind::recurrence ? s.b : s.a;
}

// A row in the direction of the scan.
template <ScanKind kind, class C>
struct Elements {
  typename StridedRows<C>::Row x, b, y;
  int64_t n;
  bool reverse;

  RG_HD int64_t at(int64_t i) const { return reverse ? n - 1 - i : i; }
  RG_HD Step<Accumulated<C>> step(int64_t i) const {
    using A = Accumulated<C>;
    if constexpr (kind != ScanKind::recurrence) return {static_cast<A>(x.at(at(i))), A(0)};
    // The factor between this element and the one before in the direction of the scan; the first has none.
    const int64_t link = reverse ? at(i) + 1 : i;
    return {i == 0 ? A(0) : static_cast<A>(x.at(link)), static_cast<A>(b.at(at(i)))};
  }
};

template <class A>
__device__ Step<A> shuffled_up(const Step<A>& s, int delta, int width) {
  return {__shfl_up_sync(~0u, s.a, static_cast<unsigned>(delta), width),
          __shfl_up_sync(~0u, s.b, static_cast<unsigned>(delta), width)};
}

// What a team has before each of its threads, and in all.
template <class A>
struct Scanned {
  Step<A> before, all;
};

template <ScanKind kind, class A>
__device__ Scanned<A> scan_team(const Team& team, const Step<A>& mine) {
  if (team.lanes == 1) return {no_step<kind, A>(), mine};
  __shared__ Step<A> of_warp[kThreads / 32];
  constexpr int kWarp = 32;
  Step<A> upto = mine;
  for (int delta = 1; delta < kWarp; delta *= 2) {
    const Step<A> lower = shuffled_up(upto, delta, kWarp);
    if (team.lane % kWarp >= delta) upto = combined<kind>(lower, upto);
  }
  Step<A> before = shuffled_up(upto, 1, kWarp);
  if (team.lane % kWarp == 0) before = no_step<kind, A>();
  const int warp = team.thread / kWarp, first = team.lanes == kWarp ? warp : 0;
  if (team.thread % kWarp == kWarp - 1) of_warp[warp] = upto;
  __syncthreads();
  Step<A> earlier = no_step<kind, A>(), all = of_warp[first];
  for (int w = 0; w < team.lanes / kWarp; ++w) {
    if (w > 0) all = combined<kind>(all, of_warp[first + w]);
    if (first + w < warp) earlier = all;
  }
  __syncthreads();
  return {combined<kind>(earlier, before), all};
}

template <ScanKind kind, class C>
struct ScanSides {
  StridedRows<C> x, b, y;
  bool reverse, exclusive;
  __device__ Elements<kind, C> row(int64_t r, int64_t n) const {
    return {x.row(r), b.row(r), y.row(r), n, reverse};
  }
};

// The steps of the pack of elements from i on.
template <ScanKind kind, class C>
__device__ Step<Accumulated<C>> of_pack(const Elements<kind, C>& row, int64_t i, int64_t end) {
  Step<Accumulated<C>> all = no_step<kind, Accumulated<C>>();
  for (int k = 0; k < kPack<C>; ++k)
    if (i + k < end) all = combined<kind>(all, row.step(i + k));
  return all;
}

// Calls f(i, before) for each pack of a part of a row, with all steps of the part before it; gives the step
// of the part. The whole block calls it: all threads make as many rounds.
template <ScanKind kind, class C, class F>
__device__ Step<Accumulated<C>> walk(const Team& team, const RowCut& cut, const Elements<kind, C>& row,
                                     const F& f) {
  using A = Accumulated<C>;
  const int64_t first = team.begin - int64_t{team.lane} * kPack<C>;
  const int64_t last = first + cut.part < cut.length ? first + cut.part : cut.length;
  const bool is_there = team.row < cut.rows;
  Step<A> carry = no_step<kind, A>();
  for (int64_t base = first; base < last; base += team.step) {
    const int64_t i = base + int64_t{team.lane} * kPack<C>;
    const Scanned<A> scanned = scan_team<kind>(team, of_pack(row, i, is_there ? last : i));
    if (is_there && i < last) f(i, last, combined<kind>(carry, scanned.before));
    carry = combined<kind>(carry, scanned.all);
  }
  return carry;
}

template <ScanKind kind, class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    parts_kernel(const ScanSides<kind, C> sides, const RowCut cut, Step<Accumulated<C>>* partials) {
  const Team team = Team::of<kPack<C>>(cut);
  const auto row = sides.row(team.safe_row(cut), cut.length);
  const auto all = walk(team, cut, row, [](int64_t, int64_t, const auto&) {});
  if (team.lane == 0 && team.row < cut.rows) partials[team.row * cut.splits + blockIdx.y] = all;
}

template <ScanKind kind, class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    scan_kernel(const ScanSides<kind, C> sides, const RowCut cut, const Step<Accumulated<C>>* partials) {
  using A = Accumulated<C>;
  const Team team = Team::of<kPack<C>>(cut);
  const int64_t r = team.safe_row(cut);
  const auto row = sides.row(r, cut.length);
  Step<A> earlier = no_step<kind, A>();
  for (unsigned s = 0; partials && s < blockIdx.y; ++s)
    earlier = combined<kind>(earlier, partials[r * cut.splits + s]);
  const bool exclusive = sides.exclusive;
  walk(team, cut, row, [&](int64_t i, int64_t last, const Step<A>& in_part) {
    Step<A> state = combined<kind>(earlier, in_part);
    for (int k = 0; k < kPack<C>; ++k) {
      if (i + k >= last) break;
      const Step<A> before = state;
      state = combined<kind>(state, row.step(i + k));
      row.y.put(row.at(i + k), static_cast<C>(value_of<kind>(exclusive ? before : state)));
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
  const ScanSides<kind, C> sides{Rows(call.x), Rows(call.b), Rows(call.y), call.reverse, call.exclusive};
  const Shape3 shape = row_shape(call.cut);
  if constexpr (kind == ScanKind::shift) {
    launch(shift_kernel<C>, shape, stream, sides, call.cut);
  } else {
    auto* const partials = static_cast<Step<Accumulated<C>>*>(call.partials);
    if (partials) launch(parts_kernel<kind, C>, shape, stream, sides, call.cut, partials);
    launch(scan_kernel<kind, C>, shape, stream, sides, call.cut, partials);
  }
}

template <ScanKind kind>
constexpr ScanRow row_of() {
  return {launch_scan<kind, float>, launch_scan<kind, double>, launch_scan<kind, int64_t>};
}

}  // namespace

const ScanRow* scan_rows() {
  using enum ScanKind;
  static constexpr ScanRow rows[kScanKinds] = {row_of<sum>(), row_of<product>(), row_of<recurrence>(),
                                               row_of<shift>()};
  return rows;
}

}  // namespace retrograd::cuda::RG_TARGET
