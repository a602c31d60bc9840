// Kernels of ops that read and write whole entries of a dim at positions held by another tensor
// (ops/index_ops.h, ops/embedding.h).
//
// They see a tensor as [outer, entries, inner]. Additions to an entry happen in order of position, for any number of
// threads; for small formats, in float32, positions are grouped by the entry they name (Buckets). Every index is
// checked before anything is written.
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "cpu/kernels/index.h"
#include "cpu/parallel.h"
#include "ops/embedding.h"
#include "ops/index_ops.h"

namespace retrograd::inline v0::cpu {
namespace {

// A row-major tensor as [outer, entries, inner].
struct Entries {
  int64_t outer = 1, entries, inner = 1;
  Entries(const Shape& shape, int64_t dim) : entries(shape[static_cast<int>(dim)].raw()) {
    for (int i = 0; i < shape.rank(); ++i)
      if (i != dim) (i < dim ? outer : inner) *= shape[i].raw();
  }
};

constexpr int64_t kManyOuter = 16;  // from this number on it pays off to search for runs of positions

// to[r] = from[r / k * entries + index[r % k]] for elements or whole entries, which copy(r, source) moves.
template <class Copy>
void select_range(int64_t begin, int64_t end, const int64_t* index, int64_t k, int64_t entries,
                  const Copy& copy) {
  for (int64_t r = begin; r < end;) {
    const int64_t base = r / k * entries, stop = std::min(end, (r / k + 1) * k);
    for (const int64_t* p = index + r % k; r < stop; ++r, ++p) copy(r, base + *p);
  }
}

// Positions in runs of neighbours, as of a padded dim: [first, first + size) of the index, from `from` on.
struct PositionRun {
  int64_t first, from, size;
};

// The runs of an index of k positions; none if they are short.
class PositionRuns {
 public:
  explicit PositionRuns(int64_t k) : k_(k), runs_(k / kLeast + 1) {}

  /// Reads the index.
  void find(const int64_t* index) {
    for (int64_t i = 0; i < k_; ++i) {
      if (i > 0 && index[i] == index[i - 1] + 1) {
        ++runs_[count_ - 1].size;
        continue;
      }
      if (count_ * kLeast > k_) {
        count_ = 0;
        return;
      }
      runs_[count_++] = {i, index[i], 1};
    }
  }
  bool empty() const { return count_ == 0; }
  const PositionRun* begin() const { return runs_.data(); }
  const PositionRun* end() const { return runs_.data() + count_; }

 private:
  static constexpr int64_t kLeast = 8;  // positions of a run, on the average

  int64_t k_, count_ = 0;
  Scratch<PositionRun> runs_;
};

// Each run of each outer entry is one move.
template <class T>
void select_runs(const PositionRuns& runs, const Entries& e, int64_t k, const T* from, T* to) {
  parallel_range(e.outer, std::max<int64_t>(1, kIndexGrain / (k * e.inner)), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o)
      for (const PositionRun& run : runs) {
        const T* source = from + (o * e.entries + run.from) * e.inner;
        T* target = to + (o * k + run.first) * e.inner;
        const int64_t n = run.size * e.inner;
        if (n == 1)  // a border of one element, not worth a call
          *target = *source;
        else
          std::memcpy(target, source, static_cast<size_t>(n) * sizeof(T));
      }
  });
}

void index_select(const Call& call, TensorImpl* const* outputs) {
  const int64_t dim = call.attrs_as<ops::DimAttrs>().dim;
  const LocalCopy x(call.operands[0]), index(call.operands[1]);
  const Entries e(x->shape(), dim);
  check_range(call, *index, e.entries);
  const size_t item = element_size(x->dtype());
  const int64_t k = index->numel().raw(), bytes = e.inner * static_cast<int64_t>(item);
  if (bytes == 0 || k == 0) return;
  if (e.outer >= kManyOuter) {
    PositionRuns runs(k);
    if (measuring()) return;
    runs.find(positions(*index));
    if (!runs.empty())
      return by_width(item, [&]<class T>(T) {
        select_runs(runs, e, k, static_cast<const T*>(x->data()), static_cast<T*>(outputs[0]->data()));
      });
  }
  parallel_range(e.outer * k, std::max<int64_t>(1, kIndexGrain / e.inner), [&](int64_t begin, int64_t end) {
    if (e.inner == 1)
      return by_width(item, [&]<class T>(T) {
        const T* from = static_cast<const T*>(x->data());
        T* to = static_cast<T*>(outputs[0]->data());
        select_range(begin, end, positions(*index), k, e.entries,
                     [=](int64_t r, int64_t s) { to[r] = from[s]; });
      });
    const char* from = static_cast<const char*>(x->data());
    char* to = static_cast<char*>(outputs[0]->data());
    select_range(begin, end, positions(*index), k, e.entries, [=](int64_t r, int64_t s) {
      std::memcpy(to + r * bytes, from + s * bytes, static_cast<size_t>(bytes));
    });
  });
}

