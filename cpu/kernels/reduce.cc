// Kernels of reductions: the reduction of the rows (cpu/kernels/row_reducer.h), and the results computed from it.
//
// A kernel names a Reduction and a function of the Partial that was found in a row; reduce_into() does the
// rest for every dtype. Sums and products down columns go by cpu/kernels/reduce_columns.cc where they can,
// all and any of neighbouring bools by join_columns(). row_value() tells fused groups the same pairs. Start
// reading at sum_kernel.
#include "cpu/kernels/reduce.h"

#include <algorithm>
#include <cmath>

#include "cpu/kernels/row_reducer.h"
#include "cpu/kernels/table.h"
#include "ops/reduce.h"

namespace retrograd::inline v0::cpu {
namespace {

// out[first + k] = results[k], converted.
template <class R>
void store(const R* results, size_t count, TensorImpl& out, int64_t first) {
  dispatch(out.dtype(), [&]<class To>(std::type_identity<To>) {
    To* o = static_cast<To*>(out.data()) + first;
    for (size_t k = 0; k < count; ++k) o[k] = convert<To>(results[k]);
  });
}

// Reduces and stores value(partial) for each row. `value` gives double, int64_t or bool.
template <class T, class F>
void reduce_rows_into(const TensorImpl& x, const IntList& dims, Reduction kind, double p, TensorImpl& out,
                      const F& value) {
  using V = typename RowReducer<T>::V;
  using R = std::conditional_t<std::is_floating_point_v<decltype(value(Partial<V>()))>, double, int64_t>;
  RowReducer<T>(x, dims, kind, p).run([&](int64_t first, std::span<const Partial<V>> found) {
    R results[kMostRows];
    for (size_t k = 0; k < found.size(); ++k) results[k] = static_cast<R>(value(found[k]));
    store(results, found.size(), out, first);
  });
}
template <class F>
void reduce_into(const TensorImpl& x, const IntList& dims, Reduction kind, double p, TensorImpl& out,
                 const F& value) {
  dispatch_compute(
      x.dtype(), [&]<class T>(std::type_identity<T>) { reduce_rows_into<T>(x, dims, kind, p, out, value); });
}

const IntList& dims_of(const Call& call) { return call.attrs_as<ops::ReduceAttrs>().dim; }

template <Reduction kind>
void plain_kernel(const Call& call, TensorImpl* const* outputs) {
  reduce_into(*call.operands[0], dims_of(call), kind, 0, *outputs[0], [](const auto& p) { return p.value; });
}

double plain_value(const Partial<double>& found, int64_t) { return found.value; }
double mean_value(const Partial<double>& found, int64_t n) { return found.value / static_cast<double>(n); }

void sum_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  if (!sum_columns(x, dims_of(call), 1, *outputs[0])) plain_kernel<Reduction::sum>(call, outputs);
}

void mean_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  const int64_t n = ops::reduced_numel(x.shape(), dims_of(call)).raw();
  if (sum_columns(x, dims_of(call), static_cast<double>(n), *outputs[0])) return;
  dispatch_floating(x.dtype(), [&]<class T>(std::type_identity<T>) {
    reduce_rows_into<T>(x, dims_of(call), Reduction::sum, 0, *outputs[0],
                        [n](const Partial<double>& found) { return mean_value(found, n); });
  });
}

void prod_kernel(const Call& call, TensorImpl* const* outputs) {
  if (!multiply_columns(*call.operands[0], dims_of(call), *outputs[0]))
    plain_kernel<Reduction::prod>(call, outputs);
}

template <Reduction kind>
void index_kernel(const Call& call, TensorImpl* const* outputs) {
  reduce_into(*call.operands[0], dims_of(call), kind, 0, *outputs[0], [](const auto& p) { return p.index; });
}

template <Reduction kind>
void extreme_along_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  int64_t* indices = static_cast<int64_t*>(outputs[1]->data());
  dispatch_compute(x.dtype(), [&]<class T>(std::type_identity<T>) {
    using V = typename RowReducer<T>::V;
    RowReducer<T>(x, dims_of(call), kind, 0).run([&](int64_t first, std::span<const Partial<V>> found) {
      V values[kMostRows];
      for (size_t k = 0; k < found.size(); ++k) {
        values[k] = found[k].value;
        indices[first + static_cast<int64_t>(k)] = found[k].index;
      }
      store(values, found.size(), *outputs[0], first);
    });
  });
}

template <bool root>
void variance_kernel(const Call& call, TensorImpl* const* outputs) {
  const double correction = call.attrs_as<ops::VarianceAttrs>().correction.to_double();
  reduce_into(*call.operands[0], dims_of(call), Reduction::moments, 0, *outputs[0],
              [correction](const auto& p) {
                const double var = ops::variance_of(p, static_cast<double>(p.count), correction);
                return root ? ops::scaled_by_exponent(std::sqrt(var), p.exponent)
                            : ops::scaled_by_exponent(var, 2 * p.exponent);
              });
}

void logsumexp_kernel(const Call& call, TensorImpl* const* outputs) {
  reduce_into(*call.operands[0], dims_of(call), Reduction::logsumexp, 0, *outputs[0], [](const auto& p) {
    return ops::log_sum_exp_of(p);
  });
}

Reduction norm_reduction(double ord) {
  if (std::isinf(ord)) return ord > 0 ? Reduction::abs_max : Reduction::abs_min;
  if (ord == 0) return Reduction::nonzero;
  return ord == 1 ? Reduction::abs_sum : ord == 2 ? Reduction::square_sum : Reduction::power_sum;
}

