// Kernels of ops/embedding_bag.h.
//
// Bags run in parallel, each by one thread, and add rows in order of position, 16-bit ones in float. Indices and
// offsets are checked before.
#include "ops/embedding_bag.h"

#include <algorithm>

#include <fmt/format.h>

#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"

namespace retrograd::inline v0::cpu {
namespace {

// The entries of all bags, checked.
class Bags {
 public:
  explicit Bags(const Call& call)
      : attrs(call.attrs_as<ops::EmbeddingBagAttrs>()),
        entries(call.operands[0]->numel().raw()),
        width(call.operands[1]->shape()[1].raw()),
        index_(call.operands[0]),
        offsets_(call.operands[2]) {
    const auto& shape = call.operands[0]->shape();
    length_ = offsets_ ? 0 : shape[1].raw();
    offset_count_ = offsets_ ? offsets_->numel().raw() : 0;
    count = offsets_ ? offset_count_ - attrs.include_last_offset : shape[0].raw();
    if (measuring()) return;
    check_index(call, call.operands[1]->shape()[0].raw());
    if (offsets_) check_offsets(call);
  }

  const ops::EmbeddingBagAttrs& attrs;
  int64_t count, entries, width;

  int64_t begin(int64_t bag) const { return offsets_ ? offsets_.values<int64_t>()[bag] : bag * length_; }
  int64_t end(int64_t bag) const {
    if (!offsets_) return (bag + 1) * length_;
    return bag + 1 < offset_count_ ? offsets_.values<int64_t>()[bag + 1] : entries;
  }
  int64_t row(int64_t entry) const { return index_.values<int64_t>()[entry]; }
  bool is_padding(int64_t entry) const { return row(entry) == attrs.embedding.padding_idx; }
  int64_t grain() const {
    const int64_t cost =
        std::max<int64_t>(1, width * std::max<int64_t>(1, entries / std::max<int64_t>(1, count)));
    return std::max<int64_t>(1, kRowGrain / cost);
  }

 private:
  void check_index(const Call& call, int64_t rows) const {
    for (int64_t i = 0; i < entries; ++i)
      if (row(i) < 0 || row(i) >= rows)
        fail_call(call, Category::index_out_of_range,
                  fmt::format("index {} at place {} is not one of {} rows", row(i), i, rows));
  }
  void check_offsets(const Call& call) const {
    const int64_t* offsets = offsets_.values<int64_t>();
    if (offset_count_ > 0 && offsets[0] != 0)
      fail_call(call, Category::bad_argument, fmt::format("the first offset is {}, not 0", offsets[0]));
    for (int64_t b = 1; b < offset_count_; ++b)
      if (offsets[b] < offsets[b - 1])
        fail_call(call, Category::bad_argument,
                  fmt::format("offset {} at place {} is less than the one before", offsets[b], b));
    if (offset_count_ > 0 && offsets[offset_count_ - 1] > entries)
      fail_call(call, Category::index_out_of_range,
                fmt::format("offset {} for {} entries", offsets[offset_count_ - 1], entries));
  }

  const LocalCopy index_, offsets_;
  int64_t length_, offset_count_;
};

// to += factor * row.
template <class D, class T>
void add_row(const D* row, T factor, int64_t width, T* to) {
  for (int64_t i = 0; i < width; ++i) to[i] += factor * static_cast<T>(row[i]);
}

void embedding_bag(const Call& call, TensorImpl* const* outputs) {
  const Bags bags(call);
  dispatch(outputs[0]->dtype(), [&]<class D>(std::type_identity<D>) {
    if constexpr (!std::is_integral_v<D>) {
      using T = ComputeOf<D>;
      const LocalCopy weight(call.operands[1]), factors(call.operands[3], dtype_of<T>());
      const int64_t grain = bags.grain();
      const ThreadScratch<T> room(bags.width, ceil_div(bags.count, grain));
      if (measuring()) return;
      auto* const bag_of = static_cast<int64_t*>(outputs[1]->data());
      T* const scale_of = static_cast<T*>(outputs[2]->data());
      std::fill_n(bag_of, bags.entries, int64_t{0});
      std::fill_n(scale_of, bags.entries, T(0));
      parallel_range(bags.count, grain, [&](int64_t first, int64_t last) {
        T* const sum = room.mine();
        for (int64_t bag = first; bag < last; ++bag) {
          const int64_t begin = bags.begin(bag), end = bags.end(bag);
          int64_t counted = 0;
          for (int64_t i = begin; i < end; ++i) counted += !bags.is_padding(i);
          const T scale = bags.attrs.is_mean ? 1 / static_cast<T>(std::max<int64_t>(1, counted)) : T(1);
          std::fill_n(sum, bags.width, T(0));
          for (int64_t i = begin; i < end; ++i) {
            bag_of[i] = bag;
            if (bags.is_padding(i)) continue;
            scale_of[i] = scale;
            add_row(weight.values<D>() + bags.row(i) * bags.width, factors ? factors.values<T>()[i] : T(1),
                    bags.width, sum);
          }
          D* const y = static_cast<D*>(outputs[0]->data()) + bag * bags.width;
          const T divisor = bags.attrs.is_mean ? static_cast<T>(std::max<int64_t>(1, counted)) : T(1);
          for (int64_t k = 0; k < bags.width; ++k) y[k] = convert<D>(sum[k] / divisor);
        }
      });
    }
  });
}

void embedding_bag_max(const Call& call, TensorImpl* const* outputs) {
  const Bags bags(call);
  dispatch(outputs[0]->dtype(), [&]<class D>(std::type_identity<D>) {
    if constexpr (!std::is_integral_v<D>) {
      using T = ComputeOf<D>;
      const LocalCopy weight(call.operands[1]);
      parallel_range(bags.count, bags.grain(), [&](int64_t first, int64_t last) {
        for (int64_t bag = first; bag < last; ++bag) {
          D* const y = static_cast<D*>(outputs[0]->data()) + bag * bags.width;
          int64_t* const taken = static_cast<int64_t*>(outputs[1]->data()) + bag * bags.width;
          std::fill_n(y, bags.width, D(0));
          std::fill_n(taken, bags.width, int64_t{-1});
          for (int64_t i = bags.begin(bag); i < bags.end(bag); ++i) {
            if (bags.is_padding(i)) continue;
            const D* const row = weight.values<D>() + bags.row(i) * bags.width;
            for (int64_t k = 0; k < bags.width; ++k)
              if (taken[k] < 0 || static_cast<T>(row[k]) > static_cast<T>(y[k])) {
                y[k] = row[k];
                taken[k] = bags.row(i);
              }
          }
        }
      });
    }
  });
}

}  // namespace

void add_embedding_bag_kernels(KernelTable& table) {
  table.set(&ops::info<ops::EmbeddingBag>, embedding_bag, KernelTable::kScratch);
  table.set(&ops::info<ops::EmbeddingBagMax>, embedding_bag_max, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
