// Normalisation on the CPU: the row functions of cpu/kernels/levels/softmax_norm_rows.h over the rows of any
// dims.
//
// Weight and bias are one number for each segment of a row: the whole row if they belong to kept dims (batch_norm),
// one element if they belong to the last ones (layer_norm). If the rows are adjacent, like the columns of a matrix,
// and have one number each, they are computed together (norms_columns.h). Only shape, dims and dtype decide: an
// operand with another layout is copied first. Gradients of weight and bias are summed in T over a row, or a block of
// rows that share them, and in double beyond, in an order fixed by sizes.
#include "ops/norms.h"

#include "cpu/kernels/affine_layout.h"
#include "cpu/kernels/levels/reduce_rows.h"
#include "cpu/kernels/levels/softmax_norm_rows.h"
#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/norms_columns.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"

namespace retrograd::inline v0::cpu {
namespace {

// mean and rstd are dense, in the compute type.
template <class T>
T* stat(const TensorImpl& x) {
  return static_cast<T*>(x.data());
}

template <class T>
class NormForward {
 public:
  NormForward(const Call& call, TensorImpl* const* outputs)
      : attrs_(call.attrs_as<ops::NormalizeAttrs>()),
        layout_(*call.operands[0], attrs_),
        columns_(are_columns<T>(*outputs[0], attrs_.dim, layout_)),
        x_(call.operands[0], call.operands[0]->dtype(), columns_ && !call.operands[0]->is_contiguous()),
        weight_(call.operands[1], dtype_of<T>()),
        bias_(call.operands[2], dtype_of<T>()),
        in_(*x_, attrs_.dim),
        y_(*outputs[0]),
        out_(y_, attrs_.dim),
        mean_(stat<T>(*outputs[1])),
        rstd_(stat<T>(*outputs[2])) {}

  void run() const {
    if (in_.length() == 0) {  // rows without elements have statistics, too, which are saved
      if (measuring()) return;
      std::fill_n(mean_, in_.count(), T(0));
      std::fill_n(rstd_, in_.count(), T(0));
    } else if (columns_) {
      normalize_columns<T>(*x_, attrs_, layout_, weight_.values<T>(), bias_.values<T>(), y_, mean_, rstd_);
    } else {
      along();
    }
  }

 private:
  void along() const {
    if (layout_.is_shared() && (layout_.count() == in_.length() || !has_affine()) && layout_.tile() == 0 &&
        in_.template lie_behind<T>() && out_.template lie_behind<T>())
      in_place();
    else
      by_row();
  }

  bool has_affine() const { return weight_.template values<T>() || bias_.template values<T>(); }

  // Rows with the same weight and bias, in place: some at a time.
  void in_place() const {
    const int64_t n = in_.length(), count = in_.count();
    const T *x = in_.template first<T>(0), *next = count > 1 ? in_.template first<T>(1) : x;
    T *y = out_.template target<T>(0, nullptr), *next_y = count > 1 ? out_.template target<T>(1, nullptr) : y;
    parallel_range(count, in_.grain(), [&](int64_t begin, int64_t end) {
      constexpr int64_t kRows = 32;
      RowStats stats[kRows];
      for (int64_t row = begin; row < end; row += kRows) {
        const int64_t rows = std::min(kRows, end - row);
        row_table<T>().normalize(x + row * (next - x), next - x, weight_.template values<T>(),
                                 bias_.template values<T>(), rows, n, attrs_.eps.to_double(), attrs_.center,
                                 y + row * (next_y - y), next_y - y, stats);
        store(row, stats, rows);
      }
    });
  }

  void by_row() const {
    const int64_t n = in_.length(), segments = layout_.count(),
                  chunks = ceil_div(in_.count(), in_.grain());
    const RowRoom<T> x_room(in_, chunks), y_room(out_, chunks);
    const ThreadScratch<T> numbers(2 * layout_.tile(), chunks);
    const double eps = attrs_.eps.to_double();
    parallel_range(in_.count(), in_.grain(), [&](int64_t begin, int64_t end) {
      RowReader<T> x(x_room, end);
      RowWriter<T> y(y_room, end);
      T* const tile = numbers.mine();
      for (int64_t row = begin; row < end; ++row) {
        const T *weight = layout_.of_row(weight_.values<T>(), row, tile),
                *bias = layout_.of_row(bias_.values<T>(), row, tile + layout_.tile());
        RowStats stats;
        if (segments == n || !(weight || bias))
          row_table<T>().normalize(x(row), 0, weight, bias, 1, n, eps, attrs_.center, y.target(row), 0,
                                   &stats);
        else
          stats = row_table<T>().normalize_segments(x(row), weight, bias, n, n / segments, eps, attrs_.center,
                                                    y.target(row));
        store(row, &stats, 1);
        y.done(row);
      }
    });
  }

