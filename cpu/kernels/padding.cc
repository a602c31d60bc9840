// Kernels of pad and its backward (ops/rearrange.h), except for mode constant.
//
// Each entry of a padded dim shows one of the operand's: the maps say which. A row of the last dim is a
// border, a run of neighbours and another border; rows go by the maps of the other dims. Backward, a row of
// the operand is the sum of the gradient's rows that show it, in order, float16 and bfloat16 in float32.
#include <algorithm>

#include "cpu/kernels/index.h"
#include "cpu/kernels/levels/copy_rows.h"
#include "cpu/parallel.h"
#include "ops/rearrange.h"

namespace retrograd::inline v0::cpu {
namespace {

int64_t modulo(int64_t a, int64_t n) { return (a % n + n) % n; }

// The entry of a dim of n that entry i of the padded one shows.
int64_t shown_entry(const ops::PadAttrs& a, int d, int64_t n, int64_t i) {
  const int64_t at = i - a.before[d];
  if (a.mode == ops::PadAttrs::replicate) return std::clamp<int64_t>(at, 0, n - 1);
  if (a.mode == ops::PadAttrs::reflect) return at < 0 ? -at : at >= n ? 2 * n - 2 - at : at;
  // Circular: what is cut off does not come back.
  const int64_t first = std::max<int64_t>(-a.before[d], 0),
                kept = n - first - std::max<int64_t>(-a.after[d], 0);
  return first + modulo(i - std::max<int64_t>(a.before[d], 0), kept);
}

// The dims of a padded tensor, and the maps between entries. Dims that are not padded are merged with their
// neighbours. After the last padded dim there are `inner` elements for each entry.
class Padding {
 public:
  Padding(const ops::PadAttrs& a, const Shape& small, const Shape& large)
      : Padding(dims_of(a, small, large)) {
    if (measuring()) return;
    int64_t *shown = shown_.data(), *showing = showing_.data(), *begin = begin_.data();
    for (int k = 0; k < rank(); ++k) {
      Dim& d = dims_.dim[k];
      d.shown = shown;
      d.begin = begin;
      d.showing = showing;
      fill_maps(a, d);
      shown += d.large;
      showing += d.large;
      begin += d.small + 2;
    }
    const Dim& last = this->last();
    const int64_t before = last.number < 0 ? 0 : a.before[last.number],
                  after = last.number < 0 ? 0 : a.after[last.number];
    left_ = std::clamp<int64_t>(before, 0, last.large);
    right_ = last.large - std::clamp<int64_t>(after, 0, last.large - left_);
  }

  int64_t inner() const { return dims_.inner; }
  int64_t small_row() const { return last().small * inner(); }
  int64_t large_row() const { return last().large * inner(); }
  int64_t small_rows() const { return rows(&Dim::small); }
  int64_t large_rows() const { return rows(&Dim::large); }
  /// Entries [left, right) of a padded row show neighbours, from entry from() on; the others are borders.
  int64_t left() const { return left_; }
  int64_t right() const { return right_; }
  int64_t from() const { return left_ < right_ ? last().shown[left_] : 0; }
  /// The entry of the operand that an entry of a padded row shows.
  int64_t shown(int64_t i) const { return last().shown[i]; }

  /// The row that a padded row shows.
  int64_t shown_row(int64_t row) const {
    int64_t result = 0, pitch = 1;
    for (int k = rank() - 2; k >= 0; --k) {
      const Dim& d = dims_.dim[k];
      result += d.shown[row % d.large] * pitch;
      row /= d.large;
      pitch *= d.small;
    }
    return result;
  }

