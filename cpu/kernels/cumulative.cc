// Cumulative extremes and log(sum(exp)) on the CPU: row by row along the dim, whatever dtype and strides, rows in
// parallel. 16-bit floats are compared as float, integers as int64, in which all are exact; exponentials are summed in
// double, apart from the maximum (ops/reductions.h).
#include "ops/cumulative.h"

#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "ops/reductions.h"

namespace retrograd::inline v0::cpu {
namespace {

uint64_t dim_of(const Call& call, const TensorImpl& x) {
  return x.rank() ? uint64_t{1} << call.attrs_as<ops::DimAttrs>().dim : 0;
}

template <bool larger>
void extreme_kernel(const Call& call, TensorImpl* const* outputs) {
  const uint64_t along = dim_of(call, *outputs[0]);
  const Rows from(*call.operands[0], along), values(*outputs[0], along), indices(*outputs[1], along);
  const int64_t n = from.length();
  if (n == 0) return;
  dispatch_compute(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const int64_t grain = values.grain(), chunks = ceil_div(values.count(), grain);
    const RowRoom<T> x_room(from, chunks), value_room(values, chunks);
    const RowRoom<int64_t> index_room(indices, chunks);
    parallel_range(values.count(), grain, [&](int64_t begin, int64_t end) {
      RowReader<T> read(x_room, end);
      RowWriter<T> value(value_room, end);
      RowWriter<int64_t> index(index_room, end);
      for (int64_t row = begin; row < end; ++row) {
        const T* const x = read(row);
        T* const v = value.target(row);
        int64_t* const at = index.target(row);
        T best = x[0];
        for (int64_t i = 0, place = 0; i < n; ++i) {
          const T next = x[i];
          const bool wins = next != next || (best == best && (larger ? next >= best : next <= best));
          best = wins ? next : best;
          place = wins ? i : place;
          v[i] = best;
          at[i] = place;
        }
        value.done(row);
        index.done(row);
      }
    });
  });
}

void logcumsumexp_kernel(const Call& call, TensorImpl* const* outputs) {
  const uint64_t along = dim_of(call, *outputs[0]);
  const Rows from(*call.operands[0], along), to(*outputs[0], along);
  const int64_t n = to.length();
  dispatch_floating(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const int64_t grain = to.grain(), chunks = ceil_div(to.count(), grain);
    const RowRoom<T> x_room(from, chunks), y_room(to, chunks);
    parallel_range(to.count(), grain, [&](int64_t begin, int64_t end) {
      RowReader<T> read(x_room, end);
      RowWriter<T> write(y_room, end);
      for (int64_t row = begin; row < end; ++row) {
        const T* const x = read(row);
        T* const y = write.target(row);
        auto sum = ops::nothing<ops::Reduction::logsumexp, ops::Partial<double>>();
        for (int64_t i = 0; i < n; ++i) {
          ops::merge_exponentials(sum, {static_cast<double>(x[i]), 0, 0, 1});
          y[i] = static_cast<T>(ops::log_sum_exp_of(sum));
        }
        write.done(row);
      }
    });
  });
}

}  // namespace

void add_cumulative_kernels(KernelTable& table) {
  table.set(&ops::info<ops::CumMax>, extreme_kernel<true>, KernelTable::kScratch);
  table.set(&ops::info<ops::CumMin>, extreme_kernel<false>, KernelTable::kScratch);
  table.set(&ops::info<ops::LogCumSumExp>, logcumsumexp_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
