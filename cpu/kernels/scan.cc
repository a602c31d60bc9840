// Scans along a dim on the CPU: cumsum, cumprod, recurrence and shift.
//
// A kernel goes row by row along the dim, whatever dtype and strides (Rows of cpu/kernels/row_access.h); rows
// run in parallel, the elements of a row in order. Floats accumulate in double, integers wrap around.
// Products of floats have a function per instruction-set level (cpu/kernels/levels/scan_rows.h); few long
// rows of them are cut into pieces whose products are found first (scan_pieces). Start reading at
// scan_kernel.
#include "ops/scan.h"

#include <cmath>
#include <utility>

#include "cpu/kernels/levels/reduce_rows.h"
#include "cpu/kernels/levels/scan_rows.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"

namespace retrograd::inline v0::cpu {
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
    if constexpr (std::is_same_v<T, float>) return scan_products(x[0], y, at.n, {at.reverse, exclusive});
    accumulate<AccOf<T>>(x[0], y, at, exclusive, AccOf<T>(1), [](auto a, auto b) { return a * b; });
  }
};

// The product up to the end of a piece. `here`, of its elements alone, says it as long as that stays in the range of
// doubles and once it has left it for good; between, they are multiplied in order.
double product_through(double before, double here, const float* x, Direction at) {
  const double through = before * here;
  const bool has_left = std::isnan(before) || (before == 0 && std::isfinite(here)) ||
                        (std::isinf(before) && here != 0 && !std::isnan(here));
  if (has_left || (std::isnormal(here) && std::isnormal(through))) return through;
  for (int64_t i = 0; i < at.n; ++i) before *= static_cast<double>(x[at(i)]);
  return before;
}

// The products of few long rows of floats, by pieces: what lies in front of each one is multiplied first. False, and
// nothing is done, where there are no such rows.
bool scan_pieces(const Call& call, const Rows& from, const Rows& to) {
  const auto& a = call.attrs_as<ops::ScanAttrs>();
  const int64_t n = to.length(), rows = to.count(), pieces = ceil_div(n, kChunk);
  if (pieces < 4 || rows >= 8 || !from.is_direct<float>() || !to.is_direct<float>()) return false;
  const Scratch<Partial<double>> found(rows * pieces);
  if (measuring()) return false;
  float* const unused = nullptr;
  const auto piece = [&](int64_t task, const auto& f) {
    const int64_t row = task / pieces, begin = task % pieces * kChunk, size = std::min(kChunk, n - begin);
    f(from.read(row, unused) + begin, to.target(row, unused) + begin, size, found[task].value);
  };
  parallel_for(rows * pieces, [&](int64_t task) {
    piece(task, [](const float* x, float*, int64_t size, double& product) {
      Partial<double> all;
      reduce_table<float>().reduce(x, size, Reduction::prod, 0, &all);
      product = all.value;
    });
  });
  for (int64_t row = 0; row < rows; ++row) {
    double before = 1;
    for (int64_t i = 0; i < pieces; ++i) {
      piece(row * pieces + (a.reverse ? pieces - 1 - i : i),
            [&](const float* x, float*, int64_t size, double& product) {
              const double through = product_through(before, product, x, {size, a.reverse});
              product = std::exchange(before, through);
            });
    }
  }
  parallel_for(rows * pieces, [&](int64_t task) {
    piece(task, [&](const float* x, float* y, int64_t size, double before) {
      scan_products(x, y, size, {a.reverse, a.exclusive, before});
    });
  });
  return true;
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
  if (std::is_same_v<Row, ProductRow> && scan_pieces(call, first, out)) return;
  dispatch_compute(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const int64_t chunks = ceil_div(out.count(), out.grain());
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
