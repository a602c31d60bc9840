// Rates of matrix products: ours beside Eigen, and beside OpenBLAS and oneDNN where the machine has them
// (gemm_sides/side.h).
//   gemm [--threads N...] [--dtype float32|bfloat16...] [--shapes squares|mlp|gpt-char|gpt-124m...]
//   [--seconds S]
// Shapes are squares of 64 to 4096 and what a training step of a model multiplies (train/models.h). All sides
// take turns; with several threads each turn begins with a rest, since the threads of a side wait in loops after
// its turn (OpenBLAS's for 2^26 cycles), and with runs that do not count. A JSON line a shape, dtype and number of
// threads:
//   shapes, m, n, k, layout  "nn"; "tn" where A lies transposed in memory, "nt" where B does
//   dtype, threads
//   retrograd, eigen, ...    billions of multiplications and additions a second, by the least time; null
//                            without a kernel
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/gemm_sides/side.h"
#include "benchmarks/train/models.h"

namespace bench {
namespace {

struct Options {
  std::vector<int> threads{1, 2};
  std::vector<std::string> dtypes{"float32", "bfloat16"};
  std::vector<std::string> shapes{"squares", "mlp", "gpt-char", "gpt-124m"};
  double seconds = 0.2;  // for a side and a shape
};

std::vector<Product> products_of(const std::string& shapes) {
  if (shapes == "squares") {
    std::vector<Product> squares;
    for (int64_t n = 64; n <= 4096; n *= 2) squares.push_back({n, n, n});
    return squares;
  }
  // Each once, those of attention apart: they are batches of small ones.
  std::set<Product> seen;
  for (const Product& p : make_model(shapes, {})->products())
    if (p.batch == 1) seen.insert(p);
  return {seen.begin(), seen.end()};
}

Problem make_problem(const Product& p, rg::ScalarType dtype) {
  const auto operand = [&](int64_t rows, int64_t columns, bool transposed) {
    return (transposed ? rg::randn({columns, rows}) : rg::randn({rows, columns})).to(dtype);
  };
  return {p, operand(p.m, p.k, p.a_transposed), operand(p.k, p.n, p.b_transposed),
          rg::empty({p.m, p.n}, {dtype})};
}

class Race {
 public:
  Race(const std::vector<Side>& sides, const Problem& problem, int threads) : sides_(sides) {
    for (const Side& side : sides) {
      side.set_threads(threads);
      runs_.push_back(side.prepare(problem));
    }
    best_.resize(sides.size(), std::numeric_limits<double>::infinity());
    threads_ = threads;
    const Product& p = problem.product;
    work_ = 2e-9 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    turns_ = static_cast<int>(std::max(1.0, (threads > 1 ? kThreadsTurn : kTurn) * kGuess / work_));
  }

  void run(double seconds) {
    round(nullptr);
    double spent = 0;
    for (int i = 0; i < kLeastRounds || spent < seconds * static_cast<double>(sides_.size()); ++i)
      round(&spent);
  }

  /// By the least time; 0 for a side that has no kernel.
  double rate(size_t side) {
    if (!runs_[side]) return 0;
    return work_ / best_[side];
  }

 private:
  static constexpr int kLeastRounds = 3;
  static constexpr double kTurn = 200e-6, kThreadsTurn = 1e-3,
                          kGuess = 100;  // seconds that a turn takes at least, and at what rate
  static constexpr auto kRest = std::chrono::milliseconds(80);

  // A turn for each side; its time counts if there is something to add it to.
  void round(double* spent) {
    for (size_t i = 0; i < sides_.size(); ++i) {
      if (!runs_[i]) continue;
      sides_[i].set_threads(threads_);
      if (threads_ > 1) {
        std::this_thread::sleep_for(kRest);
        for (int t = 0; t < turns_ / 2 + 1; ++t) runs_[i]();
      }
      const auto begin = std::chrono::steady_clock::now();
      for (int t = 0; t < turns_; ++t) runs_[i]();
      const double time = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (!spent) continue;
      best_[i] = std::min(best_[i], time / turns_);
      *spent += time;
    }
  }

  const std::vector<Side>& sides_;
  std::vector<std::function<void()>> runs_;
  std::vector<double> best_;
  int threads_, turns_;
  double work_;
};

void measure(const Options& options) {
  rg::NoGradGuard no_grad;
  std::vector<Side> sides{retrograd_side(), eigen_side()};
  for (const auto& found : {openblas_side(), onednn_side()})
    sides.insert(sides.end(), found.begin(), found.end());
  for (const std::string& shapes : options.shapes)
    for (const Product& p : products_of(shapes))
      for (const std::string& dtype : options.dtypes) {
        const Problem problem = make_problem(p, dtype == "float32" ? rg::kFloat32 : rg::kBFloat16);
        for (const int threads : options.threads) {
          Race race(sides, problem, threads);
          race.run(options.seconds);
          std::printf(
              "{\"shapes\":\"%s\",\"m\":%lld,\"n\":%lld,\"k\":%lld,\"layout\":\"%c%c\",\"dtype\":\"%s\","
              "\"threads\":%d",
              shapes.c_str(), static_cast<long long>(p.m), static_cast<long long>(p.n),
              static_cast<long long>(p.k), p.a_transposed ? 't' : 'n', p.b_transposed ? 't' : 'n',
              dtype.c_str(), threads);
          for (size_t i = 0; i < sides.size(); ++i) {
            const double rate = race.rate(i);
            std::printf(rate > 0 ? ",\"%s\":%.1f" : ",\"%s\":null", sides[i].name.c_str(), rate);
          }
          std::puts("}");
          std::fflush(stdout);
        }
      }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  const std::vector<std::string> dtypes = options.dtypes, shapes = options.shapes;
  CLI::App app("Rates of matrix products beside other libraries");
  app.add_option("--threads", options.threads, "numbers of threads")->check(CLI::Range(1, 1024));
  app.add_option("--dtype", options.dtypes, "dtypes")->check(CLI::IsMember(dtypes));
  app.add_option("--shapes", options.shapes, "which shapes")->check(CLI::IsMember(shapes));
  app.add_option("--seconds", options.seconds, "time spent on a shape and a side")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  bench::measure(options);
}
