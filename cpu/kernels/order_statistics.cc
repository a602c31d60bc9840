// Order statistics on the CPU: one element is selected from each row, rows in parallel.
//
// A row is copied without its NaNs, since these are in no order, and the wanted element is moved to its place
// (std::nth_element): linear in the length. Then the row is searched for it, for its index. 16-bit floats are compared
// as float, integers as int64, in which all are exact. Start reading at order_kernel.
#include "ops/order_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"

namespace retrograd::inline v0::cpu {
namespace {

/// A row, and a copy of what is not NaN in it, which may be reordered.
template <class T>
struct NumberLine {
  const T* x;
  int64_t n;
  T* numbers;
  int64_t count;

  NumberLine(const T* x, int64_t n, T* room)
      : x(x), n(n), numbers(room), count(std::copy_if(x, x + n, room, [](T v) { return v == v; }) - room) {}
  /// The k-th smallest, from 0 on, of which NaNs are the last.
  T select(int64_t k) const {
    if (k >= count) return nan();
    std::nth_element(numbers, numbers + k, numbers + count);
    return numbers[k];
  }
  /// A NaN of the row; there must be one.
  T nan() const {
    return *std::find_if(x, x + n, [](T v) { return v != v; });
  }
  int64_t index_of(T v) const {
    return std::find_if(x, x + n, [v](T w) { return w == v || (v != v && w != w); }) - x;
  }
};

struct SelectKth {
  int64_t k;
  explicit SelectKth(const Call& call) : k(call.attrs_as<ops::KthAttrs>().k.raw()) {}
  template <class T>
  T operator()(const NumberLine<T>& line) const {
    return line.select(k - 1);
  }
};
struct SelectMedian {
  explicit SelectMedian(const Call&) {}
  template <class T>
  T operator()(const NumberLine<T>& line) const {
    return line.count < line.n ? line.nan() : line.select((line.n - 1) / 2);
  }
};
struct SelectNanMedian {
  explicit SelectNanMedian(const Call&) {}
  template <class T>
  T operator()(const NumberLine<T>& line) const {
    return line.count == 0 ? line.nan() : line.select((line.count - 1) / 2);
  }
};
struct SelectMode {
  explicit SelectMode(const Call&) {}
  template <class T>
  T operator()(const NumberLine<T>& line) const {
    if (line.count == 0) return line.nan();
    std::sort(line.numbers, line.numbers + line.count);
    int64_t best = 0, most = 0;
    for (int64_t begin = 0, end; begin < line.count; begin = end) {
      for (end = begin + 1; end < line.count && line.numbers[end] == line.numbers[begin];) ++end;
      if (end - begin <= most) continue;
      most = end - begin;
      best = begin;
    }
    return line.numbers[best];
  }
};

// Calls done(row, value, line) for each row of x along the dims.
template <class T, class Select, class F>
void select_rows(const Rows& rows, const Select& select, const F& done) {
  const int64_t n = rows.length(), chunks = ceil_div(rows.count(), rows.grain());
  const RowRoom<T> room(rows, chunks);
  const ThreadScratch<T> numbers(n, chunks);
  parallel_range(rows.count(), rows.grain(), [&](int64_t begin, int64_t end) {
    RowReader<T> read(room, end);
    for (int64_t row = begin; row < end; ++row) {
      const NumberLine<T> line(read(row), n, numbers.mine());
      done(row, select(line), line);
    }
  });
}

template <class Select>
void order_kernel(const Call& call, TensorImpl* const* outputs) {
  const Rows rows(*call.operands[0], call.attrs_as<ops::ReduceAttrs>().dim);
  int64_t* const indices = static_cast<int64_t*>(outputs[1]->data());
  dispatch(outputs[0]->dtype(), [&]<class D>(std::type_identity<D>) {
    using T = ComputeOf<D>;
    D* const values = static_cast<D*>(outputs[0]->data());
    select_rows<T>(rows, Select(call), [&](int64_t row, T value, const NumberLine<T>& line) {
      values[row] = convert<D>(value);
      indices[row] = line.index_of(value);
    });
  });
}

template <class Select>
void overall_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  dispatch(x.dtype(), [&]<class D>(std::type_identity<D>) {
    using T = ComputeOf<D>;
    D* const median = static_cast<D*>(outputs[0]->data());
    if (x.numel().raw() > 0)
      select_rows<T>(Rows(x, ~uint64_t{0}), Select(call),
                     [&](int64_t, T value, const NumberLine<T>&) { *median = convert<D>(value); });
    else if (!measuring())
      *median = convert<D>(std::numeric_limits<double>::quiet_NaN());
  });
}

}  // namespace

void add_order_statistics_kernels(KernelTable& table) {
  using namespace ops;
  table.set(&info<KthValue>, order_kernel<SelectKth>, KernelTable::kScratch);
  table.set(&info<Median>, order_kernel<SelectMedian>, KernelTable::kScratch);
  table.set(&info<NanMedian>, order_kernel<SelectNanMedian>, KernelTable::kScratch);
  table.set(&info<Mode>, order_kernel<SelectMode>, KernelTable::kScratch);
  table.set(&info<MedianOfAll>, overall_kernel<SelectMedian>, KernelTable::kScratch);
  table.set(&info<NanMedianOfAll>, overall_kernel<SelectNanMedian>, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
