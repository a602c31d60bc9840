// Rates of matrix products: ours compared with other libraries' (gemm_sides/side.h): on the CPU Eigen's, and OpenBLAS
// and oneDNN if the machine has them; on a device cuBLASLt, called directly.
//   gemm [--threads N...] [--dtype float32|bfloat16...] [--shapes squares|mlp|gpt-char|gpt-124m...]
//   [--beside SIDE...] [--seconds S] [--largest N] [--batch B] [--block T] [--device cpu|cuda]
// Shapes are squares of 64 to 4096, on a device to 8192, and the products of a training step of a model
// (train/models.h). All sides take turns, on the CPU each in a process of its own, one of which runs at a time
// (gemm_sides/turns.h); they compute from the same operands, and their results are compared. A turn on a device is many
// runs between two waits for it. Prints a JSON line per shape, dtype and, on the CPU, number of threads:
//   shapes, m, n, k, layout  "nn"; "tn" if A is transposed in memory, "nt" if B is
//   dtype, threads, device
//   retrograd, eigen, ...    billions of multiplications and additions a second, by the least time; null
//                            without a kernel
//   to_best                  the first of them divided by the largest of the others; null without others
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/common/line.h"
#include "benchmarks/common/program.h"
#include "benchmarks/gemm_sides/turns.h"
#include "benchmarks/train/models.h"

namespace bench {
namespace {

struct Options {
  std::vector<int> threads{1, 2};
  std::vector<std::string> dtypes{"float32", "bfloat16"};
  std::vector<std::string> shapes{"squares", "mlp", "gpt-char", "gpt-124m"};
  std::vector<std::string> beside;  // empty: all available ones
  double seconds = 0.2;             // for a side and a shape
  int64_t largest = 0;              // of the squares; 0: depends on the machine
  BatchSize size;
};

std::vector<Product> products_of(const std::string& shapes, const Options& options, const Place& place) {
  if (shapes == "squares") {
    const int64_t largest = options.largest ? options.largest : place.is_cpu() ? 4096 : 8192;
    std::vector<Product> squares;
    for (int64_t n = 64; n <= largest; n *= 2) squares.push_back({n, n, n});
    return squares;
  }
  // Each once, without those of attention: they are batches of small ones.
  std::set<Product> seen;
  for (const Product& p : make_model(shapes, options.size)->products())
    if (p.batch == 1) seen.insert(p);
  return {seen.begin(), seen.end()};
}

Problem make_problem(const Product& p, rg::ScalarType dtype, rg::Device device) {
  const auto operand = [&](int64_t rows, int64_t columns, bool transposed) {
    const rg::Shape shape = transposed ? rg::Shape{columns, rows} : rg::Shape{rows, columns};
    return rg::randn(shape, {rg::kFloat32, device}).to(dtype);
  };
  return {p, operand(p.m, p.k, p.a_transposed), operand(p.k, p.n, p.b_transposed),
          rg::empty({p.m, p.n}, {dtype, device})};
}

// The sides on one problem.
class Race {
 public:
  Race(std::vector<Contender> contenders, const Problem& problem, const Place& place)
      : contenders_(std::move(contenders)),
        best_(contenders_.size(), std::numeric_limits<double>::infinity()) {
    const Product& p = problem.product;
    work_ = 2e-9 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    const double on_device = problem.dtype() == rg::kFloat32 ? kDeviceGuess : kDeviceGuess16;
    const double turn = place.is_cpu() ? kTurn * kGuess : kDeviceTurn * on_device;
    runs_ = static_cast<int>(std::clamp(turn / work_, 1.0, kMostRuns));
  }

  void run(double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto end =
        Clock::now() + std::chrono::duration<double>(seconds * static_cast<double>(contenders_.size()));
    for (int i = 0; i < kLeastRounds || Clock::now() < end; ++i) round();
  }

  /// From the least time; NaN for a side that has no kernel.
  double rate(size_t side) const {
    return contenders_[side].turn ? work_ / best_[side] : std::numeric_limits<double>::quiet_NaN();
  }
  /// The first side's rate relative to the best of the others; NaN without any.
  double to_best() const {
    double best = std::numeric_limits<double>::quiet_NaN();
    for (size_t i = 1; i < contenders_.size(); ++i) best = std::fmax(best, rate(i));
    return rate(0) / best;
  }

