// Shared by the tests of offload on a device: the device on the host, and the log of stream operations.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "tests/cuda/device_on_host.h"
#include "tests/hooks/pairs.h"

namespace retrograd::testing {

inline constexpr int64_t kRows = 32, kWidth = 16, kBytes = kRows * kWidth * 4;

// Numbers of events by the order in which they occur in the text.
inline std::string renumbered(const std::string& log) {
  std::map<std::string, int> numbers;
  std::string out;
  for (size_t i = 0; i < log.size();) {
    const size_t end = log.find_first_not_of("0123456789", i + 1);
    if (log[i] == 'e' && i > 0 && log[i - 1] == ' ' && end > i + 1) {
      const int number =
          numbers.try_emplace(log.substr(i, end - i), static_cast<int>(numbers.size())).first->second;
      out += "e" + std::to_string(number);
      i = end;
    } else {
      out += log[i++];
    }
  }
  return out;
}

struct OffloadFixture {
  cuda::HostDriver& driver = device_on_host();
  cuda::Gpu& gpu = cuda::gpu_of(0);
  const TensorOptions there{kFloat32, kCUDA};

  OffloadFixture() { reset_offload_stats(); }
  ~OffloadFixture() {
    driver.holds_events = false;
    driver.fire_all();
  }
  std::string copies_of(const std::function<void()>& f) {
    driver.log.clear();
    f();
    return renumbered(driver.log);
  }
  int64_t live() { return gpu.memory().stats().live_bytes; }
};

}  // namespace retrograd::testing
