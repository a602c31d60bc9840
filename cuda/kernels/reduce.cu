// Reductions. A block processes some rows, or one part of them; `lanes` threads take the elements of a row in turn, and
// their Partials are merged as a tree in shared memory. A second kernel merges the parts of a row, in order. So the
// order of additions depends only on sizes; there are no atomics.
//
// Floating sums are in double: one addition per element costs less than reading the element from memory, and results
// are those of exact sums except for the last rounding.
#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
// Included after it, since they need RG_TARGET.
#include "cuda/kernels/reduce.cuh"
#include "cuda/kernels/strided.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

template <Reduction kind, class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    reduce_kernel(const ReduceCall call, const StridedGrid<1> rows, const StridedGrid<1> along) {
  using V = typename Accumulated<C>::Type;
  __shared__ Partial<V> found[kThreads];
  const RowPart part(call);
  Partial<V> mine = nothing<kind, V>();
  if (part.begin < part.end) {
    const int64_t start = Offsets<1>(rows, part.row)[0];
#pragma unroll 4
    for (int64_t i = part.begin; i < part.end; i += call.lanes)
      merge<kind>(mine, of_one<kind>(load<C>(call.x, call.element, start + Offsets<1>(along, i)[0]), i,
                                     call.parameter));
  }
  end_row<kind>(call, call.finish, part, found, mine);
}

template <Reduction kind, class V>
__global__ void __launch_bounds__(kThreads, kLeastBlocks) merge_kernel(const ReduceCall call) {
  merge_parts<kind, V>(call, call.finish);
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

void add_reduce_launchers(Launchers& all) {
  using enum Reduction;
  static constexpr ReduceRow rows[kReductions] = {
      row_of<sum>(),     row_of<abs_sum>(), row_of<square_sum>(), row_of<power_sum>(),
      row_of<prod>(),    row_of<max>(),     row_of<min>(),        row_of<abs_max>(),
      row_of<abs_min>(), row_of<nonzero>(), row_of<moments>(),    row_of<logsumexp>()};
  all.reduce = rows;
}

}  // namespace retrograd::cuda::RG_TARGET