void index_copy(const Call& call, TensorImpl* const* outputs) {
  const int64_t dim = call.attrs_as<ops::DimAttrs>().dim;
  const LocalCopy index(call.operands[1]), source(call.operands[2]);
  TensorImpl& out = *outputs[0];
  const Entries e(out.shape(), dim);
  check_range(call, *index, e.entries);
  if (measuring()) return;
  convert_copy(*call.operands[0], out);
  const size_t item = element_size(out.dtype());
  const int64_t k = index->numel().raw(), bytes = e.inner * static_cast<int64_t>(item);
  if (bytes == 0) return;
  if (e.inner == 1)  // elements alone are not worth a call each
    return by_width(item, [&]<class T>(T) {
      const int64_t* const at = positions(*index);
      const T* from = static_cast<const T*>(source->data());
      T* to = static_cast<T*>(out.data());
      for (int64_t o = 0; o < e.outer; ++o, from += k, to += e.entries)
        for (int64_t j = 0; j < k; ++j) to[at[j]] = from[j];
    });
  const char* from = static_cast<const char*>(source->data());
  char* to = static_cast<char*>(out.data());
  for (int64_t o = 0; o < e.outer; ++o)
    for (int64_t j = 0; j < k; ++j)
      std::memcpy(to + (o * e.entries + positions(*index)[j]) * bytes, from + (o * k + j) * bytes,
                  static_cast<size_t>(bytes));
}

// Which positions name an entry, in order: begin[r] .. begin[r + 1] of `order`. Positions with the index
// `skip` are left out.
struct Buckets {
  Scratch<int64_t> begin, order;

  Buckets(const int64_t* index, int64_t count, int64_t entries, int64_t skip)
      : begin(entries + 2), order(count) {
    if (measuring()) return;
    std::fill_n(begin.data(), entries + 2, 0);
    for (int64_t i = 0; i < count; ++i)
      if (index[i] != skip) ++begin[index[i] + 2];
    for (int64_t r = 2; r <= entries; ++r) begin[r] += begin[r - 1];
    // Where the next position of an entry goes is kept one place on: in the end, each is in its place.
    for (int64_t i = 0; i < count; ++i)
      if (index[i] != skip) order[begin[index[i] + 1]++] = i;
  }
  int64_t count(int64_t entry) const { return begin[entry + 1] - begin[entry]; }
};

// to[o, r, :] += the source entries of r's bucket, divided by their number when `mean`.
template <class T>
void add_entries(const Buckets& buckets, const Entries& e, int64_t k, const T* source, T* to, bool mean) {
  using A = Accumulator<T>;
  const int64_t rows = e.outer * e.entries,
                grain = std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(e.inner, 1));
  const ThreadScratch<A> sums(e.inner, ceil_div(rows, grain));
  parallel_range(rows, grain, [&](int64_t begin, int64_t end) {
    A* const sum = sums.mine();
    for (int64_t r = begin; r < end; ++r) {
      const int64_t entry = r % e.entries, o = r / e.entries, n = buckets.count(entry);
      if (n == 0) continue;
      T* row = to + r * e.inner;
      for (int64_t i = 0; i < e.inner; ++i) sum[i] = static_cast<A>(row[i]);
      for (int64_t b = buckets.begin[entry]; b < buckets.begin[entry + 1]; ++b) {
        const T* from = source + (o * k + buckets.order[b]) * e.inner;
        for (int64_t i = 0; i < e.inner; ++i) sum[i] = sum[i] + static_cast<A>(from[i]);
      }
      for (int64_t i = 0; i < e.inner; ++i)
        row[i] = static_cast<T>(mean ? sum[i] / static_cast<A>(n) : sum[i]);
    }
  });
}

