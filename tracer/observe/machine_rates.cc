// See tracer/observe/machine_rates.h.
#include "tracer/observe/machine_rates.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "engine/basic_ops.h"
#include "engine/runner.h"
#include "ops/matmul.h"

namespace retrograd::inline v0 {
namespace {

constexpr int kTries = 4;  // the first one also finds memory

// The least seconds that f takes on the device.
template <class F>
double least_seconds(Device device, const F& f) {
  std::chrono::duration<double> least(std::numeric_limits<double>::infinity());
  for (int i = 0; i < kTries; ++i) {
    synchronize(device);
    const auto begin = std::chrono::steady_clock::now();
    f();
    synchronize(device);
    least = std::min<std::chrono::duration<double>>(least, std::chrono::steady_clock::now() - begin);
  }
  return std::max(least.count(), 1e-9);
}

MachineRates measured(Device device) {
  const bool is_cpu = device.type() == DeviceType::CPU;
  const int64_t elements = is_cpu ? 8 << 20 : 64 << 20, side = is_cpu ? 384 : 4096;
  const Emitter::Scope scope(eager_runner());
  const auto zeros = [&](const Shape& shape) {
    return basic::zeros({ScalarType::Float32, device, shape}, SourceLocation::current());
  };
  MachineRates rates;
  {
    const Tensor from = zeros({elements});
    const double read_and_written = 2 * static_cast<double>(bytes_of(from.impl().type()));
    rates.bytes_per_second = read_and_written / least_seconds(device, [&] { basic::clone(from); });
  }
  const Tensor factor = zeros({side, side});
  const auto n = static_cast<double>(side);
  rates.flops_per_second = 2 * n * n * n / least_seconds(device, [&] { mm(factor, factor); });
  return rates;
}

}  // namespace

MachineRates machine_rates(Device device) {
  static std::mutex mutex;
  static std::map<std::pair<DeviceType, int>, MachineRates> known;
  const std::scoped_lock lock(mutex);
  const std::pair key(device.type(), device.index());
  if (const auto found = known.find(key); found != known.end()) return found->second;
  return known.emplace(key, measured(device)).first->second;
}

}  // namespace retrograd
