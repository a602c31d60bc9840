#include "benchmarks/train/products.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>

#include "retrograd/retrograd.h"

namespace bench {

namespace rg = retrograd;

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

rg::Tensor operand(const Product& p, int64_t rows, int64_t columns, bool transposed) {
  const rg::Tensor x =
      transposed ? rg::randn({p.batch, columns, rows}).transpose(1, 2) : rg::randn({p.batch, rows, columns});
  return p.batch == 1 ? x.select(0, 0) : x;
}

double measure(const Product& p) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  const rg::Tensor a = operand(p, p.m, p.k, p.a_transposed), b = operand(p, p.k, p.n, p.b_transposed);
  double best = std::numeric_limits<double>::infinity();
  const auto begin = Clock::now();
  for (int runs = 0; runs < kLeastRuns || since(begin) < kBudget; ++runs) {
    const auto start = Clock::now();
    rg::matmul(a, b);
    best = std::min(best, since(start));
  }
  return best;
}

}  // namespace

double best_seconds(const std::vector<Product>& list) {
  rg::NoGradGuard no_grad;
  std::map<Product, double> known;
  double sum = 0;
  for (const Product& p : list) {
    if (!known.contains(p)) known[p] = measure(p);
    sum += known[p];
  }
  return sum;
}

}  // namespace bench
