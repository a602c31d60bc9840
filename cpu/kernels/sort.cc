// Kernel of sort and topk: each line along the dim is gathered, ordered by (value, place) and its first entries written.
// Places break ties, so the order is stable however it is found; nan counts as the largest value.
#include "ops/sort.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/kernels/table.h"
#include "cpu/parallel.h"

namespace retrograd::cpu {
namespace {

constexpr int64_t kGrain = 16384;

template <class T>
bool is_less(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return a < b;
  else
    return std::isnan(b) ? !std::isnan(a) : a < b;
}

template <class T>
struct Entry {
  T value;
  int64_t place;
};

template <class T>
void order(std::vector<Entry<T>>& line, int64_t count, bool descending) {
  const auto before = [descending](const Entry<T>& a, const Entry<T>& b) {
    const bool less = is_less(a.value, b.value), greater = is_less(b.value, a.value);
    return less || greater ? (descending ? greater : less) : a.place < b.place;
  };
  if (count < static_cast<int64_t>(line.size()))
    std::partial_sort(line.begin(), line.begin() + count, line.end(), before);
  else
    std::sort(line.begin(), line.end(), before);
}

// Elements are compared as V: 16- and 8-bit floats as float.
template <class T, class V>
void sort_lines(const TensorImpl& x, TensorImpl& values, TensorImpl& indices, int64_t dim, bool descending) {
  const int d = static_cast<int>(dim);
  const int64_t length = x.shape()[d].raw(), count = values.shape()[d].raw();
  const int64_t lines = length ? x.numel().raw() / length : 0, x_step = x.strides()[d],
                step = values.strides()[d];
  parallel_range(lines, std::max<int64_t>(1, kGrain / std::max<int64_t>(length, 1)),
                 [&](int64_t begin, int64_t end) {
                   std::vector<Entry<V>> line(static_cast<size_t>(length));
                   for (int64_t l = begin; l < end; ++l) {
                     int64_t rest = l, from = 0, to = 0;
                     for (int i = x.rank() - 1; i >= 0; --i) {
                       if (i == d) continue;
                       const int64_t size = x.shape()[i].raw(), at = rest % size;
                       rest /= size;
                       from += at * x.strides()[i];
                       to += at * values.strides()[i];
                     }
                     const T* in = static_cast<const T*>(x.data()) + from;
                     for (int64_t i = 0; i < length; ++i)
                       line[static_cast<size_t>(i)] = {static_cast<V>(in[i * x_step]), i};
                     order(line, count, descending);
                     T* out = static_cast<T*>(values.data()) + to;
                     auto* places = static_cast<int64_t*>(indices.data()) + to;
                     for (int64_t i = 0; i < count; ++i) {
                       out[i * step] = in[line[static_cast<size_t>(i)].place * x_step];
                       places[i * step] = line[static_cast<size_t>(i)].place;
                     }
                   }
                 });
}

void sort(const Call& call, TensorImpl* const* outputs) {
  const ops::Sort::Attrs& a = call.attrs_as<ops::Sort::Attrs>();
  const TensorImpl& x = *call.operands[0];
  if (outputs[0]->numel().raw() == 0) return;
  dispatch(x.dtype(), [&]<class T>(std::type_identity<T>) {
    using V = std::conditional_t<!std::is_integral_v<T> && sizeof(T) < 4, float, T>;
    sort_lines<T, V>(x, *outputs[0], *outputs[1], a.dim, a.descending);
  });
}

}  // namespace

void add_sort_kernels(KernelTable& table) { table.set(&ops::info<ops::Sort>, sort); }

}  // namespace retrograd::cpu