  void store(int64_t row, const RowStats* stats, int64_t rows) const {
    for (int64_t r = 0; r < rows; ++r) {
      mean_[row + r] = static_cast<T>(stats[r].mean);
      rstd_[row + r] = static_cast<T>(stats[r].rstd);
    }
  }

  const ops::NormalizeAttrs& attrs_;
  AffineLayout layout_;
  bool columns_;
  LocalCopy x_, weight_, bias_;
  Rows in_;
  const TensorImpl& y_;
  Rows out_;
  T *mean_, *rstd_;
};

template <class T>
class NormBackward {
 public:
  NormBackward(const Call& call, TensorImpl* const* outputs)
      : attrs_(call.attrs_as<ops::NormalizeBackward::Attrs>()),
        outputs_(outputs),
        layout_(*call.operands[1], attrs_),
        columns_(are_columns<T>(*outputs[0], attrs_.dim, layout_)),
        g_(call.operands[0], call.operands[0]->dtype(), columns_ && !call.operands[0]->is_contiguous()),
        x_(call.operands[1], call.operands[1]->dtype(), columns_ && !call.operands[1]->is_contiguous()),
        mean_(call.operands[2], dtype_of<T>()),
        rstd_(call.operands[3], dtype_of<T>()),
        weight_(call.operands[4], dtype_of<T>()),
        g_rows_(*g_, attrs_.dim),
        x_rows_(*x_, attrs_.dim),
        dx_rows_(*outputs[0], attrs_.dim),
        n_(x_rows_.length()),
        count_(x_rows_.count()) {}

  void run() const {
    const bool wants_sums = attrs_.affine || weight_;
    if (n_ == 0 || count_ == 0)
      store_sums([](double*, double*) {});
    else if (columns_)
      columns();
    else if (!wants_sums)
      plain();
    else if (layout_.is_shared() && layout_.count() == n_)
      shared();
    else
      by_row();
  }

 private:
  struct Rooms {
    RowRoom<T> g, x, dx;
  };
  Rooms rooms(int64_t chunks) const { return {{g_rows_, chunks}, {x_rows_, chunks}, {dx_rows_, chunks}}; }

  // f(row, g, x, statistics, dx) for each row.
  template <class F>
  void for_rows(const Rooms& rooms, int64_t begin, int64_t end, const F& f) const {
    RowReader<T> g(rooms.g, end), x(rooms.x, end);
    RowWriter<T> dx(rooms.dx, end);
    const T *mean = mean_.template values<T>(), *rstd = rstd_.template values<T>();
    for (int64_t row = begin; row < end; ++row) {
      const RowStats stats{static_cast<double>(mean[row]), static_cast<double>(rstd[row])};
      f(row, g(row), x(row), stats, dx.target(row));
      dx.done(row);
    }
  }

  void plain() const {
    const Rooms rooms = this->rooms(ceil_div(count_, x_rows_.grain()));
    parallel_range(count_, x_rows_.grain(), [&](int64_t begin, int64_t end) {
      for_rows(rooms, begin, end, [&](int64_t, const T* g, const T* x, RowStats stats, T* dx) {
        row_table<T>().normalize_backward(g, x, stats, nullptr, n_, attrs_.center, dx, nullptr, nullptr);
      });
    });
  }

  // All rows have one weight, with a number for each element: blocks of rows add to the same sums.
  void shared() const {
    const int64_t block = std::max<int64_t>(32, x_rows_.grain()), blocks = (count_ + block - 1) / block;
    const Scratch<T> sums(blocks * 2 * n_);
    const Ones ones(weight_, n_);
    const Rooms rooms = this->rooms(blocks);
    parallel_range(count_, block, [&](int64_t begin, int64_t end) {
      T* const sum = &sums[begin / block * 2 * n_];
      std::fill_n(sum, 2 * n_, T(0));
      for_rows(rooms, begin, end, [&](int64_t, const T* g, const T* x, RowStats stats, T* dx) {
        row_table<T>().normalize_backward(g, x, stats, ones.weight, n_, attrs_.center, dx, sum, sum + n_);
      });
    });
    store_sums([&](double* dweight, double* dbias) {
      reduce_table<T>().sum_columns(sums.data(), blocks, 2 * n_, n_, dweight);
      reduce_table<T>().sum_columns(sums.data() + n_, blocks, 2 * n_, n_, dbias);
    });
  }