  /// Calls f(padded row) for those that show a row, in order.
  template <class F>
  void for_showing(int64_t row, const F& f) const {
    const int depth = rank() - 1;
    if (depth == 0) return f(0);
    int64_t first[kMaxRank], end[kMaxRank], at[kMaxRank];  // of a dim: places in `showing` for this row
    int64_t before[kMaxRank] = {};                         // the entry of the dims before it
    for (int k = depth - 1; k >= 0; --k) {
      const Dim& d = dims_.dim[k];
      first[k] = at[k] = d.begin[row % d.small];
      end[k] = d.begin[row % d.small + 1];
      row /= d.small;
    }
    for (int k = 0; k >= 0;) {
      if (at[k] == end[k]) {
        --k;
        continue;
      }
      const Dim& d = dims_.dim[k];
      const int64_t entry = before[k] * d.large + d.showing[at[k]++];
      if (k + 1 == depth) {
        f(entry);
      } else {
        before[++k] = entry;
        at[k] = first[k];
      }
    }
  }

 private:
  // `number`: among the tensor's dims, -1 of merged ones, which are not padded.
  struct Dim {
    int64_t small, large;
    int number;
    int64_t *shown, *begin, *showing;  // showing[begin[s]] .. showing[begin[s + 1]]: the entries that show s
  };
  struct Dims {
    int rank = 0;
    int64_t inner = 1, small = 0, large = 0;  // entries of all dims
    Dim dim[kMaxRank];
  };

  explicit Padding(const Dims& dims)
      : dims_(dims), shown_(dims.large), showing_(dims.large), begin_(dims.small + 2 * dims.rank) {}

  static Dims dims_of(const ops::PadAttrs& a, const Shape& small, const Shape& large) {
    Dims dims;
    for (int d = 0; d < small.rank(); ++d) {
      const bool padded = a.before[d] != 0 || a.after[d] != 0;
      const int64_t n = small[d].raw();
      if (!padded && dims.rank > 0 && dims.dim[dims.rank - 1].number < 0)
        dims.dim[dims.rank - 1].small = dims.dim[dims.rank - 1].large = dims.dim[dims.rank - 1].small * n;
      else
        dims.dim[dims.rank++] = {n, large[d].raw(), padded ? d : -1, nullptr, nullptr, nullptr};
    }
    if (dims.rank > 1 && dims.dim[dims.rank - 1].number < 0) dims.inner = dims.dim[--dims.rank].small;
    if (dims.rank == 0) dims.dim[dims.rank++] = {1, 1, -1, nullptr, nullptr, nullptr};
    for (int k = 0; k < dims.rank; ++k) {
      dims.small += dims.dim[k].small;
      dims.large += dims.dim[k].large;
    }
    return dims;
  }

  static void fill_maps(const ops::PadAttrs& a, Dim& d) {
    for (int64_t i = 0; i < d.large; ++i)
      d.shown[i] = d.number < 0 ? i : shown_entry(a, d.number, d.small, i);
    // Where the next entry that shows s goes is kept one place on: in the end, each is in its place.
    std::fill_n(d.begin, d.small + 2, 0);
    for (int64_t i = 0; i < d.large; ++i) ++d.begin[d.shown[i] + 2];
    for (int64_t s = 2; s < d.small + 2; ++s) d.begin[s] += d.begin[s - 1];
    for (int64_t i = 0; i < d.large; ++i) d.showing[d.begin[d.shown[i] + 1]++] = i;
  }

  int rank() const { return dims_.rank; }
  const Dim& last() const { return dims_.dim[dims_.rank - 1]; }
  int64_t rows(int64_t Dim::*size) const {
    int64_t n = 1;
    for (int k = 0; k + 1 < rank(); ++k) n *= dims_.dim[k].*size;
    return n;
  }

