// Kernel of sort and topk.
//
// A value becomes an unsigned key in the order wanted: nan is the largest value, -0 equals 0, and descending
// keys are inverted. An entry is a key and its place in the line; ordered by (key, place) entries are stable
// however they are found. Short lines are ranked or sorted by comparing, longer ones by their digits, least
// significant first, counted from the least key on, so that a small range has few digits. topk keeps the best
// entries of what it has seen and drops what comes after the last of them at once. Lines follow each
// other in memory: along another dim than the last they are transposed into such and back.
#include "ops/sort.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "cpu/kernels/levels/sort_rank.h"
#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kSortGrain = 4096;          // elements a chunk
constexpr int64_t kShortLine = 96;            // shorter lines are compared
constexpr int64_t kManyDigits = 1 << 15;  // longer lines take wider digits
constexpr int64_t kMostPlaces = int64_t{1} << 32;

/// A key of 32 bits above a place.
struct Packed {
  using Key = uint32_t;
  uint64_t bits;
  static Packed of(Key key, int64_t place) { return {uint64_t{key} << 32 | static_cast<uint64_t>(place)}; }
  Key key() const { return static_cast<Key>(bits >> 32); }
  int64_t place() const { return static_cast<int64_t>(bits & 0xffffffff); }
  bool operator<(const Packed& b) const { return bits < b.bits; }
};
struct Wide {
  using Key = uint64_t;
  uint64_t bits;
  int64_t where;
  static Wide of(Key key, int64_t place) { return {key, place}; }
  Key key() const { return bits; }
  int64_t place() const { return where; }
  bool operator<(const Wide& b) const { return bits != b.bits ? bits < b.bits : where < b.where; }
};

template <class T>
auto key_of(T v) {
  if constexpr (std::is_integral_v<T> && sizeof(T) < 4) {
    return uint32_t{v};
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<U>(static_cast<U>(v) ^ U{1} << (8 * sizeof(T) - 1));
  } else if constexpr (sizeof(T) < 4) {
    return key_of(static_cast<float>(v));
  } else {
    using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    constexpr U sign = U{1} << (8 * sizeof(T) - 1);
    const U bits = v == 0 ? U{0} : std::bit_cast<U>(v);
    return v != v ? ~U{0} : bits & sign ? static_cast<U>(~bits) : static_cast<U>(bits | sign);
  }
}

/// Sorts n entries, given in the order of their places, by their digits of so many bits; `spare` has room for
/// n. Returns where the result is.
template <int bits, class E>
E* sort_by_digits(E* entries, E* spare, int64_t n) {
  constexpr int kValues = 1 << bits;
  using Key = typename E::Key;
  Key least = entries[0].key(), most = least;
  for (int64_t i = 1; i < n; ++i) {
    least = std::min(least, entries[i].key());
    most = std::max(most, entries[i].key());
  }
  for (int shift = 0; shift < static_cast<int>(8 * sizeof(Key)); shift += bits) {
    if (static_cast<Key>(most - least) >> shift == 0) break;
    const auto digit = [&](const E& e) {
      return static_cast<size_t>(static_cast<Key>(e.key() - least) >> shift & (kValues - 1));
    };
    int64_t next[kValues] = {};
    for (int64_t i = 0; i < n; ++i) ++next[digit(entries[i])];
    for (int64_t v = 0, sum = 0; v < kValues; ++v) sum += std::exchange(next[v], sum);
    for (int64_t i = 0; i < n; ++i) spare[next[digit(entries[i])]++] = entries[i];
    std::swap(entries, spare);
  }
  return entries;
}

template <class E>
E* sort_entries(E* entries, E* spare, int64_t n) {
  if (n < kShortLine) {
    std::sort(entries, entries + n);
    return entries;
  }
  return n < kManyDigits ? sort_by_digits<8>(entries, spare, n) : sort_by_digits<11>(entries, spare, n);
}

/// How lines of a length are sorted, and each thread's room for that.
template <class T, class E>
class Line {
 public:
  Line(int64_t length, int64_t count, bool descending, int64_t chunks)
      : length_(length),
        count_(count),
        descending_(descending),
        selects_(count < length / 4),
        room_(selects_ ? 2 * count + 16 : length),
        entries_(room_, chunks),
        spare_(selects_ || length < kShortLine ? 0 : room_, chunks) {}