 private:
  static constexpr int kLeastRounds = 3;
  // The least number of seconds of a turn, and the rate that is assumed at first.
  static constexpr double kTurn = 4e-3, kGuess = 100;
  static constexpr double kDeviceTurn = 5e-3, kDeviceGuess = 50'000, kDeviceGuess16 = 500'000,
                          kMostRuns = 1000;

  // One turn for each side.
  void round() {
    for (size_t i = 0; i < contenders_.size(); ++i)
      if (contenders_[i].turn) best_[i] = std::min(best_[i], contenders_[i].turn(runs_));
  }

  std::vector<Contender> contenders_;
  std::vector<double> best_;
  int runs_;
  double work_;
};

void print(const std::string& shapes, const Problem& problem, const Place& place, int threads,
           const std::vector<Side>& sides, const Race& race) {
  const Product& p = problem.product;
  const std::string layout{p.a_transposed ? 't' : 'n', p.b_transposed ? 't' : 'n'};
  Line line;
  line.text("shapes", shapes).count("m", p.m).count("n", p.n).count("k", p.k).text("layout", layout);
  line.text("dtype", problem.dtype() == rg::kFloat32 ? "float32" : "bfloat16");
  line.count("threads", threads).text("device", place.name());
  for (size_t i = 0; i < sides.size(); ++i) line.number(sides[i].name, race.rate(i), 1);
  line.number("to_best", race.to_best(), 3).print();
}

void measure(const Options& options, const Place& place) {
  rg::NoGradGuard no_grad;
  std::vector<Side> sides{retrograd_side()};
  for (const Side& other : other_sides(place))
    if (options.beside.empty() || std::ranges::count(options.beside, other.name)) sides.push_back(other);
  int missing = 0;
  const auto measure_one = [&](const std::string& shapes, const Problem& problem, int threads) {
    std::vector<Contender> contenders;
    for (const Side& side : sides)
      contenders.push_back(place.is_cpu() ? contender_in_process(side, problem, threads)
                                          : contender_here(side, problem, place));
    check_results(contenders, problem);
    Race race(std::move(contenders), problem, place);
    race.run(options.seconds);
    print(shapes, problem, place, threads, sides, race);
  };
  const auto run = [&](const std::string& shapes, const Problem& problem, int threads) {
    try {
      measure_one(shapes, problem, threads);
    } catch (const std::exception& e) {
      const Product& p = problem.product;
      std::fprintf(stderr, "gemm: %lld x %lld x %lld: %s\n", static_cast<long long>(p.m),
                   static_cast<long long>(p.n), static_cast<long long>(p.k), e.what());
      ++missing;
    }
  };
  for (const std::string& shapes : options.shapes)
    for (const Product& p : products_of(shapes, options, place))
      for (const std::string& dtype : options.dtypes) {
        const Problem problem =
            make_problem(p, dtype == "float32" ? rg::kFloat32 : rg::kBFloat16, place.device());
        for (const int n : place.is_cpu() ? options.threads : std::vector<int>{1}) run(shapes, problem, n);
      }
  if (missing) throw std::runtime_error(std::to_string(missing) + " products were not measured");
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  const std::vector<std::string> dtypes = options.dtypes, shapes = options.shapes;
  CLI::App app("Rates of matrix products compared with other libraries");
  app.add_option("--threads", options.threads, "numbers of threads")->check(CLI::Range(1, 1024));
  app.add_option("--dtype", options.dtypes, "dtypes")->check(CLI::IsMember(dtypes));
  app.add_option("--shapes", options.shapes, "which shapes")->check(CLI::IsMember(shapes));
  app.add_option("--beside", options.beside, "which of the others: eigen, openblas, onednn, cublaslt");
  app.add_option("--seconds", options.seconds, "time spent on a shape and a side")
      ->check(CLI::PositiveNumber);
  app.add_option("--largest", options.largest, "side of the largest square")->check(CLI::PositiveNumber);
  app.add_option("--batch", options.size.batch, "sequences or images of a model's step")
      ->check(CLI::PositiveNumber);
  app.add_option("--block", options.size.block, "tokens of a sequence")->check(CLI::PositiveNumber);
  return bench::run_program(app, argc, argv,
                            [&](const bench::Place& place) { bench::measure(options, place); });
}
