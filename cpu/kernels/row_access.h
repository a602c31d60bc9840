// Rows: a tensor seen as rows of elements along some of its dims, read and written as contiguous T for any dtype and
// strides.
//
// RowReader and RowWriter process rows one after the other. If neighbouring rows are adjacent, like the columns of a
// matrix, they move a block of rows at once, by a transpose: one by one, each row would touch all cache lines of its
// neighbours. Their memory, a RowRoom, is allocated before the loop that uses them.
#pragma once

#include "cpu/kernels/layout.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"
#include "engine/op.h"

namespace retrograd::inline v0::cpu {

/// Elements that one chunk of a parallel loop takes: below it a parallel region costs more than it gains.
inline constexpr int64_t kRowGrain = 32768;

/// The same for floating dtypes.
template <class F>
void dispatch_floating(ScalarType dtype, F&& f) {
  if (dtype == kFloat64)
    f(std::type_identity<double>{});
  else
    f(std::type_identity<float>{});
}

inline uint64_t dim_mask(const IntList& dims) {
  uint64_t mask = 0;
  for (int64_t d : dims) mask |= uint64_t{1} << d;
  return mask;
}

/// One row for each index of the dims that are not in `along`; rows are numbered, as are elements of a row,
/// in row-major order.
class Rows {
 public:
  Rows(const TensorImpl& x, uint64_t along)
      : x_(&x), kept_(x, ~along), along_(x, along), count_(kept_.numel()), length_(along_.numel()) {}
  Rows(const TensorImpl& x, const IntList& dims) : Rows(x, dim_mask(dims)) {}

  int64_t count() const { return count_; }
  int64_t length() const { return length_; }
  const Layout& kept() const { return kept_; }
  const Layout& along() const { return along_; }
  /// Whether each row is contiguous in memory as T.
  template <class T>
  bool is_direct() const {
    return x_->dtype() == dtype_of<T>() && along_.rank == 1 && (along_.stride[0] == 1 || length_ <= 1);
  }

  /// Whether each row consists of contiguous runs of T along the last of its dims.
  template <class T>
  bool lies_in_runs() const {
    return x_->dtype() == dtype_of<T>() && along_.stride[along_.rank - 1] == 1;
  }
  /// The first element of a row stored as T.
  template <class T>
  const T* first(int64_t row) const {
    return static_cast<const T*>(x_->data()) + kept_.offset(row);
  }

  /// Elements [begin, end) of a row: in place if they are contiguous as T, else copied to `tile`.
  template <class T>
  const T* read(int64_t row, int64_t begin, int64_t end, T* tile) const {
    if (is_direct<T>()) return static_cast<const T*>(x_->data()) + kept_.offset(row) + begin;
    dispatch(x_->dtype(), [&]<class D>(std::type_identity<D>) {
      gather(static_cast<const D*>(x_->data()) + kept_.offset(row), along_, begin, end, tile);
    });
    return tile;
  }
  template <class T>
  const T* read(int64_t row, T* tile) const {
    return read(row, 0, length_, tile);
  }

  /// The memory in which a row may be computed: in place, or `tile`. write() then copies it to its place.
  template <class T>
  T* target(int64_t row, T* tile) const {
    return is_direct<T>() ? static_cast<T*>(x_->data()) + kept_.offset(row) : tile;
  }
  template <class T>
  void write(int64_t row, const T* from) const {
    if (is_direct<T>()) return;
    dispatch(x_->dtype(), [&]<class D>(std::type_identity<D>) {
      scatter(from, static_cast<D*>(x_->data()) + kept_.offset(row), along_, 0, length_);
    });
  }

  /// Rows that one chunk of a parallel loop takes: whole blocks.
  int64_t grain() const {
    const int64_t least = std::max<int64_t>(1, kRowGrain / std::max<int64_t>(1, length_));
    return even_grain(count(), (least + block() - 1) / block() * block(), block());
  }