  Dims dims_;
  Scratch<int64_t> shown_, showing_, begin_;
  int64_t left_ = 0, right_ = 0;
};

void pad(const Call& call, TensorImpl* const* outputs) {
  TensorImpl& out = *outputs[0];
  if (out.numel().raw() == 0) return;
  const LocalCopy x(call.operands[0]);
  const Padding p(call.attrs_as<ops::PadAttrs>(), x->shape(), out.shape());
  const int64_t row_size = p.large_row(), inner = p.inner(), middle = (p.right() - p.left()) * inner;
  const auto move = move_table().move[width_index(out.dtype())];
  by_width(element_size(out.dtype()), [&]<class T>(T) {
    const T* const from = static_cast<const T*>(x->data());
    T* const to = static_cast<T*>(out.data());
    parallel_range(p.large_rows(), std::max<int64_t>(1, kIndexGrain / row_size),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) {
                       const T* const source = from + p.shown_row(row) * p.small_row();
                       T* const target = to + row * row_size;
                       const auto border = [&](int64_t first, int64_t last) {
                         for (int64_t i = first; i < last; ++i)
                           std::copy_n(source + p.shown(i) * inner, inner, target + i * inner);
                       };
                       border(0, p.left());
                       move(source + p.from() * inner, 1, middle, target + p.left() * inner, 1);
                       border(p.right(), row_size / inner);
                     }
                   });
  });
}

// The sum of padded rows, as a row of the operand.
template <class T>
class RowSum {
  using A = Accumulator<T>;

 public:
  RowSum(const Padding& p, A* sum) : p_(p), sum_(sum) {}

  void add(const T* g) {
    const int64_t inner = p_.inner(), count = (p_.right() - p_.left()) * inner;
    if (is_empty_) clear(p_.from() * inner, count);
    A* const to = sum_ + p_.from() * inner;
    const T* const from = g + p_.left() * inner;
    if (is_empty_)
      for (int64_t i = 0; i < count; ++i) to[i] = static_cast<A>(from[i]);
    else
      for (int64_t i = 0; i < count; ++i) to[i] = to[i] + static_cast<A>(from[i]);
    border(g, 0, p_.left());
    border(g, p_.right(), p_.large_row() / inner);
    is_empty_ = false;
  }
  void finish() {
    if (is_empty_) clear(0, 0);
  }

 private:
  // Clears the elements around [first, first + count).
  void clear(int64_t first, int64_t count) {
    std::fill(sum_, sum_ + first, A(0));
    std::fill(sum_ + first + count, sum_ + p_.small_row(), A(0));
  }
  void border(const T* g, int64_t first, int64_t last) {
    const int64_t inner = p_.inner();
    for (int64_t i = first; i < last; ++i) {
      A* const to = sum_ + p_.shown(i) * inner;
      for (int64_t k = 0; k < inner; ++k) to[k] = to[k] + static_cast<A>(g[i * inner + k]);
    }
  }

  const Padding& p_;
  A* sum_;
  bool is_empty_ = true;
};

void pad_backward(const Call& call, TensorImpl* const* outputs) {
  TensorImpl& out = *outputs[0];
  if (out.numel().raw() == 0) return;
  const LocalCopy g(call.operands[0]);
  const Padding p(call.attrs_as<ops::PadAttrs>(), out.shape(), g->shape());
  const int64_t row_size = p.small_row(), rows = p.small_rows(),
                grain = std::max<int64_t>(1, kIndexGrain / row_size);
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    using A = Accumulator<T>;
    constexpr bool in_place = std::is_same_v<A, T>;
    const ThreadScratch<A> sums(in_place ? 0 : row_size, ceil_div(rows, grain));
    const T* const from = static_cast<const T*>(g->data());
    parallel_range(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        T* const target = static_cast<T*>(out.data()) + row * row_size;
        A* sum;
        if constexpr (in_place)
          sum = target;
        else
          sum = sums.mine();
        RowSum<T> total(p, sum);
        p.for_showing(row, [&](int64_t padded) { total.add(from + padded * p.large_row()); });
        total.finish();
        if constexpr (!in_place)
          for (int64_t i = 0; i < row_size; ++i) target[i] = static_cast<T>(sum[i]);
      }
    });
  });
}

}  // namespace

void add_padding_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Pad>, pad, KernelTable::kScratch);
  table.set(&ops::info<ops::PadBackward>, pad_backward, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