void norm_kernel(const Call& call, TensorImpl* const* outputs) {
  const double ord = call.attrs_as<ops::NormAttrs>().ord.to_double();
  const Reduction kind = norm_reduction(ord);
  reduce_into(*call.operands[0], dims_of(call), kind, ord, *outputs[0], [&](const auto& p) {
    const double v = static_cast<double>(p.value);
    if (kind == Reduction::square_sum) return ops::scaled_by_exponent(std::sqrt(v), p.exponent);
    return kind == Reduction::power_sum ? ops::scaled_by_exponent(std::pow(v, 1 / ord), p.exponent) : v;
  });
}

// Contiguous bools are joined row by row, as bytes 0 and 1. For others returns false, with nothing done.
template <bool every>
bool join_columns(const TensorImpl& x, const IntList& dims, TensorImpl& out) {
  constexpr int64_t kStrip = 4096;
  if (x.dtype() != kBool || x.numel().raw() == 0) return false;
  const Rows rows(x, dims);
  const Layout& kept = rows.kept();
  const int64_t columns = kept.size[kept.rank - 1], n = rows.length();
  if (kept.stride[kept.rank - 1] != 1 || columns < 16) return false;
  const int64_t block = std::max<int64_t>(64, 2 * kRowGrain / std::min(columns, kStrip)),
                blocks = ceil_div(n, block);
  const int64_t strips = ceil_div(columns, kStrip);
  const Scratch<uint8_t> found(blocks * rows.count());
  const auto join = [](const uint8_t* from, int64_t count, uint8_t* to) {
    for (int64_t j = 0; j < count; ++j) to[j] = every ? to[j] & from[j] : to[j] | from[j];
  };
  // f(the first row's number, rows) for each strip.
  const auto for_strips = [&](int64_t pieces, const auto& f) {
    parallel_for(rows.count() / columns * strips * pieces, [&](int64_t task) {
      const int64_t strip = task / pieces, skip = strip % strips * kStrip;
      f(strip / strips * columns + skip, std::min(kStrip, columns - skip), task % pieces);
    });
  };
  for_strips(blocks, [&](int64_t first, int64_t count, int64_t i) {
    uint8_t* const to = &found[i * rows.count() + first];
    std::fill_n(to, count, every);
    const uint8_t* const from = static_cast<const uint8_t*>(x.data()) + kept.offset(first);
    rows.along().for_runs(i * block, std::min(n, (i + 1) * block),
                          [&](int64_t offset, int64_t stride, int64_t run, int64_t) {
                            for (int64_t k = 0; k < run; ++k) join(from + offset + k * stride, count, to);
                          });
  });
  for_strips(1, [&](int64_t first, int64_t count, int64_t) {
    uint8_t* const to = static_cast<uint8_t*>(out.data()) + first;
    std::copy_n(&found[first], count, to);
    for (int64_t i = 1; i < blocks; ++i) join(&found[i * rows.count() + first], count, to);
  });
  return true;
}

template <bool every>
void truth_kernel(const Call& call, TensorImpl* const* outputs) {
  if (join_columns<every>(*call.operands[0], dims_of(call), *outputs[0])) return;
  const int64_t n = ops::reduced_numel(call.operands[0]->shape(), dims_of(call)).raw();
  reduce_into(*call.operands[0], dims_of(call), Reduction::nonzero, 0, *outputs[0], [n](const auto& p) {
    const int64_t count = static_cast<int64_t>(p.value);
    return every ? count == n : count > 0;
  });
}

}  // namespace

const RowValue* row_value(const OpInfo* op) {
  static constexpr RowValue sum{Reduction::sum, plain_value}, mean{Reduction::sum, mean_value},
      max{Reduction::max, plain_value}, min{Reduction::min, plain_value};
  return op == &ops::info<ops::Sum>    ? &sum
         : op == &ops::info<ops::Mean> ? &mean
         : op == &ops::info<ops::Amax> ? &max
         : op == &ops::info<ops::Amin> ? &min
                                       : nullptr;
}

void merge_partials(Reduction kind, Partial<double>& into, const Partial<double>& next) {
  merge(kind, 0, into, next);
}

void add_reduce_kernels(KernelTable& table) {
  using namespace ops;
  table.set(&info<Sum>, sum_kernel, KernelTable::kScratch);
  table.set(&info<Mean>, mean_kernel, KernelTable::kScratch);
  table.set(&info<Prod>, prod_kernel, KernelTable::kScratch);
  table.set(&info<Amax>, plain_kernel<Reduction::max>, KernelTable::kScratch);
  table.set(&info<Amin>, plain_kernel<Reduction::min>, KernelTable::kScratch);
  table.set(&info<MaxAlong>, extreme_along_kernel<Reduction::argmax>, KernelTable::kScratch);
  table.set(&info<MinAlong>, extreme_along_kernel<Reduction::argmin>, KernelTable::kScratch);
  table.set(&info<Argmax>, index_kernel<Reduction::argmax>, KernelTable::kScratch);
  table.set(&info<Argmin>, index_kernel<Reduction::argmin>, KernelTable::kScratch);
  table.set(&info<Var>, variance_kernel<false>, KernelTable::kScratch);
  table.set(&info<Std>, variance_kernel<true>, KernelTable::kScratch);
  table.set(&info<LogSumExp>, logsumexp_kernel, KernelTable::kScratch);
  table.set(&info<VectorNorm>, norm_kernel, KernelTable::kScratch);
  table.set(&info<All>, truth_kernel<true>, KernelTable::kScratch);
  table.set(&info<Any>, truth_kernel<false>, KernelTable::kScratch);
  table.set(&info<CountNonzero>, plain_kernel<Reduction::nonzero>, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
