// See measure.h. Limits are measured when first needed, and cached: copies by size class (a factor of four), arithmetic
// once.
#include "benchmarks/op_rows/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "benchmarks/train/products.h"
#include "cpu/parallel.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBatch = 50e-6, kBatchOfDevice = 1e-3;
constexpr int kWarmUps = 3;
constexpr size_t kLeast = 3;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Sixteen multiply-adds per step, in registers as wide as the machine's; the values stay 0. Contraction to fused ones
// is requested where the level has them.
using Wide = float __attribute__((vector_size(64)));
constexpr int kChains = 8, kSteps = 200'000;

#if !defined(__SANITIZE_THREAD__)  // the function that chooses a clone would run before the sanitizer is there
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"),
               optimize("O3,fp-contract=fast")))
#endif
float multiply_and_add() {
  Wide a[kChains] = {};
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 8
    for (int k = 0; k < kChains; ++k) {
      a[k] = a[k] * a[k] + a[k];
      asm volatile("" :::);
    }
  }
  float sum = 0;
  for (const Wide& v : a) sum += v[0];
  return sum;
}

}  // namespace

double Meter::median_seconds(const Work& work, double budget) const {
  const auto seconds_each = [&](int64_t count) {
    work.prepare(count);
    place_.synchronize();
    const auto begin = Clock::now();
    for (int64_t i = 0; i < count; ++i) work.run(i);
    place_.synchronize();
    return seconds_since(begin) / static_cast<double>(count);
  };
  double once = 0;
  for (int i = 0; i < kWarmUps && once < budget; ++i) once = seconds_each(1);
  const double batch = place_.is_cpu() ? kBatch : kBatchOfDevice;
  const auto count = static_cast<int64_t>(std::clamp(batch / std::max(once, 1e-9), 1.0, 64.0));
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < kLeast || seconds_since(begin) < budget) times.push_back(seconds_each(count));
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

double Meter::copy_rate(double bytes) const {
  static std::map<int, double> rates;
  const int size_class = static_cast<int>(std::lround(std::log2(std::max(bytes, 4096.0)) / 2));
  const auto known = rates.find(size_class);
  if (known != rates.end()) return known->second;
  const auto size = static_cast<int64_t>(std::exp2(2 * size_class - 1));
  return rates[size_class] = 2 * static_cast<double>(size) / copy_seconds(size);
}

double Meter::copy_seconds(int64_t bytes) const {
  constexpr double kBudget = 0.03;
  if (!place_.is_cpu()) {
    const rg::NoGradGuard no_grad;
    const rg::TensorOptions there(rg::kUInt8, place_.device());
    const rg::Tensor from = rg::ones({bytes}, there), to = rg::empty({bytes}, there);
    return median_seconds({[](int64_t) {}, [&](int64_t) { to.copy_(from); }}, kBudget);
  }
  const auto size = static_cast<size_t>(bytes);
  std::vector<char> from(size, 1), to(size);
  constexpr int64_t kPiece = 1 << 17;
  const Work copy{[](int64_t) {},
                  [&](int64_t) {
                    rg::cpu::parallel_range(bytes, kPiece, [&](int64_t begin, int64_t end) {
                      std::memcpy(&to[static_cast<size_t>(begin)], &from[static_cast<size_t>(begin)],
                                  static_cast<size_t>(end - begin));
                    });
                  }};
  return median_seconds(copy, kBudget);
}

double Meter::peak_flops() const {
  static const double peak = place_.is_cpu() ? cpu_peak_flops() : bench::peak_flops(place_, rg::kFloat32);
  return peak;
}

double Meter::cpu_peak_flops() const {
  const int64_t pieces = 4 * rg::cpu::get_num_threads();
  const Work work{[](int64_t) {},
                  [pieces](int64_t) {
                    rg::cpu::parallel_for(pieces, [](int64_t) {
                      volatile float sum = multiply_and_add();
                      static_cast<void>(sum);
                    });
                  }};
  return static_cast<double>(pieces) * kSteps * kChains * 2 * 16 / median_seconds(work, 0.1);
}

}  // namespace bench