  /// Whether rows lie in place as T, one at a fixed distance from the next.
  template <class T>
  bool lie_behind() const {
    return is_direct<T>() && kept_.rank == 1 && !side_by_side();
  }

  /// The number of rows moved at once.
  int64_t block() const {
    if (!side_by_side() || length_ < 4 || length_ > kLongest) return 1;
    return length_ <= 1024 ? 64 : 16;
  }
  /// The number of adjacent rows, at most `most`, from `row` on before `end`.
  int64_t neighbours(int64_t row, int64_t end, int64_t most) const {
    if (!side_by_side()) return 1;
    const int64_t size = kept_.size[kept_.rank - 1];
    return std::min({most, end - row, size - row % size});
  }
  int64_t most_neighbours(int64_t most) const {
    return side_by_side() ? std::min(most, kept_.size[kept_.rank - 1]) : 1;
  }
  /// Elements [begin, end) of `count` neighbours, one row after the other in `tile`. `spare` has as much
  /// room in bytes of the tensor's dtype.
  template <class T>
  void read_block(int64_t row, int64_t count, int64_t begin, int64_t end, T* tile, char* spare) const {
    const int64_t n = end - begin, item = static_cast<int64_t>(element_size(x_->dtype()));
    const bool same = x_->dtype() == dtype_of<T>();
    char* to = same ? reinterpret_cast<char*>(tile) : spare;
    const char* from = static_cast<const char*>(x_->data()) + kept_.offset(row) * item;
    const auto move = move_table().transpose[width_index(x_->dtype())];
    along_.for_runs(begin, end, [&](int64_t offset, int64_t stride, int64_t run, int64_t at) {
      move(from + offset * item, stride, run, count, to + at * item, n);
    });
    if (!same) convert_table<T>().load[static_cast<int>(x_->dtype())](spare, 1, count * n, tile);
  }
  /// Elements [begin, end) of `count` neighbours as they lie: element i of row k is result[i * *stride + k].
  /// In place, or copied to `tile`.
  template <class T>
  const T* read_across(int64_t row, int64_t count, int64_t begin, int64_t end, T* tile,
                       int64_t* stride) const {
    const int64_t item = static_cast<int64_t>(element_size(x_->dtype()));
    const char* from = static_cast<const char*>(x_->data()) + kept_.offset(row) * item;
    *stride = along_.stride[0];
    if (is_across<T>()) return reinterpret_cast<const T*>(from) + begin * *stride;
    const auto load = convert_table<T>().load[static_cast<int>(x_->dtype())];
    along_.for_runs(begin, end, [&](int64_t offset, int64_t step, int64_t n, int64_t at) {
      for (int64_t i = 0; i < n; ++i)
        load(from + (offset + i * step) * item, 1, count, tile + (at + i) * count);
    });
    *stride = count;
    return tile;
  }
  /// Whether read_across() finds them in place.
  template <class T>
  bool is_across() const {
    return along_.rank == 1 && x_->dtype() == dtype_of<T>();
  }
  /// The reverse of read_block, for whole rows.
  template <class T>
  void write_block(int64_t row, int64_t count, const T* tile, char* spare) const {
    const int64_t item = static_cast<int64_t>(element_size(x_->dtype()));
    const bool same = x_->dtype() == dtype_of<T>();
    if (!same) convert_table<T>().store[static_cast<int>(x_->dtype())](tile, count * length_, spare, 1);
    const char* from = same ? reinterpret_cast<const char*>(tile) : spare;
    char* to = static_cast<char*>(x_->data()) + kept_.offset(row) * item;
    const auto move = move_table().transpose[width_index(x_->dtype())];
    along_.for_runs(0, length_, [&](int64_t offset, int64_t stride, int64_t run, int64_t at) {
      move(from + at * item, length_, count, run, to + offset * item, stride);
    });
  }

 private:
  static constexpr int64_t kLongest = 1 << 17;  // beyond, a block would not fit any cache