// The same without buckets, position by position: parallel over the outer dims and over ranges of entries, of
// which each task takes its own from all positions. As many ranges as threads: an entry's sum is the same in
// any.
template <class T>
void add_in_order(const int64_t* index, const Entries& e, int64_t k, const T* source, T* to, int64_t skip) {
  const int64_t ranges = std::clamp<int64_t>(e.inner < 16 ? 1 : k * e.inner / kIndexGrain, 1, loop_threads());
  const int64_t range = (e.entries + ranges - 1) / ranges;
  parallel_range(e.outer * ranges, std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(1, k * e.inner)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t task = begin; task < end; ++task) {
                     const int64_t first = task % ranges * range, last = std::min(first + range, e.entries);
                     T* base = to + task / ranges * e.entries * e.inner;
                     const T* from = source + task / ranges * k * e.inner;
                     if (e.inner == 1) {  // hence one range
                       for (int64_t j = 0; j < k; ++j)
                         if (index[j] != skip) base[index[j]] = base[index[j]] + from[j];
                       continue;
                     }
                     for (int64_t j = 0; j < k; ++j, from += e.inner) {
                       const int64_t p = index[j];
                       if (p < first || p >= last || p == skip) continue;
                       T* row = base + p * e.inner;
                       for (int64_t i = 0; i < e.inner; ++i) row[i] = row[i] + from[i];
                     }
                   }
                 });
}

void add_at(const Call& call, const TensorImpl& index, const TensorImpl& source, const Entries& e,
            TensorImpl& out, int64_t skip = -1, bool mean = false) {
  check_range(call, index, e.entries);
  const int64_t k = index.numel().raw();
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* from = static_cast<const T*>(source.data());
    T* to = static_cast<T*>(out.data());
    if constexpr (std::is_same_v<Accumulator<T>, T>)
      if (!mean) return add_in_order(positions(index), e, k, from, to, skip);
    add_entries<T>(Buckets(positions(index), k, e.entries, skip), e, k, from, to, mean);
  });
}

void index_add(const Call& call, TensorImpl* const* outputs) {
  const LocalCopy index(call.operands[1]), source(call.operands[2]);
  if (!measuring()) convert_copy(*call.operands[0], *outputs[0]);
  add_at(call, *index, *source, Entries(outputs[0]->shape(), call.attrs_as<ops::DimAttrs>().dim),
         *outputs[0]);
}

void index_select_backward(const Call& call, TensorImpl* const* outputs) {
  const LocalCopy g(call.operands[0]), index(call.operands[1]);
  clear(*outputs[0]);
  add_at(call, *index, *g, Entries(outputs[0]->shape(), call.attrs_as<ops::IndexSelectBackward::Attrs>().dim),
         *outputs[0]);
}

// ---- embedding ----------------------------------------------------------------------------------------------------

void embedding(const Call& call, TensorImpl* const* outputs) {
  const ops::EmbeddingAttrs& a = call.attrs_as<ops::EmbeddingAttrs>();
  const LocalCopy index(call.operands[0]), weight(call.operands[1]);
  const int64_t rows = weight->shape()[0].raw(), width = weight->shape()[1].raw(), k = index->numel().raw();
  check_range(call, *index, rows);
  dispatch(weight->dtype(), [&]<class T>(std::type_identity<T>) {
    const T* from = static_cast<const T*>(weight->data());
    T* to = static_cast<T*>(outputs[0]->data());
    parallel_range(k, std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(width, 1)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t row = positions(*index)[i];
                       if (a.without_padding && row == a.padding_idx)
                         std::fill_n(to + i * width, width, T(0));
                       else
                         std::copy_n(from + row * width, width, to + i * width);
                     }
                   });
  });
}

void embedding_backward(const Call& call, TensorImpl* const* outputs) {
  const ops::EmbeddingAttrs& a = call.attrs_as<ops::EmbeddingBackward::Attrs>().embedding;
  const LocalCopy index(call.operands[0]), g(call.operands[1]);
  clear(*outputs[0]);
  add_at(call, *index, *g, Entries(outputs[0]->shape(), 0), *outputs[0], a.padding_idx, a.scale_grad_by_freq);
}

