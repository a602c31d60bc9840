// See benchmarks/common/place.h.
#include "benchmarks/common/place.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "benchmarks/common/device_details.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSample = 5e-3;  // seconds of a sample on a device, if kMostRuns suffice
constexpr double kMostRuns = 1000;
constexpr int kWarmUps = 3;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double seconds_each(const Place& place, const std::function<void()>& run, int64_t count) {
  place.synchronize();
  const auto begin = Clock::now();
  for (int64_t i = 0; i < count; ++i) run();
  place.synchronize();
  return since(begin) / static_cast<double>(count);
}

int8_t index_of(const std::string& text) {
  if (text == "cuda") return 0;
  const std::string number = text.substr(0, 5) == "cuda:" ? text.substr(5) : "";
  if (number.empty() || number.size() > 2 || number.find_first_not_of("0123456789") != number.npos)
    throw std::invalid_argument("--device " + text + ": use cpu, cuda, cuda:1 and so on");
  return static_cast<int8_t>(std::stoi(number));
}

}  // namespace

Place::Place(const std::string& text) {
  if (text == "cpu") return;
  device_ = {rg::kCUDA, index_of(text)};
  name_ = device_details::name(device_.index());
}

void Place::synchronize() const {
  rg::synchronize(device_);
}

void Place::settle() const {
  if (!is_cpu()) device_details::finish_compiling();
}

int64_t Place::peak_bytes() const { return rg::memory::peak_bytes(device_); }

int64_t Place::library_convolutions() const {
  return is_cpu() ? 0 : device_details::library_convolutions(device_.index());
}

int64_t Place::library_factorisations() const {
  return is_cpu() ? 0 : device_details::library_factorisations(device_.index());
}

void Place::reset_peak() const { rg::memory::reset_peak(device_); }

double seconds_of(const Place& place, const std::function<void()>& run) {
  return seconds_each(place, run, 1);
}

double median_seconds(const Place& place, const std::function<void()>& run, int samples) {
  double once = 0;
  for (int i = 0; i < kWarmUps; ++i) {
    once = seconds_of(place, run);
    place.settle();
  }
  const auto count =
      place.is_cpu() ? int64_t{1} : static_cast<int64_t>(std::clamp(kSample / once, 1.0, kMostRuns));
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) times.push_back(seconds_each(place, run, count));
  std::ranges::sort(times);
  return times[times.size() / 2];
}

double copy_rate(const Place& place, int64_t elements) {
  rg::NoGradGuard no_grad;
  const rg::TensorOptions there(rg::kFloat32, place.device());
  const rg::Tensor from = rg::randn({elements}, there), to = rg::empty({elements}, there);
  constexpr int kSamples = 15;
  const double seconds = median_seconds(
      place, [&] { to.copy_(from); }, kSamples);
  return 2.0 * static_cast<double>(from.nbytes()) / seconds;
}

}  // namespace bench
