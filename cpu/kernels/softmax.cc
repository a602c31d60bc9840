// Softmax and log-softmax on the CPU: the row functions of cpu/kernels/rows.h over rows along a dim.
//
// Float and double rows of a dim before the last are computed together, a lane for each, going down their
// elements. So are short rows of the last dim, turned in blocks of kTogether, unless a row about fills a
// register. Shape, dim and dtype alone decide: an operand that lies otherwise is copied first, so that a
// row's bits do not depend on where it lies.
#include "ops/softmax.h"

#include "cpu/features.h"
#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/rows.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"

namespace retrograd::cpu {

template <class T>
const RowTable<T>& row_table() {
#if defined(__x86_64__)
  switch (level()) {
    case Level::avx512: return avx512::row_table<T>();
    case Level::avx2: return avx2::row_table<T>();
    case Level::baseline: break;
  }
#endif
  return baseline::row_table<T>();
}
template const RowTable<float>& row_table<float>();
template const RowTable<double>& row_table<double>();

template <class T>
const RowsDownTable<T>& rows_down_table() {
#if defined(__x86_64__)
  switch (level()) {
    case Level::avx512: return avx512::rows_down_table<T>();
    case Level::avx2: return avx2::rows_down_table<T>();
    case Level::baseline: break;
  }
#endif
  return baseline::rows_down_table<T>();
}
template const RowsDownTable<float>& rows_down_table<float>();
template const RowsDownTable<double>& rows_down_table<double>();

namespace {

constexpr int64_t kShort = 32;  // rows up to this length are turned
constexpr int64_t kTogether = 64;

// Element i of row j, of some neighbouring rows, is at p[i * stride + j].
template <class T>
struct Side {
  T* p;
  int64_t stride;
};

// An operand and its rows, dense T where they are not read along.
template <class T>
class RowsOf {
 public:
  RowsOf(TensorImpl* x, uint64_t along, bool copies)
      : x_(x, dtype_of<T>(), copies && !x->is_contiguous()), rows_(*x_, along) {}
  const Rows& rows() const { return rows_; }
  Side<T> down(int64_t i) const { return {row(i), rows_.along().stride[0]}; }
  /// The rows [i, i + count) turned, into `tile` and from there.
  void turn(int64_t i, int64_t count, T* tile) const {
    const int64_t n = rows_.length();
    move_table().transpose[width_index(x_->dtype())](row(0) + i * n, n, count, n, tile, kTogether);
  }
  void turn_back(int64_t i, int64_t count, const T* tile) const {
    const int64_t n = rows_.length();
    move_table().transpose[width_index(x_->dtype())](tile, kTogether, n, count, row(0) + i * n, n);
  }

  T* row(int64_t i) const { return static_cast<T*>(x_->data()) + rows_.kept().offset(i); }

 private:
  LocalCopy x_;
  Rows rows_;
};

enum class Way { along, down, turned, in_register };

template <class T>
Way way_of(const TensorImpl& y, uint64_t along) {
  if (y.dtype() != dtype_of<T>()) return Way::along;
  const Rows rows(y, along);
  if (rows.block() > 1) return Way::down;
  const int64_t n = rows.length(), lanes = row_table<T>().lanes;
  if (n < 2 || n > std::max(kShort, lanes) || rows.along().stride[0] != 1) return Way::along;
  return n > lanes / 2 && n <= lanes ? Way::in_register : Way::turned;
}

// An op of the family: how a row is computed, and neighbours. A forward op has one input; `more` is not read.
struct Softmax {
  static constexpr bool is_backward = false;
  template <class T>
  static void along(const RowTable<T>& table, const T* x, const T*, int64_t n, T* y) {
    table.softmax(x, n, y);
  }
  template <class T>
  static void down(const RowsDownTable<T>& table, Side<T> x, Side<T>, int64_t n, int64_t rows, Side<T> y) {
    table.softmax(x.p, x.stride, n, rows, y.p, y.stride);
  }
  template <class T>
  static void in_register(const RowTable<T>& table, const T* x, const T*, int64_t rows, int64_t n, T* y) {
    table.short_softmax(x, rows, n, y);
  }
};
struct LogSoftmax {
  static constexpr bool is_backward = false;
  template <class T>
  static void along(const RowTable<T>& table, const T* x, const T*, int64_t n, T* y) {
    table.log_softmax(x, n, y);
  }
  template <class T>
  static void down(const RowsDownTable<T>& table, Side<T> x, Side<T>, int64_t n, int64_t rows, Side<T> y) {
    table.log_softmax(x.p, x.stride, n, rows, y.p, y.stride);
  }
  template <class T>
  static void in_register(const RowTable<T>& table, const T* x, const T*, int64_t rows, int64_t n, T* y) {
    table.short_log_softmax(x, rows, n, y);
  }
};
struct SoftmaxBackward {
  static constexpr bool is_backward = true;
  template <class T>
  static void along(const RowTable<T>& table, const T* g, const T* y, int64_t n, T* dx) {
    table.softmax_backward(g, y, n, dx);
  }
  template <class T>
  static void down(const RowsDownTable<T>& table, Side<T> g, Side<T> y, int64_t n, int64_t rows, Side<T> dx) {
    table.softmax_backward(g.p, g.stride, y.p, y.stride, n, rows, dx.p, dx.stride);
  }
  template <class T>
  static void in_register(const RowTable<T>& table, const T* g, const T* y, int64_t rows, int64_t n, T* dx) {
    table.short_softmax_backward(g, y, rows, n, dx);
  }
};
struct LogSoftmaxBackward {
  static constexpr bool is_backward = true;
  template <class T>
  static void along(const RowTable<T>& table, const T* g, const T* y, int64_t n, T* dx) {
    table.log_softmax_backward(g, y, n, dx);
  }
  template <class T>
  static void down(const RowsDownTable<T>& table, Side<T> g, Side<T> y, int64_t n, int64_t rows, Side<T> dx) {
    table.log_softmax_backward(g.p, g.stride, y.p, y.stride, n, rows, dx.p, dx.stride);
  }
  template <class T>
  static void in_register(const RowTable<T>& table, const T* g, const T* y, int64_t rows, int64_t n, T* dx) {
    table.short_log_softmax_backward(g, y, rows, n, dx);
  }
};

template <class T, class Op>
class Task {
 public:
  /// The output is contiguous.
  Task(const Call& call, TensorImpl& output, uint64_t along)
      : way_(way_of<T>(output, along)),
        x_(call.operands[0], along, way_ != Way::along),
        more_(call.operands.back(), along, Op::is_backward && way_ != Way::along),
        y_(&output, along, false) {}

