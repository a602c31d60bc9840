// See cpu/kernels/norms_columns.h.
//
// A group is a matrix whose columns are rows of the normalisation. It is cut into strips of columns and blocks of
// lines, by sizes alone. Each phase processes all blocks of a strip, whose sums are then added in order, before the
// next phase begins. With a single block, a strip goes through all phases while it is in a cache.
#include "cpu/kernels/norms_columns.h"

#include <cmath>
#include <functional>

#include "cpu/kernels/levels/reduce_rows.h"
#include "cpu/kernels/levels/softmax_norm_rows.h"
#include "cpu/parallel.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kNormStrip = 512, kLines = 128;

// ColumnLines [begin, end) of a strip: `count` rows of the normalisation from `row` on.
struct Piece {
  int64_t row, count, begin, end, block;
};
// For a piece of a strip, and for the strip when all its pieces are done.
struct Phase {
  std::function<void(const Piece&)> piece;
  std::function<void(int64_t row, int64_t count)> strip;
};

class Cuts {
 public:
  explicit Cuts(const Rows& rows)
      : rows_(rows.count()),
        columns_(rows.kept().size[rows.kept().rank - 1]),
        lines_(rows.length()),
        strips_(ceil_div(columns_, kNormStrip)),
        block_(kLines * ceil_div(kRowGrain, kLines * std::min(columns_, kNormStrip))),
        blocks_(ceil_div(lines_, block_)) {}

  int64_t blocks() const { return blocks_; }
  void run(std::initializer_list<Phase> phases) const {
    const int64_t strips = rows_ / columns_ * strips_;
    if (blocks_ == 1) {
      const int64_t grain = std::max<int64_t>(1, kRowGrain / (lines_ * std::min(columns_, kNormStrip)));
      return parallel_range(strips, grain, [&](int64_t begin, int64_t end) {
        for (int64_t strip = begin; strip < end; ++strip)
          for (const Phase& phase : phases) {
            const Piece piece = this->piece(strip, 0);
            phase.piece(piece);
            phase.strip(piece.row, piece.count);
          }
      });
    }
    for (const Phase& phase : phases) {
      parallel_for(strips * blocks_, [&](int64_t task) { phase.piece(piece(task % strips, task / strips)); });
      parallel_for(strips, [&](int64_t strip) {
        const Piece piece = this->piece(strip, 0);
        phase.strip(piece.row, piece.count);
      });
    }
  }

 private:
  Piece piece(int64_t strip, int64_t block) const {
    const int64_t skip = strip % strips_ * kNormStrip;
    return {strip / strips_ * columns_ + skip, std::min(kNormStrip, columns_ - skip), block * block_,
            std::min(lines_, (block + 1) * block_), block};
  }

  int64_t rows_, columns_, lines_, strips_, block_, blocks_;
};

// The lines of a tensor.
template <class T>
struct ColumnLines {
  ColumnLines(const TensorImpl& x, const Rows& rows)
      : data(static_cast<T*>(x.data())), kept(rows.kept()), stride(rows.along().stride[0]) {}
  T* at(const Piece& p) const { return data + kept.offset(p.row) + p.begin * stride; }

  T* data;
  const Layout& kept;
  int64_t stride;
};

// Two sums for each row, by blocks.
class BlockSums {
 public:
  BlockSums(int64_t rows, int64_t blocks) : rows_(rows), blocks_(blocks), sums_(2 * rows * blocks) {}

  /// Those of a piece, which begin with 0.
  double* begin(int which, const Piece& p) const {
    double* const sums = at(which, p.row, p.block);
    std::fill_n(sums, p.count, 0.0);
    return sums;
  }
  /// Those of all blocks.
  double total(int which, int64_t row) const {
    double sum = 0;
    for (int64_t block = 0; block < blocks_; ++block) sum += *at(which, row, block);
    return sum;
  }

 private:
  double* at(int which, int64_t row, int64_t block) const {
    return sums_.data() + (which * blocks_ + block) * rows_ + row;
  }

  int64_t rows_, blocks_;
  Scratch<double> sums_;
};

template <class T>
const T* or_all(const T* p, T value, int64_t count, T* tile) {
  if (p) return p;
  std::fill_n(tile, count, value);
  return tile;
}

}  // namespace

namespace {

// The statistics of a column, found from its sums; once more from its elements where those are out of range.
template <class T>
class ColumnStats {
 public:
  ColumnStats(const ColumnLines<T>& lines, int64_t n, double eps) : lines_(lines), n_(n), eps_(eps) {}

  double mean(int64_t column, double sum) const {
    const double count = static_cast<double>(n_), mean = sum / count;
    if (std::isfinite(mean)) return mean;
    double total = 0;
    for (int64_t i = 0; i < n_; ++i) total += static_cast<double>(at(column)[i * lines_.stride]) / count;
    return total;
  }
  /// What the mean has beyond `shift` (0 unless `center`), and the inverse deviation.
  RowStats beyond(int64_t column, T shift, bool center, double sum, double squares) const {
    const double count = static_cast<double>(n_);
    int64_t exponent = 0;
    if (!(squares >= kLeastSum<T> && squares <= kMostSum<T>)) {
      const ScaledSums found = rows_down_table<T>().scaled_moments(at(column), lines_.stride, n_, shift);
      if (found.is_of_use) {
        sum = found.sum;
        squares = found.squares;
        exponent = found.exponent;
      }
    }
    const double rest = center ? sum / count : 0;
    const double rstd = 1 / std::sqrt(squares / count - rest * rest + ops::scaled_by_exponent(eps_, -2 * exponent));
    return {ops::scaled_by_exponent(rest, exponent), ops::scaled_by_exponent(rstd, -exponent)};
  }

