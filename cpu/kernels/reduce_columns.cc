// Sums and products of columns: see cpu/kernels/reduce.h.
//
// Rows are cut into blocks and columns into strips, by sizes alone. A task sums, or multiplies, one strip of
// one block into doubles; the blocks of a strip are then joined in order (ColumnReducer). Elements that are
// not computed in their own dtype are taken in pieces of column_piece() rows, converted to a tile; sums of
// bfloat16 need no tile, since the table's function converts them itself. Fused groups that end in sums of
// columns are cut by the same functions. Start reading at ColumnReducer::run.
#include "cpu/kernels/reduce.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kColumnBlock =
    16384;  // elements of a block of a strip, about: of 768 x 128 two threads have three blocks each
constexpr int64_t kConvertedTile = 8192;  // elements converted at once

/// kind: sum or prod.
template <class T, class D, Reduction kind>
class ColumnReducer {
 public:
  ColumnReducer(const TensorImpl& x, const Rows& rows, double divisor, TensorImpl& out)
      : x_(static_cast<const D*>(x.data())),
        rows_(rows),
        divisor_(divisor),
        out_(static_cast<D*>(out.data())),
        columns_(rows.kept().size[rows.kept().rank - 1]),
        strips_((columns_ + kColumnStrip - 1) / kColumnStrip),
        block_(column_block(columns_)),
        blocks_((rows_.length() + block_ - 1) / block_),
        tile_(tile_size(), tasks()) {}

  void run() const {
    const int64_t groups = rows_.count() / columns_;
    if (blocks_ <= 1) return parallel_for(groups * strips_, [&](int64_t task) { single(task); });
    for (int64_t group = 0; group < groups; ++group) blocked(group);
  }

 private:
  struct Strip {
    int64_t first, count;
  };
  Strip strip(int64_t i) const { return {i * kColumnStrip, std::min(kColumnStrip, columns_ - i * kColumnStrip)}; }

  // Elements of a tile of one strip, where elements are converted.
  int64_t tile_size() const {
    const int64_t strip = std::min(kColumnStrip, columns_);
    return kReadsInPlace ? 0 : std::min(std::max(kConvertedTile, strip), std::min(block_, rows_.length()) * strip);
  }
  int64_t tasks() const { return (blocks_ <= 1 ? rows_.count() / columns_ : blocks_) * strips_; }

  // Conversion to float32 takes one instruction: the sums read bfloat16 themselves.
  static constexpr bool kConverts = !std::is_same_v<T, D>;
  static constexpr bool kReadsInPlace = !kConverts || (std::is_same_v<D, BFloat16> && kind == Reduction::sum);

  static constexpr double kNothing = kind == Reduction::sum ? 0 : 1;
  static void join(double& into, double next) {
    if constexpr (kind == Reduction::sum)
      into += next;
    else
      into *= next;
  }
  template <class From>
  static void join(const From* x, int64_t rows, int64_t stride, int64_t columns, double* out) {
    const ReduceTable<T>& table = reduce_table<T>();
    if constexpr (std::is_same_v<From, BFloat16>)
      table.sum_bfloat16_columns(x, rows, stride, columns, out);
    else
      (kind == Reduction::sum ? table.sum_columns : table.multiply_columns)(x, rows, stride, columns, out);
  }

  // Joins to out[j] column first + j over elements [begin, end) of the reduced dims.
  void add(int64_t group, Strip s, int64_t begin, int64_t end, T* tile, double* out) const {
    const D* base = x_ + rows_.kept().offset(group * columns_) + s.first;
    rows_.along().for_runs(begin, end, [&](int64_t offset, int64_t stride, int64_t count, int64_t) {
      // What is converted is joined in pieces of so many rows, however it is read.
      const int64_t rows = kConverts ? column_piece(s.count) : count;
      for (int64_t i = 0; i < count; i += rows) {
        const int64_t n = std::min(rows, count - i);
        const D* from = base + offset + i * stride;
        if constexpr (kReadsInPlace) {
          join(from, n, stride, s.count, out);
        } else {
          const auto load = convert_table<T>().load[static_cast<int>(dtype_of<D>())];
          for (int64_t r = 0; r < n; ++r) load(from + r * stride, 1, s.count, tile + r * s.count);
          join(tile, n, s.count, s.count, out);
        }
      }
    });
  }

  void store(int64_t group, Strip s, const double* sums) const {
    D* out = out_ + group * columns_ + s.first;
    for (int64_t j = 0; j < s.count; ++j) out[j] = convert<D>(sums[j] / divisor_);
  }

  void single(int64_t task) const {
    double sums[kColumnStrip];
    const Strip s = strip(task % strips_);
    std::fill_n(sums, s.count, kNothing);
    add(task / strips_, s, 0, rows_.length(), tile_.mine(), sums);
    store(task / strips_, s, sums);
  }

  void blocked(int64_t group) const {
    const Scratch<double> sums(blocks_ * columns_);
    if (measuring()) return;
    std::fill_n(sums.data(), blocks_ * columns_, kNothing);
    parallel_for(blocks_ * strips_, [&](int64_t task) {
      const Strip s = strip(task % strips_);
      const int64_t begin = task / strips_ * block_;
      add(group, s, begin, std::min(begin + block_, rows_.length()), tile_.mine(),
          &sums[task / strips_ * columns_ + s.first]);
    });
    for (int64_t block = 1; block < blocks_; ++block)
      for (int64_t j = 0; j < columns_; ++j) join(sums[j], sums[block * columns_ + j]);
    for (int64_t i = 0; i < strips_; ++i) store(group, strip(i), &sums[strip(i).first]);
  }

  const D* x_;
  const Rows& rows_;
  double divisor_;
  D* out_;
  int64_t columns_, strips_, block_, blocks_;
  ThreadScratch<T> tile_;
};

template <Reduction kind>
bool reduce_columns(const TensorImpl& x, const IntList& dims, double divisor, TensorImpl& out) {
  if (!is_floating(x.dtype()) || x.numel().raw() == 0) return false;
  const Rows rows(x, dims);
  const Layout& kept = rows.kept();
  if (kept.stride[kept.rank - 1] != 1 || kept.size[kept.rank - 1] < kLeastColumns) return false;
  dispatch(x.dtype(), [&]<class D>(std::type_identity<D>) {
    if constexpr (!std::is_integral_v<D>) ColumnReducer<ComputeOf<D>, D, kind>(x, rows, divisor, out).run();
  });
  return true;
}

}  // namespace

int64_t column_block(int64_t columns) { return std::max(kSumRows, kColumnBlock / std::min(columns, kColumnStrip)); }

int64_t column_piece(int64_t columns) { return std::max<int64_t>(1, kConvertedTile / columns); }

bool sum_columns(const TensorImpl& x, const IntList& dims, double divisor, TensorImpl& out) {
  return reduce_columns<Reduction::sum>(x, dims, divisor, out);
}
bool multiply_columns(const TensorImpl& x, const IntList& dims, TensorImpl& out) {
  return reduce_columns<Reduction::prod>(x, dims, 1, out);
}

}  // namespace retrograd::cpu
