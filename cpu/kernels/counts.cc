// Histograms on the CPU: elements are counted in pieces, each with counts of its own, which are added.
#include "ops/counts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kLeastPiece = 32768, kMostPieces = 32;  // elements of a piece; pieces

struct Range {
  double low, high;
};

// That of the attributes, or of the elements if this is empty.
template <class T>
Range range_of(const Call& call, const T* x, int64_t n) {
  const auto& a = call.attrs_as<ops::Histc::Attrs>();
  Range r{a.min.to_double(), a.max.to_double()};
  if (r.low == r.high && n > 0) {
    T low = x[0], high = x[0];
    for (int64_t i = 0; i < n; ++i) {  // a NaN stays
      low = !(x[i] >= low) ? x[i] : low;
      high = !(x[i] <= high) ? x[i] : high;
      if (x[i] != x[i]) break;
    }
    r = {static_cast<double>(low), static_cast<double>(high)};
  }
  if (!std::isfinite(r.high - r.low))
    fail_call(call, Category::bad_argument, fmt::format("the elements are in [{}, {}]", r.low, r.high));
  return r.low == r.high ? Range{r.low - 1, r.high + 1} : r;
}

template <class T>
void count(const T* x, int64_t n, Range r, int64_t bins, int64_t* counts) {
  const double width = r.high - r.low;
  for (int64_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(x[i]);
    if (!(v >= r.low && v <= r.high)) continue;
    const auto bin = static_cast<int64_t>((v - r.low) / width * static_cast<double>(bins));
    ++counts[std::min(bin, bins - 1)];
  }
}

void histc(const Call& call, TensorImpl* const* outputs) {
  const int64_t bins = call.attrs_as<ops::Histc::Attrs>().bins, n = call.operands[0]->numel().raw();
  const LocalCopy x(call.operands[0], compute_type(call.operands[0]->dtype()));
  const int64_t piece = std::max({kLeastPiece, bins, ceil_div(n, kMostPieces)}),
                pieces = std::max<int64_t>(1, ceil_div(n, piece));
  const Scratch<int64_t> counts(Dim::checked_mul(pieces, bins));
  if (measuring()) return;
  std::fill_n(counts.data(), pieces * bins, 0);
  dispatch_floating(x->dtype(), [&]<class T>(std::type_identity<T>) {
    const Range range = range_of(call, x.values<T>(), n);
    parallel_for(ceil_div(n, piece), [&](int64_t p) {
      count(x.values<T>() + p * piece, std::min(piece, n - p * piece), range, bins, &counts[p * bins]);
    });
  });
  dispatch(outputs[0]->dtype(), [&]<class D>(std::type_identity<D>) {
    D* const out = static_cast<D*>(outputs[0]->data());
    for (int64_t b = 0; b < bins; ++b) {
      int64_t sum = 0;
      for (int64_t p = 0; p < pieces; ++p) sum += counts[p * bins + b];
      out[b] = convert<D>(sum);
    }
  });
}

}  // namespace

void add_counts_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Histc>, histc, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
