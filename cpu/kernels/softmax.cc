// Softmax and log-softmax on the CPU: the row functions of cpu/kernels/levels/softmax_norm_rows.h over rows
// along a dim.
//
// Float and double rows of a dim before the last are computed together, a lane for each, going down their
// elements. So are short rows of the last dim, turned in blocks of kRowsTogether, unless a row about fills a
// register. Shape, dim and dtype alone decide: an operand that lies otherwise is copied first, so that a
// row's bits do not depend on where it lies.
#include "ops/softmax.h"

#include "cpu/kernels/levels/softmax_norm_rows.h"
#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kShort = 32;  // rows up to this length are turned
constexpr int64_t kRowsTogether = 64;

// Element i of row j, of some neighbouring rows, is at p[i * stride + j].
template <class T>
struct StridedRows {
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
  StridedRows<T> down(int64_t i) const { return {row(i), rows_.along().stride[0]}; }
  /// The rows [i, i + count) turned, into `tile` and from there.
  void turn(int64_t i, int64_t count, T* tile) const {
    const int64_t n = rows_.length();
    move_table().transpose[width_index(x_->dtype())](row(0) + i * n, n, count, n, tile, kRowsTogether);
  }
  void turn_back(int64_t i, int64_t count, const T* tile) const {
    const int64_t n = rows_.length();
    move_table().transpose[width_index(x_->dtype())](tile, kRowsTogether, n, count, row(0) + i * n, n);
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

// An op of the family: which functions of the tables compute it. A backward op has a second input, y, after x or g.
struct Softmax {
  static constexpr bool is_backward = false;
  static auto whole(const auto& table) { return table.softmax; }
  static auto short_rows(const auto& table) { return table.short_softmax; }
};
struct LogSoftmax {
  static constexpr bool is_backward = false;
  static auto whole(const auto& table) { return table.log_softmax; }
  static auto short_rows(const auto& table) { return table.short_log_softmax; }
};
struct SoftmaxBackward {
  static constexpr bool is_backward = true;
  static auto whole(const auto& table) { return table.softmax_backward; }
  static auto short_rows(const auto& table) { return table.short_softmax_backward; }
};
struct LogSoftmaxBackward {
  static constexpr bool is_backward = true;
  static auto whole(const auto& table) { return table.log_softmax_backward; }
  static auto short_rows(const auto& table) { return table.short_log_softmax_backward; }
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
        const auto f = Op::short_rows(row_table<T>());
        const int64_t rows = end - begin, n = y_.rows().length();
        if constexpr (Op::is_backward)
          f(x_.row(begin), more_.row(begin), rows, n, y_.row(begin));
        else
          f(x_.row(begin), rows, n, y_.row(begin));
      });
    else
      go_along(count, grain);
  }

 private:
  // Of `rows` neighbours.
  void down(StridedRows<T> x, StridedRows<T> more, int64_t rows, StridedRows<T> y) const {
    const auto f = Op::whole(rows_down_table<T>());
    if constexpr (Op::is_backward)
      f(x.p, x.stride, more.p, more.stride, y_.rows().length(), rows, y.p, y.stride);
    else
      f(x.p, x.stride, y_.rows().length(), rows, y.p, y.stride);
  }

  void go_down(int64_t begin, int64_t end) const {
    for (int64_t row = begin, count = 0; row < end; row += count) {
      count = y_.rows().neighbours(row, end, end);
      down(x_.down(row), more_.down(row), count, y_.down(row));
    }
  }

  void turn(int64_t begin, int64_t end) const {
    T x[kShort * kRowsTogether], more[kShort * kRowsTogether], y[kShort * kRowsTogether];
    for (int64_t row = begin; row < end; row += kRowsTogether) {
      const int64_t count = std::min(kRowsTogether, end - row);
      x_.turn(row, count, x);
      if (Op::is_backward) more_.turn(row, count, more);
      down({x, kRowsTogether}, {more, kRowsTogether}, count, {y, kRowsTogether});
      y_.turn_back(row, count, y);
    }
  }

  void go_along(int64_t count, int64_t grain) const {
    const int64_t chunks = ceil_div(count, grain);
    const RowRoom<T> x_room(x_.rows(), chunks), more_room(more_.rows(), chunks), y_room(y_.rows(), chunks);
    parallel_range(count, grain, [&](int64_t begin, int64_t end) {
      RowReader<T> x(x_room, end), more(more_room, end);
      RowWriter<T> y(y_room, end);
      const auto f = Op::whole(row_table<T>());
      for (int64_t row = begin; row < end; ++row) {
        if constexpr (Op::is_backward)
          f(x(row), more(row), y_.rows().length(), y.target(row));
        else
          f(x(row), y_.rows().length(), y.target(row));
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
