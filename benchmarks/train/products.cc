// See products.h. A linear layer is three products: forward, and the gradients of weight and input, each with
// the layouts that the step multiplies.
#include "benchmarks/train/products.h"

#include <algorithm>
#include <limits>
#include <map>

namespace bench {

void add_linear(std::vector<Product>& list, int64_t rows, int64_t in, int64_t out, bool input_gradient) {
  list.push_back({.m = rows, .n = out, .k = in, .b_transposed = true});
  list.push_back({.m = out, .n = in, .k = rows, .a_transposed = true});
  if (input_gradient) list.push_back({.m = rows, .n = in, .k = out});
}

void add_attention(std::vector<Product>& list, int64_t heads, int64_t length, int64_t width) {
  const auto add = [&](int64_t n, int64_t k, bool a_transposed, bool b_transposed) {
    list.push_back({length, n, k, a_transposed, b_transposed, heads});
  };
  add(length, width, false, true);   // queries and keys
  add(width, length, false, false);  // weights and values
  add(width, length, true, false);   // gradient of the values
  add(length, width, false, true);   // of the weights
  add(width, length, false, false);  // of the queries
  add(width, length, true, false);   // of the keys
}

namespace {

constexpr double kBudget = 0.1;  // seconds for a shape
constexpr int kLeastRuns = 3;

double measure(const Product& p, const Place& place, rg::ScalarType dtype) {
  const auto operand = [&](int64_t rows, int64_t columns, bool transposed) {
    const rg::Tensor x = rg::randn({p.batch, transposed ? columns : rows, transposed ? rows : columns},
                                   {rg::kFloat32, place.device()})
                             .to(dtype);
    const rg::Tensor turned = transposed ? x.transpose(1, 2) : x;
    return p.batch == 1 ? turned.select(0, 0) : turned;
  };
  const rg::Tensor a = operand(p.m, p.k, p.a_transposed), b = operand(p.k, p.n, p.b_transposed);
  const auto run = [&] { rg::matmul(a, b); };
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  for (int runs = 0; runs < kLeastRuns || spent < kBudget; ++runs) {
    // On a device a sample is many runs: a single one is not meaningful.
    const double seconds = place.is_cpu() ? seconds_of(place, run) : median_seconds(place, run, 1);
    best = std::min(best, seconds);
    spent += place.is_cpu() ? seconds : kBudget / kLeastRuns;
  }
  return best;
}

}  // namespace

double flops_of(const std::vector<Product>& list) {
  double sum = 0;
  for (const Product& p : list)
    sum += 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
           static_cast<double>(p.batch);
  return sum;
}

double best_seconds(const std::vector<Product>& list, const Place& place, rg::ScalarType dtype) {
  rg::NoGradGuard no_grad;
  std::map<Product, double> known;
  double sum = 0;
  for (const Product& p : list) {
    if (!known.contains(p)) known[p] = measure(p, place, dtype);
    sum += known[p];
  }
  return sum;
}

double peak_flops(const Place& place, rg::ScalarType dtype) {
  constexpr double kLong = 1e-3;  // seconds of a product that fills the machine
  for (int64_t n = place.is_cpu() ? 1024 : 128;; n *= 2) {
    const std::vector<Product> square{{n, n, n}};
    const double seconds = best_seconds(square, place, dtype);
    if (seconds > kLong || n >= 8192) return flops_of(square) / seconds;
  }
}

}  // namespace bench
