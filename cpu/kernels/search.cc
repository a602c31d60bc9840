// Binary search in sorted sequences on the CPU, values in parallel. The sequences are read as rows in the type that
// their dtype is compared in; a sorter is checked before it is used.
#include "ops/search.h"

#include <algorithm>

#include <fmt/format.h>

#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kSearchGrain = 2048;  // values a chunk

// The first of n entries for which before(entry) does not hold. Written so that a NaN is before nothing and after all,
// even in a sequence that is not sorted.
template <class F>
int64_t first_not(int64_t n, const F& before) {
  int64_t begin = 0, end = n;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (before(middle))
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

template <class T>
int64_t place_of(T v, const T* sequence, const int64_t* sorter, int64_t n, bool right) {
  const auto entry = [&](int64_t i) { return sequence[sorter ? sorter[i] : i]; };
  if (right) return first_not(n, [&](int64_t i) { return !(entry(i) > v); });
  return first_not(n, [&](int64_t i) { return !(entry(i) >= v); });
}

void check_sorter(const Call& call, const int64_t* sorter, int64_t count, int64_t n) {
  const auto* const wrong = std::find_if(sorter, sorter + count, [n](int64_t i) { return i < 0 || i >= n; });
  if (wrong != sorter + count)
    fail_call(call, Category::index_out_of_range,
              fmt::format("the sorter has {}, for {} entries", *wrong, n));
}

void search(const Call& call, TensorImpl* const* outputs) {
  const auto& a = call.attrs_as<ops::SearchSorted::Attrs>();
  const ScalarType dtype = compute_type(call.operands[0]->dtype());
  const LocalCopy sequences(call.operands[0], dtype), values(call.operands[1], dtype),
      sorter(call.operands[2]);
  const LocalResult places(*outputs[0], kInt64);
  if (measuring()) return;
  const int64_t n = sequences->shape().back().raw(), count = values->numel().raw();
  const int64_t* const order = sorter.values<int64_t>();
  if (order) check_sorter(call, order, sequences->numel().raw(), n);
  // Values of a sequence: all of them, or a row.
  const int64_t row = sequences->rank() == 1 ? count : values->shape().back().raw();
  auto* const out = static_cast<int64_t*>(places->data());
  dispatch_compute(dtype, [&]<class T>(std::type_identity<T>) {
    const T *const entries = sequences.values<T>(), *const v = values.values<T>();
    parallel_range(count, kSearchGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t skip = i / row * n;
        out[i] = place_of(v[i], entries + skip, order ? order + skip : nullptr, n, a.right);
      }
    });
  });
  places.finish();
}

}  // namespace

void add_search_kernels(KernelTable& table) {
  table.set(&ops::info<ops::SearchSorted>, search, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