  // Each row has its own sums, one for each segment.
  struct Found {
    Found(int64_t rows, int64_t segments) : dweight(rows * segments), dbias(rows * segments) {}
    Scratch<T> dweight, dbias;
  };

  void store_found(const Found& found) const {
    store_sums([&](double* dweight, double* dbias) {
      for (int64_t row = 0; row < count_; ++row) {
        layout_.add(&found.dweight[row * layout_.count()], row, dweight);
        layout_.add(&found.dbias[row * layout_.count()], row, dbias);
      }
    });
  }

  void by_row() const {
    const int64_t segments = layout_.count(), chunks = ceil_div(count_, x_rows_.grain());
    const Found found(count_, segments);
    const Ones ones(weight_, segments == n_ ? n_ : 0);
    const Rooms rooms = this->rooms(chunks);
    const ThreadScratch<T> numbers(layout_.tile(), chunks);
    parallel_range(count_, x_rows_.grain(), [&](int64_t begin, int64_t end) {
      for_rows(rooms, begin, end, [&](int64_t row, const T* g, const T* x, RowStats stats, T* dx) {
        T *dweight = &found.dweight[row * segments], *dbias = &found.dbias[row * segments];
        const T* weight = layout_.of_row(weight_.template values<T>(), row, numbers.mine());
        if (segments < n_)
          return row_table<T>().normalize_segments_backward(g, x, stats, weight, n_, n_ / segments,
                                                            attrs_.center, dx, dweight, dbias);
        std::fill_n(dweight, n_, T(0));
        std::fill_n(dbias, n_, T(0));
        row_table<T>().normalize_backward(g, x, stats, weight ? weight : ones.weight, n_, attrs_.center, dx,
                                          dweight, dbias);
      });
    });
    store_found(found);
  }

  void columns() const {
    const Found found(count_, 1);
    normalize_columns_backward<T>(*g_, *x_, attrs_, layout_, mean_.template values<T>(),
                                  rstd_.template values<T>(), weight_.template values<T>(), *outputs_[0],
                                  found.dweight.data(), found.dbias.data());
    store_found(found);
  }

  // The weight, or as many ones.
  struct Ones {
    Ones(const LocalCopy& given, int64_t n)
        : ones(given ? 0 : n), weight(given ? given.values<T>() : ones.data()) {
      if (!given && !measuring()) std::fill_n(ones.data(), n, T(1));
    }
    Scratch<T> ones;
    const T* weight;
  };

  // add(dweight, dbias) adds to sums that begin with 0, which then are stored, if they are wanted.
  template <class Add>
  void store_sums(const Add& add) const {
    if (!attrs_.affine) return;
    const int64_t size = layout_.size();
    const Scratch<double> sums(2 * size);
    if (measuring()) return;
    std::fill_n(sums.data(), 2 * size, 0.0);
    add(sums.data(), sums.data() + size);
    for (int i = 0; i < 2; ++i)
      dispatch(outputs_[1 + i]->dtype(), [&]<class To>(std::type_identity<To>) {
        for (int64_t j = 0; j < size; ++j)
          static_cast<To*>(outputs_[1 + i]->data())[j] = convert<To>(sums[i * size + j]);
      });
  }

  const ops::NormalizeBackward::Attrs& attrs_;
  TensorImpl* const* outputs_;
  AffineLayout layout_;
  bool columns_;
  LocalCopy g_, x_, mean_, rstd_, weight_;
  Rows g_rows_, x_rows_, dx_rows_;
  int64_t n_, count_;
};

void normalize_kernel(const Call& call, TensorImpl* const* outputs) {
  dispatch_floating(outputs[0]->dtype(),
                    [&]<class T>(std::type_identity<T>) { NormForward<T>(call, outputs).run(); });
}

void normalize_backward_kernel(const Call& call, TensorImpl* const* outputs) {
  dispatch_floating(outputs[0]->dtype(),
                    [&]<class T>(std::type_identity<T>) { NormBackward<T>(call, outputs).run(); });
}

}  // namespace

void add_norms_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Normalize>, normalize_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::NormalizeBackward>, normalize_backward_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