  void run(const T* x, T* values, int64_t* places) const {
    if constexpr (std::is_same_v<E, Packed>)
      if (!selects_ && length_ <= kMostRanked && rank(x, values, places)) return;
    const E* first = selects_ ? select(x) : sort(x);
    for (int64_t i = 0; i < count_; ++i) {
      places[i] = first[i].place();
      values[i] = x[places[i]];
    }
  }

 private:
  E entry(const T* x, int64_t i) const {
    const auto key = key_of(x[i]);
    return E::of(static_cast<typename E::Key>(descending_ ? ~key : key), i);
  }
  bool rank(const T* x, T* values, int64_t* places) const {
    uint64_t keys[kMostRanked] = {}, ranks[kMostRanked];
    for (int64_t i = 0; i < length_; ++i) keys[i] = entry(x, i).bits;
    if (!rank_(keys, length_, ranks)) return false;
    for (int64_t i = 0; i < length_; ++i) {
      if (ranks[i] >= static_cast<uint64_t>(count_)) continue;
      places[ranks[i]] = i;
      values[ranks[i]] = x[i];
    }
    return true;
  }
  const E* sort(const T* x) const {
    E* const entries = entries_.mine();
    for (int64_t i = 0; i < length_; ++i) entries[i] = entry(x, i);
    return sort_entries(entries, spare_.mine(), length_);
  }
  const E* select(const T* x) const {
    E* const first = entries_.mine();
    int64_t n = 0;
    typename E::Key last{};  // of the best count_ so far, once there are as many
    bool full = false;
    for (int64_t i = 0; i < length_; ++i) {
      const E e = entry(x, i);
      if (full && e.key() >= last) continue;  // equal ones come after
      first[n++] = e;
      if (n < room_) continue;
      std::nth_element(first, first + count_ - 1, first + n);
      n = count_;
      last = first[count_ - 1].key();
      full = count_ > 0;
    }
    if (n > count_) std::nth_element(first, first + count_ - 1, first + n);
    std::sort(first, first + count_);  // they are no longer in the order of their places
    return first;
  }

  int64_t length_, count_;
  bool descending_, selects_;
  Rank rank_ = best_rank();
  int64_t room_;
  ThreadScratch<E> entries_, spare_;
};

template <class T, class E>
void sort_lines(const TensorImpl& x, TensorImpl& values, TensorImpl& indices, bool descending) {
  const int64_t length = x.shape().back().raw(), count = values.shape().back().raw();
  const T* from = static_cast<const T*>(x.data());
  T* to = static_cast<T*>(values.data());
  auto* places = static_cast<int64_t*>(indices.data());
  const int64_t lines = x.numel().raw() / length, grain = std::max<int64_t>(1, kSortGrain / length);
  const Line<T, E> line(length, count, descending, ceil_div(lines, grain));
  parallel_range(lines, grain, [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) line.run(from + l * length, to + l * count, places + l * count);
  });
}

/// `x` seen with a dim moved to the end.
RefPtr<TensorImpl> with_last(TensorImpl& x, int dim) {
  RefPtr<TensorImpl> view = TensorImpl::make();
  view->alias(x);
  for (int i = dim; i + 1 < x.rank(); ++i) {
    std::swap(view->mutable_shape()[i], view->mutable_shape()[i + 1]);
    std::swap(view->mutable_strides()[i], view->mutable_strides()[i + 1]);
  }
  return view;
}

void sort(const Call& call, TensorImpl* const* outputs) {
  const ops::Sort::Attrs& a = call.attrs_as<ops::Sort::Attrs>();
  if (outputs[0]->numel().raw() == 0) return;
  const int dim = static_cast<int>(a.dim);
  const RefPtr<TensorImpl> operand = with_last(*call.operands[0], dim),
                           target[2] = {with_last(*outputs[0], dim), with_last(*outputs[1], dim)};
  const LocalCopy x(operand.get(), operand->dtype());
  const LocalResult values(*target[0], target[0]->dtype()), indices(*target[1], kInt64);
  dispatch(x->dtype(), [&]<class T>(std::type_identity<T>) {
    if (sizeof(T) < 8 && x->shape().back().raw() < kMostPlaces)
      sort_lines<T, std::conditional_t<sizeof(T) < 8, Packed, Wide>>(*x, *values, *indices, a.descending);
    else
      sort_lines<T, Wide>(*x, *values, *indices, a.descending);
  });
  values.finish();
  indices.finish();
}

}  // namespace

void add_sort_kernels(KernelTable& table) { table.set(&ops::info<ops::Sort>, sort, KernelTable::kScratch); }

}  // namespace retrograd::cpu
