// The place where a benchmark computes: the CPU, or a CUDA device.
//
// Launches on a device are asynchronous, so a clock is meaningful only after waiting for the device. median_seconds()
// puts several runs between two readings of the clock and waits at both: the cost of launching is hidden behind the
// device's work, as in a program that does not read every result, and the wait is shared by all runs.
#pragma once

#include <functional>
#include <string>

#include "retrograd/retrograd.h"

namespace bench {

namespace rg = retrograd;

class Place {
 public:
  Place() = default;  // the CPU
  /// "cpu", "cuda", "cuda:1". std::invalid_argument for anything else, rg::Error for a missing device, with the reason.
  explicit Place(const std::string& text);

  rg::Device device() const { return device_; }
  bool is_cpu() const { return device_ == rg::kCPU; }
  /// "cpu", or the name of the device: every figure carries it.
  const std::string& name() const { return name_; }
  /// Waits for all launches.
  void synchronize() const;
  /// Waits until no kernel is being compiled: later runs use the kernels whose compilation earlier ones have started.
  void settle() const;
  /// The largest number of live bytes of tensor data there since the last reset_peak().
  int64_t peak_bytes() const;
  void reset_peak() const;
  /// Convolutions that the vendor's library has computed so far (cuda/dnn.h).
  int64_t library_convolutions() const;
  /// Matrices that it has factored (cuda/solver.h).
  int64_t library_factorisations() const;

 private:
  rg::Device device_ = rg::kCPU;
  std::string name_ = "cpu";
};

/// The median of `samples` samples, after three that do not count. On the CPU each is one run.
double median_seconds(const Place& place, const std::function<void()>& run, int samples);
/// One run, waited for.
double seconds_of(const Place& place, const std::function<void()>& run);

/// Bytes read and written per second by copies of an array of `elements` float32, medians.
double copy_rate(const Place& place, int64_t elements);

}  // namespace bench