  void run() const {
    if (y_.rows().length() == 0) return;
    const int64_t count = y_.rows().count(), grain = y_.rows().grain();
    if (way_ == Way::down)
      parallel_range(count, grain, [&](int64_t begin, int64_t end) { go_down(begin, end); });
    else if (way_ == Way::turned)
      parallel_range(count, grain, [&](int64_t begin, int64_t end) { turn(begin, end); });
    else if (way_ == Way::in_register)
      parallel_range(count, grain, [&](int64_t begin, int64_t end) {
        Op::in_register(row_table<T>(), x_.row(begin), Op::is_backward ? more_.row(begin) : nullptr,
                        end - begin, y_.rows().length(), y_.row(begin));
      });
    else
      go_along(count, grain);
  }

 private:
  void go_down(int64_t begin, int64_t end) const {
    for (int64_t row = begin, count = 0; row < end; row += count) {
      count = y_.rows().neighbours(row, end, end);
      Op::down(rows_down_table<T>(), x_.down(row), more_.down(row), y_.rows().length(), count, y_.down(row));
    }
  }

  void turn(int64_t begin, int64_t end) const {
    T x[kShort * kTogether], more[kShort * kTogether], y[kShort * kTogether];
    for (int64_t row = begin; row < end; row += kTogether) {
      const int64_t count = std::min(kTogether, end - row);
      x_.turn(row, count, x);
      if (Op::is_backward) more_.turn(row, count, more);
      Op::down(rows_down_table<T>(), Side<T>{x, kTogether}, Side<T>{more, kTogether}, y_.rows().length(),
               count, Side<T>{y, kTogether});
      y_.turn_back(row, count, y);
    }
  }

  void go_along(int64_t count, int64_t grain) const {
    const int64_t chunks = count_chunks(count, grain);
    const RowRoom<T> x_room(x_.rows(), chunks), more_room(more_.rows(), chunks), y_room(y_.rows(), chunks);
    parallel_range(count, grain, [&](int64_t begin, int64_t end) {
      RowReader<T> x(x_room, end), more(more_room, end);
      RowWriter<T> y(y_room, end);
      for (int64_t row = begin; row < end; ++row) {
        Op::along(row_table<T>(), x(row), Op::is_backward ? more(row) : nullptr, y_.rows().length(),
                  y.target(row));
        y.done(row);
      }
    });
  }

  Way way_;
  RowsOf<T> x_, more_, y_;
};

template <class Op>
void kernel(const Call& call, TensorImpl* const* outputs) {
  const LocalResult result(*outputs[0], outputs[0]->dtype());
  const uint64_t along = result->rank() ? uint64_t{1} << call.attrs_as<ops::SoftmaxAttrs>().dim : 0;
  dispatch_floating(result->dtype(),
                    [&]<class T>(std::type_identity<T>) { Task<T, Op>(call, *result, along).run(); });
  result.finish();
}

}  // namespace

void add_softmax_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Softmax>, kernel<Softmax>, KernelTable::kScratch);
  table.set(&ops::info<ops::LogSoftmax>, kernel<LogSoftmax>, KernelTable::kScratch);
  table.set(&ops::info<ops::SoftmaxBackward>, kernel<SoftmaxBackward>, KernelTable::kScratch);
  table.set(&ops::info<ops::LogSoftmaxBackward>, kernel<LogSoftmaxBackward>, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
