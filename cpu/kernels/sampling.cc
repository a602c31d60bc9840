// Kernels of ops/sampling.h.
//
// A permutation is made by exchanges (Fisher and Yates): place i is exchanged with one of the places from i
// on, which number i of the stream chooses. It is one sequence, done by one thread. multinomial with
// replacement looks up uniforms in the running sums of a row's weights. Without replacement each category
// gets an arrival time, exponential with its weight as the rate; the first k to arrive are distributed as k
// draws one after the other (Efraimidis and Spirakis, Weighted random sampling with a reservoir, 2006). Rows
// are computed in parallel, in double.
#include "ops/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "cpu/kernels/layout.h"
#include "cpu/kernels/levels/random_rows.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"
#include "engine/philox.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kSamplingGrain = 16384;  // weights and samples a chunk

// floor(range * bits / 2^64): a bias of at most range / 2^64.
int64_t below(int64_t range, uint64_t bits) {
  return static_cast<int64_t>(static_cast<unsigned __int128>(bits) * static_cast<uint64_t>(range) >> 64);
}

void randperm_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::RandPerm::Attrs>();
  TensorImpl& out = *outputs[0];
  const int64_t n = out.numel().raw();
  if (n == 0) return;
  const Scratch<int64_t> places(n);
  if (measuring()) return;
  std::iota(places.data(), places.data() + n, 0);
  constexpr int64_t kTile = 1024;
  uint32_t words[2 * kTile];
  for (int64_t at = 0; at + 1 < n; at += kTile) {
    const int64_t count = std::min(kTile, n - 1 - at);
    random_table().words({attrs.draw.seed_bits(), attrs.draw.offset_bits()}, static_cast<uint64_t>(at) / 2,
                         (count + 1) / 2, words);
    for (int64_t k = 0; k < count; ++k) {
      const uint64_t bits = uint64_t{words[2 * k]} << 32 | words[2 * k + 1];
      std::swap(places[at + k], places[at + k + below(n - at - k, bits)]);
    }
  }
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    scatter(places.data(), static_cast<T*>(out.data()), Layout(out), 0, n);
  });
}

double uniform(const ops::Draw& draw, int64_t i) {
  return uniform_double(draw.seed_bits(), draw.offset_bits(), static_cast<uint64_t>(i));
}

// The weights of a row, and working memory of as many elements.
struct Row {
  std::span<double> weights;
  double* keys;
  int64_t* places;
};

void check_weights(const Call& call, std::span<const double> weights) {
  double sum = 0;
  for (double w : weights) {
    if (!(w >= 0 && std::isfinite(w)))
      fail_call(call, Category::bad_argument, fmt::format("the weight {} is negative, nan or infinite", w));
    sum += w;
  }
  if (!(sum > 0)) fail_call(call, Category::bad_argument, "the weights of a row sum to zero");
}

// Sample j is the first category whose running sum is above a number; a category of weight zero never is.
void with_replacement(const ops::Draw& draw, int64_t first, const Row& row, int64_t* samples, int64_t k) {
  const auto n = static_cast<int64_t>(row.weights.size());
  std::partial_sum(row.weights.begin(), row.weights.end(), row.keys);
  int64_t last = n - 1;
  while (row.weights[static_cast<size_t>(last)] == 0) --last;
  for (int64_t j = 0; j < k; ++j) {
    const double at = uniform(draw, first + j) * row.keys[n - 1];
    const int64_t place = std::upper_bound(row.keys, row.keys + n, at) - row.keys;
    samples[j] = std::min(place, last);  // rounding may give the whole sum
  }
}

void without_replacement(const Call& call, const ops::Draw& draw, int64_t first, const Row& row,
                         int64_t* samples, int64_t k) {
  int64_t count = 0;
  for (size_t i = 0; i < row.weights.size(); ++i) {
    if (row.weights[i] == 0) continue;
    row.keys[i] = -std::log1p(-uniform(draw, first + static_cast<int64_t>(i))) / row.weights[i];
    row.places[count++] = static_cast<int64_t>(i);
  }
  if (count < k)
    fail_call(call, Category::bad_argument,
              fmt::format("{} samples without replacement of {} weights above zero", k, count));
  const auto earlier = [&](int64_t a, int64_t b) {
    const double x = row.keys[a], y = row.keys[b];
    return x < y || (x == y && a < b);
  };
  std::partial_sort(row.places, row.places + k, row.places + count, earlier);
  std::copy_n(row.places, k, samples);
}

template <class T>
void sample_rows(const Call& call, TensorImpl& out) {
  const auto& attrs = call.attrs_as<ops::Multinomial::Attrs>();
  const TensorImpl& weights = *call.operands[0];
  const Layout layout(weights);
  const int64_t n = weights.shape().back().raw(), k = out.shape().back().raw();
  const int64_t rows = weights.rank() == 2 ? weights.shape()[0].raw() : 1;
  if (rows == 0) return;  // then any number of samples is allowed
  if (n == 0) fail_call(call, Category::bad_argument, "there are no weights");
  const int64_t grain = std::max<int64_t>(1, kSamplingGrain / (n + k)), chunks = ceil_div(rows, grain);
  const ThreadScratch<double> all_weights(n, chunks), keys(n, chunks);
  const ThreadScratch<int64_t> places(n, chunks);
  parallel_range(rows, grain, [&](int64_t begin, int64_t end) {
    const Row row{{all_weights.mine(), static_cast<size_t>(n)}, keys.mine(), places.mine()};
    for (int64_t r = begin; r < end; ++r) {
      gather(static_cast<const T*>(weights.data()), layout, r * n, (r + 1) * n, row.weights.data());
      check_weights(call, row.weights);
      int64_t* samples = static_cast<int64_t*>(out.data()) + r * k;
      if (attrs.replacement || k == 1)
        with_replacement(attrs.draw, r * k, row, samples, k);
      else
        without_replacement(call, attrs.draw, r * n, row, samples, k);
    }
  });
}

void multinomial_kernel(const Call& call, TensorImpl* const* outputs) {
  dispatch(call.operands[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_integral_v<T>) sample_rows<T>(call, *outputs[0]);
  });
}

}  // namespace

void add_sampling_kernels(KernelTable& table) {
  table.set(&ops::info<ops::RandPerm>, randperm_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Multinomial>, multinomial_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
