// Reductions of 64-bit integers for one instruction-set level: see cpu/kernels/levels/reduce_rows.h.
//
// Sums and products wrap around, as PyTorch's do. A reduction is a fold of one function over another of the
// elements (with_fold), kLanes of them side by side, which the compiler turns into registers. What only
// floats have, such as column sums and pieces, is null in the table. Only plain loops here: nothing of the
// standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/levels/reduce_rows.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

constexpr int kLanes = 32;  // side by side, so that no addition waits for another

bool is_largest(Reduction kind) {
  return kind == Reduction::max || kind == Reduction::argmax || kind == Reduction::abs_max;
}
bool is_least(Reduction kind) {
  return kind == Reduction::min || kind == Reduction::argmin || kind == Reduction::abs_min;
}
bool wants_place(Reduction kind) { return kind == Reduction::argmax || kind == Reduction::argmin; }

// run(f, g, first): the reduction is f over g of the elements, from `first` on.
template <class F>
[[gnu::always_inline]] inline void with_fold(Reduction kind, const F& run) {
  const auto wrapped = [](uint64_t v) { return static_cast<int64_t>(v); };
  const auto bits = [](int64_t v) { return static_cast<uint64_t>(v); };
  const auto self = [](int64_t v) { return v; };
  const auto sum = [&](int64_t a, int64_t b) { return wrapped(bits(a) + bits(b)); };
  if (is_largest(kind))
    run([](int64_t a, int64_t b) { return a > b ? a : b; }, self, INT64_MIN);
  else if (is_least(kind))
    run([](int64_t a, int64_t b) { return a < b ? a : b; }, self, INT64_MAX);
  else if (kind == Reduction::prod)
    run([&](int64_t a, int64_t b) { return wrapped(bits(a) * bits(b)); }, self, 1);
  else if (kind == Reduction::nonzero)
    run(
        sum, [](int64_t v) { return static_cast<int64_t>(v != 0); }, 0);
  else
    run(sum, self, 0);
}

void reduce(const int64_t* x, int64_t n, Reduction kind, double, Partial<int64_t>* out) {
  out->count = n;
  with_fold(kind, [&](const auto& f, const auto& g, int64_t first) {
    int64_t lanes[kLanes];
    for (int64_t& v : lanes) v = first;
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (int k = 0; k < kLanes; ++k) lanes[k] = f(lanes[k], g(x[i + k]));
    for (; i < n; ++i) lanes[0] = f(lanes[0], g(x[i]));
    for (int k = 1; k < kLanes; ++k) lanes[0] = f(lanes[0], lanes[k]);
    out->value = lanes[0];
  });
  while (wants_place(kind) && x[out->index] != out->value) ++out->index;
}

void reduce_columns(const int64_t* x, int64_t rows, int64_t stride, int64_t columns, Reduction kind, double,
                    Partial<int64_t>* out) {
  with_fold(kind, [&](const auto& f, const auto& g, int64_t first) {
    int64_t value[kMostRows];
    for (int64_t j = 0; j < columns; ++j) value[j] = first;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) value[j] = f(value[j], g(x[i * stride + j]));
    for (int64_t j = 0; j < columns; ++j) out[j].value = value[j];
  });
  for (int64_t j = 0; j < columns; ++j) {
    out[j].count = rows;
    while (wants_place(kind) && x[out[j].index * stride + j] != out[j].value) ++out[j].index;
  }
}

void reduce_rows(const int64_t* x, int64_t rows, int64_t stride, int64_t n, Reduction kind, double p,
                 Partial<int64_t>* out) {
  for (int64_t i = 0; i < rows; ++i) reduce(x + i * stride, n, kind, p, out + i);
}

}  // namespace

template <>
const ReduceTable<int64_t>& reduce_table<int64_t>() {
  static constexpr ReduceTable<int64_t> table{reduce,  reduce_columns, nullptr, nullptr, nullptr,
                                              nullptr, reduce_rows,    nullptr, nullptr, nullptr};
  return table;
}

}  // namespace retrograd::cpu::RG_ISA
