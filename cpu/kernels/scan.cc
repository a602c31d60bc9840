// Scans along a dim on the CPU, row by row; floats accumulate in double.
#include "ops/scan.h"

#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"

namespace retrograd::cpu {
namespace {

/// The element at place i in the direction of the scan.
struct Direction {
  int64_t n;
  bool reverse;
  int64_t operator()(int64_t i) const { return reverse ? n - 1 - i : i; }
};

template <class Acc, class T, class F>
void accumulate(const T* x, T* y, Direction at, bool exclusive, Acc acc, F f) {
  for (int64_t i = 0; i < at.n; ++i) {
    const Acc before = acc;
    acc = f(acc, static_cast<Acc>(x[at(i)]));
    y[at(i)] = static_cast<T>(exclusive ? before : acc);
  }
}

// Integers wrap around.
template <class T>
using AccOf = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, double>;

struct SumRow {
  template <class T>
  void operator()(const T* const* x, T* y, Direction at, bool exclusive) const {
    accumulate<AccOf<T>>(x[0], y, at, exclusive, AccOf<T>(0), [](auto a, auto b) { return a + b; });
  }
};
struct ProductRow {
  template <class T>
  void operator()(const T* const* x, T* y, Direction at, bool exclusive) const {
    if constexpr (std::is_same_v<T, float>) return by_fours(x[0], y, at, exclusive);
    accumulate<AccOf<T>>(x[0], y, at, exclusive, AccOf<T>(1), [](auto a, auto b) { return a * b; });
  }
  static void by_fours(const float* x, float* y, Direction at, bool exclusive);
};
// Four at a time, so that one multiplication and not four waits for what came before. In double no product of four
// floats is out of range.
void ProductRow::by_fours(const float* x, float* y, Direction at, bool exclusive) {
  double acc = 1;
  int64_t i = 0;
  const auto put = [&](int64_t k, double v) { y[at(i + k)] = static_cast<float>(v); };
  for (; i + 4 <= at.n; i += 4) {
    const double a = x[at(i)], ab = a * x[at(i + 1)], c = x[at(i + 2)], d = x[at(i + 3)];
    const double abc = ab * c, next = acc * (ab * (c * d));
    if (exclusive) put(0, acc);
    put(exclusive ? 1 : 0, acc * a);
    put(exclusive ? 2 : 1, acc * ab);
    put(exclusive ? 3 : 2, acc * abc);
    if (!exclusive) put(3, next);
    acc = next;
  }
  for (; i < at.n; ++i) {
    const double before = acc;
    acc *= x[at(i)];
    put(0, exclusive ? before : acc);
  }
}

struct RecurrenceRow {
  template <class T>
  void operator()(const T* const* x, T* y, Direction at, bool) const {
    AccOf<T> acc = 0;
    for (int64_t i = 0; i < at.n; ++i) {
      const int64_t link =
          at.reverse ? at(i) + 1 : i;  // between this element and the one before in the direction of the scan
      acc = static_cast<AccOf<T>>(x[1][at(i)]) +
            (i > 0 ? static_cast<AccOf<T>>(x[0][link]) * acc : AccOf<T>(0));
      y[at(i)] = static_cast<T>(acc);
    }
  }
};
struct ShiftRow {
  template <class T>
  void operator()(const T* const* x, T* y, Direction at, bool) const {
    T before = 0;
    for (int64_t i = 0; i < at.n; ++i) {
      const T next = x[0][at(i)];
      y[at(i)] = before;
      before = next;
    }
  }
};

template <class Row>
void scan_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& a = call.attrs_as<ops::ScanAttrs>();
  const uint64_t along = outputs[0]->rank() ? uint64_t{1} << a.dim : 0;
  const Rows out(*outputs[0], along), first(*call.operands[0], along), second(*call.operands.back(), along);
  const int64_t n = out.length();
  if (n == 0) return;
  dispatch_compute(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const int64_t chunks = count_chunks(out.count(), out.grain());
    const RowRoom<T> one_room(first, chunks), two_room(second, chunks), y_room(out, chunks);
    parallel_range(out.count(), out.grain(), [&](int64_t begin, int64_t end) {
      RowReader<T> one(one_room, end), two(two_room, end);
      RowWriter<T> y(y_room, end);
      for (int64_t row = begin; row < end; ++row) {
        const T* x[2] = {one(row), call.operands.size() == 2 ? two(row) : nullptr};
        Row()(x, y.target(row), Direction{n, a.reverse}, a.exclusive);
        y.done(row);
      }
    });
  });
}

}  // namespace

void add_scan_kernels(KernelTable& table) {
  table.set(&ops::info<ops::CumSum>, scan_kernel<SumRow>, KernelTable::kScratch);
  table.set(&ops::info<ops::CumProd>, scan_kernel<ProductRow>, KernelTable::kScratch);
  table.set(&ops::info<ops::Recurrence>, scan_kernel<RecurrenceRow>, KernelTable::kScratch);
  table.set(&ops::info<ops::Shift>, scan_kernel<ShiftRow>, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