 private:
  const T* at(int64_t column) const { return lines_.at({column, 1, 0, n_, 0}); }

  const ColumnLines<T>& lines_;
  int64_t n_;
  double eps_;
};

}  // namespace

// As the Moments of a row: the mean is rounded to T before it is subtracted, and what that loses is made up
// for.
template <class T>
void normalize_columns(const TensorImpl& x, const ops::NormalizeAttrs& attrs, const AffineLayout& affine,
                       const T* weight, const T* bias, const TensorImpl& y, T* mean, T* rstd) {
  const Rows rows(x, attrs.dim);
  const ColumnLines<T> from(x, rows), to(y, rows);
  const Cuts cuts(rows);
  const BlockSums sums(rows.count(), cuts.blocks());
  const Scratch<T> shift(rows.count()), rest(rows.count());
  if (measuring()) return;
  const RowsDownTable<T>& table = rows_down_table<T>();
  const ColumnStats<T> stats(from, rows.length(), attrs.eps.to_double());
  const Phase means{[&](const Piece& p) {
                      double* const sum = sums.begin(0, p);
                      if (attrs.center)
                        reduce_table<T>().sum_columns(from.at(p), p.end - p.begin, from.stride, p.count, sum);
                    },
                    [&](int64_t row, int64_t count) {
                      for (int64_t i = row; i < row + count; ++i)
                        shift[i] = static_cast<T>(stats.mean(i, sums.total(0, i)));
                    }};
  const Phase moments{[&](const Piece& p) {
                        table.moments(from.at(p), from.stride, p.end - p.begin, p.count, &shift[p.row],
                                      sums.begin(0, p), sums.begin(1, p));
                      },
                      [&](int64_t row, int64_t count) {
                        for (int64_t i = row; i < row + count; ++i) {
                          const RowStats found =
                              stats.beyond(i, shift[i], attrs.center, sums.total(0, i), sums.total(1, i));
                          rest[i] = static_cast<T>(found.mean);
                          mean[i] = static_cast<T>(static_cast<double>(shift[i]) + found.mean);
                          rstd[i] = static_cast<T>(found.rstd);
                        }
                      }};
  const Phase results{[&](const Piece& p) {
                        T scale[kNormStrip], weights[kNormStrip], biases[kNormStrip];
                        const T* const w = affine.of_rows(weight, p.row, p.count, weights);
                        const T* const b = affine.of_rows(bias, p.row, p.count, biases);
                        for (int64_t j = 0; j < p.count; ++j)
                          scale[j] = w ? rstd[p.row + j] * w[j] : rstd[p.row + j];
                        table.normalize(from.at(p), from.stride, p.end - p.begin, p.count, &shift[p.row],
                                        &rest[p.row], scale, or_all(b, T(0), p.count, biases), to.at(p),
                                        to.stride);
                      },
                      [](int64_t, int64_t) {}};
  cuts.run({means, moments, results});
}

// With a and b as in cpu/kernels/levels/softmax_norm_rows.cc: the means of g * weight and g * weight * xhat.
template <class T>
void normalize_columns_backward(const TensorImpl& g, const TensorImpl& x, const ops::NormalizeAttrs& attrs,
                                const AffineLayout& affine, const T* mean, const T* rstd, const T* weight,
                                const TensorImpl& dx, T* dweight, T* dbias) {
  const Rows rows(x, attrs.dim);
  const ColumnLines<T> from(x, rows), gradient(g, rows), to(dx, rows);
  const Cuts cuts(rows);
  const BlockSums sums(rows.count(), cuts.blocks());
  if (measuring()) return;
  const RowsDownTable<T>& table = rows_down_table<T>();
  const double n = static_cast<double>(rows.length());
  const Phase found{[&](const Piece& p) {
                      table.gradient_sums(gradient.at(p), gradient.stride, from.at(p), from.stride,
                                          p.end - p.begin, p.count, mean + p.row, rstd + p.row,
                                          sums.begin(0, p), sums.begin(1, p));
                    },
                    [&](int64_t row, int64_t count) {
                      for (int64_t i = row; i < row + count; ++i) {
                        dbias[i] = static_cast<T>(sums.total(0, i));
                        dweight[i] = static_cast<T>(sums.total(1, i));
                      }
                    }};
  const Phase results{
      [&](const Piece& p) {
        T a[kNormStrip], b[kNormStrip], weights[kNormStrip];
        const T* const w = or_all(affine.of_rows(weight, p.row, p.count, weights), T(1), p.count, weights);
        for (int64_t j = 0; j < p.count; ++j) {
          const double scale = static_cast<double>(w[j]) / n;
          a[j] = attrs.center ? static_cast<T>(static_cast<double>(dbias[p.row + j]) * scale) : T(0);
          b[j] = static_cast<T>(static_cast<double>(dweight[p.row + j]) * scale);
        }
        table.normalize_backward(gradient.at(p), gradient.stride, from.at(p), from.stride, p.end - p.begin,
                                 p.count, mean + p.row, rstd + p.row, w, a, b, to.at(p), to.stride);
      },
      [](int64_t, int64_t) {}};
  cuts.run({found, results});
}

#define RETROGRAD_COLUMNS(T)                                                                                 \
  template void normalize_columns(const TensorImpl&, const ops::NormalizeAttrs&, const AffineLayout&,        \
                                  const T*, const T*, const TensorImpl&, T*, T*);                            \
  template void normalize_columns_backward(const TensorImpl&, const TensorImpl&, const ops::NormalizeAttrs&, \
                                           const AffineLayout&, const T*, const T*, const T*,                \
                                           const TensorImpl&, T*, T*);
RETROGRAD_COLUMNS(float)
RETROGRAD_COLUMNS(double)
#undef RETROGRAD_COLUMNS

}  // namespace retrograd::cpu
