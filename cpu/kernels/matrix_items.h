// The common part of the kernels of ops/linalg.h: the matrices of a batch one by one (Items), room for copies of them
// (ItemRoom), loops over a batch (for_items), and the first error among its entries (FirstFailure).
//
// The batch is cut into chunks by the sizes alone, and each matrix is processed by one thread. A dense matrix is read
// in place, any other is copied first. The functions on one matrix are in cpu/kernels/levels/factor.h.
#pragma once

#include <algorithm>
#include <atomic>
#include <string_view>

#include "cpu/kernels/layout.h"
#include "cpu/kernels/levels/factor.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"
#include "engine/op.h"

namespace retrograd::inline v0::cpu {

/// The last `inner` dims (one or two) of a tensor, of any strides, as one item per batch entry.
template <class T>
class Items {
 public:
  Items(const TensorImpl& x, int inner)
      : data_(static_cast<T*>(x.data())), batch_(x, (uint64_t{1} << (x.rank() - inner)) - 1) {
    const int r = x.rank();
    columns_ = x.shape()[r - 1].raw();
    column_ = x.strides()[r - 1];
    if (inner == 1) return;
    rows_ = x.shape()[r - 2].raw();
    row_ = x.strides()[r - 2];
  }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t count() const { return batch_.numel(); }
  int64_t size() const { return rows_ * columns_; }

  T* at(int64_t item) const { return data_ + batch_.offset(item); }

  void copy(int64_t item, T* to) const {
    const T* from = at(item);
    for (int64_t i = 0; i < rows_; ++i, from += row_, to += columns_) {
      if (column_ == 1)
        std::copy_n(from, columns_, to);
      else
        for (int64_t j = 0; j < columns_; ++j) to[j] = from[j * column_];
    }
  }

  /// The item in place if it is dense, else its copy in `room`, which has room_size() elements.
  const T* dense(int64_t item, T* room) const {
    if (is_dense()) return at(item);
    copy(item, room);
    return room;
  }
  int64_t room_size() const { return is_dense() ? 0 : size(); }

 private:
  bool is_dense() const { return (column_ == 1 || columns_ <= 1) && (row_ == columns_ || rows_ <= 1); }

  T* data_;
  Layout batch_;
  int64_t rows_ = 1, columns_ = 1, row_ = 0, column_ = 0;
};

/// The first failing item, over all threads.
class FirstFailure {
 public:
  void note(int64_t item) {
    int64_t seen = first_.load(std::memory_order_relaxed);
    while (item < seen && !first_.compare_exchange_weak(seen, item, std::memory_order_relaxed)) {
    }
  }
  /// Throws if there is one: "the matrix `text`", with its number where there is a batch.
  void report(const Call& call, Category category, std::string_view text) const;

 private:
  static constexpr int64_t kNone = INT64_MAX;
  std::atomic<int64_t> first_{kNone};
};

/// Whether p holds each of 0 to n - 1 once. Factors come from operands and may be invalid; products with any other p
/// would not terminate. `seen` has room for n.
bool is_permutation(const int32_t* p, int64_t n, bool* seen);
inline constexpr std::string_view kNoPermutation = "has row numbers, operand 2, that are no permutation";

/// Calls f with a number of operand 0's type.
template <class F>
void with_type(const Call& call, const F& f) {
  if (call.operands[0]->dtype() == kFloat64)
    f(double{});
  else
    f(float{});
}

/// Items of a chunk, if one takes about so much work.
inline int64_t item_grain(int64_t work) {
  constexpr int64_t kGrain = 65536;  // multiplications a chunk
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(work, 1));
}

/// Calls f(begin, end) for pieces of the batch.
template <class F>
void for_items(int64_t count, int64_t work, const F& f) {
  parallel_range(count, item_grain(work), f);
}

/// Room for the copy of an item in each thread of such a loop.
template <class T>
class ItemRoom : public ThreadScratch<T> {
 public:
  ItemRoom(const Items<T>& items, int64_t count, int64_t work) : ItemRoom(items.room_size(), count, work) {}
  ItemRoom(int64_t size, int64_t count, int64_t work)
      : ThreadScratch<T>(size, ceil_div(count, item_grain(work))) {}
};

/// n^3, saturated.
inline int64_t cube(int64_t n) { return n < 1 << 20 ? n * n * n : INT64_MAX; }

template <class T>
void set_identity(T* a, int64_t n) {
  std::fill_n(a, n * n, T{0});
  for (int64_t i = 0; i < n; ++i) a[i * (n + 1)] = 1;
}

}  // namespace retrograd::cpu
