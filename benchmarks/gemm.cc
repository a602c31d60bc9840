// Rates of matrix products: ours beside other libraries' (gemm_sides/side.h): on the CPU Eigen's, and
// OpenBLAS and oneDNN where the machine has them; on a device cuBLASLt, called directly.
//   gemm [--threads N...] [--dtype float32|bfloat16...] [--shapes squares|mlp|gpt-char|gpt-124m...]
//   [--seconds S] [--largest N] [--batch B] [--block T] [--device cpu|cuda]
// Shapes are squares of 64 to 4096, on a device to 8192, and what a training step of a model multiplies
// (train/models.h). All sides take turns; with several threads each turn begins with a rest, since the
// threads of a side wait in loops after its turn (OpenBLAS's for 2^26 cycles), and with runs that do not count. A
// turn on a device is many runs between two waits for it. A JSON line a shape, dtype and number of threads,
// which a device has not:
//   shapes, m, n, k, layout  "nn"; "tn" where A lies transposed in memory, "nt" where B does
//   dtype, threads, device
//   retrograd, eigen, ...    billions of multiplications and additions a second, by the least time; null
//                            without a kernel
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/common/line.h"
#include "benchmarks/common/program.h"
#include "benchmarks/gemm_sides/side.h"
#include "benchmarks/train/models.h"

namespace bench {
namespace {

struct Options {
  std::vector<int> threads{1, 2};
  std::vector<std::string> dtypes{"float32", "bfloat16"};
  std::vector<std::string> shapes{"squares", "mlp", "gpt-char", "gpt-124m"};
  double seconds = 0.2;  // for a side and a shape
  int64_t largest = 0;   // of the squares; 0: as the machine is
  BatchSize size;
};

std::vector<Product> products_of(const std::string& shapes, const Options& options, const Place& place) {
  if (shapes == "squares") {
    const int64_t largest = options.largest ? options.largest : place.is_cpu() ? 4096 : 8192;
    std::vector<Product> squares;
    for (int64_t n = 64; n <= largest; n *= 2) squares.push_back({n, n, n});
    return squares;
  }
  // Each once, those of attention apart: they are batches of small ones.
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

class Race {
 public:
  Race(const std::vector<Side>& sides, const Problem& problem, const Place& place, int threads)
      : sides_(sides), place_(place) {
    for (const Side& side : sides) {
      side.set_threads(threads);
      runs_.push_back(side.prepare(problem));
    }
    best_.resize(sides.size(), std::numeric_limits<double>::infinity());
    threads_ = threads;
    const Product& p = problem.product;
    work_ = 2e-9 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    const double turn =
        !place.is_cpu() ? kDeviceTurn * kDeviceGuess : (threads > 1 ? kThreadsTurn : kTurn) * kGuess;
    turns_ = static_cast<int>(std::clamp(turn / work_, 1.0, kMostTurns));
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
  // Seconds that a turn takes at least, and at what rate.
  static constexpr double kTurn = 200e-6, kThreadsTurn = 1e-3, kGuess = 100;
  static constexpr double kDeviceTurn = 5e-3, kDeviceGuess = 50'000, kMostTurns = 200;
  static constexpr auto kRest = std::chrono::milliseconds(80);

  // A turn for each side; its time counts if there is something to add it to.
  void round(double* spent) {
    for (size_t i = 0; i < sides_.size(); ++i) {
      if (!runs_[i]) continue;
      sides_[i].set_threads(threads_);
      if (threads_ > 1 && place_.is_cpu()) {
        std::this_thread::sleep_for(kRest);
        for (int t = 0; t < turns_ / 2 + 1; ++t) runs_[i]();
      }
      place_.synchronize();
      const auto begin = std::chrono::steady_clock::now();
      for (int t = 0; t < turns_; ++t) runs_[i]();
      place_.synchronize();
      const double time = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (!spent) continue;
      best_[i] = std::min(best_[i], time / turns_);
      *spent += time;
    }
  }

  const std::vector<Side>& sides_;
  const Place& place_;
  std::vector<std::function<void()>> runs_;
  std::vector<double> best_;
  int threads_, turns_;
  double work_;
};

void print(const std::string& shapes, const Problem& problem, const std::string& dtype, const Place& place,
           int threads, const std::vector<Side>& sides, Race& race) {
  const Product& p = problem.product;
  const std::string layout{p.a_transposed ? 't' : 'n', p.b_transposed ? 't' : 'n'};
  Line line;
  line.text("shapes", shapes).count("m", p.m).count("n", p.n).count("k", p.k).text("layout", layout);
  line.text("dtype", dtype).count("threads", threads).text("device", place.name());
  for (size_t i = 0; i < sides.size(); ++i) {
    const double rate = race.rate(i);
    line.number(sides[i].name, rate > 0 ? rate : std::numeric_limits<double>::quiet_NaN(), 1);
  }
  line.print();
}

void measure(const Options& options, const Place& place) {
  rg::NoGradGuard no_grad;
  std::vector<Side> sides{retrograd_side()};
  const std::vector<Side> others = other_sides(place);
  sides.insert(sides.end(), others.begin(), others.end());
  const std::vector<int> threads = place.is_cpu() ? options.threads : std::vector<int>{1};
  for (const std::string& shapes : options.shapes)
    for (const Product& p : products_of(shapes, options, place))
      for (const std::string& dtype : options.dtypes) {
        const Problem problem =
            make_problem(p, dtype == "float32" ? rg::kFloat32 : rg::kBFloat16, place.device());
        for (const int n : threads) {
          Race race(sides, problem, place, n);
          race.run(options.seconds);
          print(shapes, problem, dtype, place, n, sides, race);
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
  app.add_option("--largest", options.largest, "side of the largest square")->check(CLI::PositiveNumber);
  app.add_option("--batch", options.size.batch, "sequences or images of a model's step")
      ->check(CLI::PositiveNumber);
  app.add_option("--block", options.size.block, "tokens of a sequence")->check(CLI::PositiveNumber);
  return bench::run_program(app, argc, argv,
                            [&](const bench::Place& place) { bench::measure(options, place); });
}