  bool side_by_side() const {
    const int last = kept_.rank - 1;
    return kept_.stride[last] == 1 && kept_.size[last] >= 4 && along_.stride[along_.rank - 1] != 1;
  }

  const TensorImpl* x_;
  Layout kept_, along_;
  int64_t count_, length_;
};

/// Room for `rows` rows of a length in each thread of a loop of `chunks` chunks. In a chunk:
///   RowTiles<T>::Mine tile(tiles);
/// which has short rows on the stack.
template <class T>
class RowTiles {
  static constexpr int64_t kInline = 1024;

 public:
  RowTiles(int64_t rows, int64_t length, int64_t chunks)
      : length_(length), more_(rows * length > kInline ? rows * length : 0, chunks) {}

  class Mine {
   public:
    explicit Mine(const RowTiles& tiles)
        : length_(tiles.length_), rows_(tiles.more_.bytes() > 0 ? tiles.more_.mine() : inline_) {}
    Mine(const Mine&) = delete;
    T* operator[](int64_t row) { return rows_ + row * length_; }

   private:
    int64_t length_;
    T* rows_;
    T inline_[kInline];
  };

 private:
  int64_t length_;
  ThreadScratch<T> more_;
};

/// What a RowReader or RowWriter of such rows needs in each thread of a loop of `chunks` chunks.
template <class T>
class RowRoom {
 public:
  RowRoom(const Rows& rows, int64_t chunks)
      : rows_(rows),
        tile_(rows.block() > 1 || !rows.is_direct<T>() ? rows.block() : 0, rows.length(), chunks),
        spare_(rows.block() > 1 ? rows.block() * static_cast<int64_t>(sizeof(T)) : 0, rows.length(), chunks) {
  }

 private:
  template <class>
  friend class RowReader;
  template <class>
  friend class RowWriter;
  const Rows& rows_;
  RowTiles<T> tile_;
  RowTiles<char> spare_;
};

/// Reads rows below `end` in ascending order.
template <class T>
class RowReader {
 public:
  RowReader(const RowRoom<T>& room, int64_t end)
      : rows_(room.rows_), end_(end), block_(rows_.block()), tile_(room.tile_), spare_(room.spare_) {}

  /// The row, valid until the next one is read.
  const T* operator()(int64_t row) {
    if (block_ == 1) return rows_.read(row, tile_[0]);
    if (row >= first_ + count_) {
      first_ = row;
      count_ = rows_.neighbours(row, end_, block_);
      rows_.read_block(row, count_, 0, rows_.length(), tile_[0], spare_[0]);
    }
    return tile_[row - first_];
  }

 private:
  const Rows& rows_;
  int64_t end_, block_, first_ = -1, count_ = 0;
  typename RowTiles<T>::Mine tile_;
  typename RowTiles<char>::Mine spare_;
};

/// Takes rows below `end` in ascending order.
template <class T>
class RowWriter {
 public:
  RowWriter(const RowRoom<T>& room, int64_t end)
      : rows_(room.rows_), end_(end), block_(rows_.block()), tile_(room.tile_), spare_(room.spare_) {}

  /// The memory in which the row is computed; then done() copies it to its place.
  T* target(int64_t row) {
    if (block_ == 1) return rows_.target(row, tile_[0]);
    if (row >= first_ + count_) {
      first_ = row;
      count_ = rows_.neighbours(row, end_, block_);
    }
    return tile_[row - first_];
  }
  void done(int64_t row) {
    if (block_ == 1)
      rows_.write(row, target(row));
    else if (row == first_ + count_ - 1)
      rows_.write_block(first_, count_, tile_[0], spare_[0]);
  }

 private:
  const Rows& rows_;
  int64_t end_, block_, first_ = -1, count_ = 0;
  typename RowTiles<T>::Mine tile_;
  typename RowTiles<char>::Mine spare_;
};

}  // namespace retrograd::cpu
