// Where a benchmark computes: the CPU, or a CUDA device.
//
// What is launched on a device runs behind the program's back, so a clock says something only when the device
// has been waited for. median_seconds() puts several runs between two readings of the clock and waits at
// both: what it takes to launch is hidden behind the device's work, as in a program that does not look at
// every result, and the wait is shared by all of them.
#pragma once

#include <functional>
#include <string>

#include "retrograd/retrograd.h"

namespace bench {

namespace rg = retrograd;

class Place {
 public:
  Place() = default;  // the CPU
  /// "cpu", "cuda", "cuda:1". std::invalid_argument for anything else, rg::Error for a device that is not
  /// there, with the reason.
  explicit Place(const std::string& text);

  rg::Device device() const { return device_; }
  bool is_cpu() const { return device_ == rg::kCPU; }
  /// "cpu", or what the device calls itself: every figure carries it.
  const std::string& name() const { return name_; }
  /// Waits for all that was launched.
  void synchronize() const;
  /// Waits until no kernel is being compiled: from then on runs use what was compiled behind earlier ones.
  void settle() const;
  /// The most bytes of tensor data that were live there since the last reset_peak().
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

/// Of `samples` samples, after three that do not count. On the CPU each is one run.
double median_seconds(const Place& place, const std::function<void()>& run, int samples);
/// One run, waited for.
double seconds_of(const Place& place, const std::function<void()>& run);

/// Bytes read and written per second by copies of an array of so many float32, medians.
double copy_rate(const Place& place, int64_t elements);

}  // namespace bench