// Row r of a table plus the sum of the rows of g that name it, as if that sum had stood in a table of zeros: added in
// order of position from 0 on, divided and rounded before it is added. So if no row names r, 0 is added, which turns
// -0 into 0; since -0 is rare, the row is only searched for it, and nothing is written without one.
template <class T>
class RowSums {
 public:
  RowSums(const Buckets& buckets, const T* g, int64_t width, bool mean, std::span<Accumulator<T>> sum)
      : buckets_(buckets), g_(g), width_(width), mean_(mean), sum_(sum) {}

  void add_to(T* row, int64_t r) const {
    const int64_t n = buckets_.count(r);
    if (n == 0) return add_zero(row);
    std::ranges::fill(sum_, A(0));
    for (int64_t b = buckets_.begin[r]; b < buckets_.begin[r + 1]; ++b) {
      const T* from = g_ + buckets_.order[b] * width_;
      for (int64_t i = 0; i < width_; ++i) sum_[i] = sum_[i] + static_cast<A>(from[i]);
    }
    for (int64_t i = 0; i < width_; ++i) {
      const T sum = static_cast<T>(mean_ ? sum_[i] / static_cast<A>(n) : sum_[i]);
      row[i] = static_cast<T>(static_cast<A>(row[i]) + static_cast<A>(sum));
    }
  }

 private:
  using A = Accumulator<T>;

  void add_zero(T* row) const {
    if constexpr (!std::is_integral_v<T>) {
      bool any = false;
      for (int64_t i = 0; i < width_; ++i) any |= is_minus_zero(row[i]);
      for (int64_t i = 0; i < width_ && any; ++i) row[i] = is_minus_zero(row[i]) ? T(0) : row[i];
    }
  }
  static bool is_minus_zero(T x) {
    using Narrow = std::conditional_t<sizeof(T) == 1, uint8_t, uint16_t>;
    using Wide = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    using Bits = std::conditional_t<sizeof(T) <= 2, Narrow, Wide>;
    return std::bit_cast<Bits>(x) == static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  }

  const Buckets& buckets_;
  const T* g_;
  int64_t width_;
  bool mean_;
  std::span<A> sum_;
};

void embedding_add(const Call& call, TensorImpl* const* outputs) {
  const ops::EmbeddingAttrs& a = call.attrs_as<ops::EmbeddingAttrs>();
  const LocalCopy index(call.operands[1]), g(call.operands[2]);
  TensorImpl& out = *outputs[0];
  const int64_t rows = out.shape()[0].raw(), width = out.shape()[1].raw(), k = index->numel().raw();
  check_range(call, *index, rows);
  if (!measuring() && out.data() != call.operands[0]->data()) convert_copy(*call.operands[0], out);
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    const Buckets buckets(positions(*index), k, rows, a.padding_idx);
    const int64_t grain = std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(width, 1));
    const ThreadScratch<Accumulator<T>> sums(width, ceil_div(rows, grain));
    parallel_range(rows, grain, [&](int64_t begin, int64_t end) {
      const RowSums<T> all(buckets, static_cast<const T*>(g->data()), width, a.scale_grad_by_freq,
                           {sums.mine(), static_cast<size_t>(width)});
      for (int64_t r = begin; r < end; ++r) all.add_to(static_cast<T*>(out.data()) + r * width, r);
    });
  });
}

}  // namespace

void add_entry_kernels(KernelTable& table) {
  table.set(&ops::info<ops::IndexSelect>, index_select, KernelTable::kScratch);
  table.set(&ops::info<ops::IndexSelectBackward>, index_select_backward, KernelTable::kScratch);
  table.set(&ops::info<ops::IndexAdd>, index_add, KernelTable::kScratch);
  table.set(&ops::info<ops::IndexCopy>, index_copy, KernelTable::kScratch);
  table.set(&ops::info<ops::Embedding>, embedding, KernelTable::kScratch);
  table.set(&ops::info<ops::EmbeddingBackward>, embedding_backward, KernelTable::kScratch);
  table.set(&ops::info<ops::EmbeddingAdd>, embedding_add, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
