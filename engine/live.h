// Live<T>: a number that recorded code reads again at each run.
//
//   rg::Live<double> beta = 0.1;
//   auto step = rg::compile_step([=](const Tensor& x) { const Tensor loss = fit(x) + beta * divergence(x); ... });
//   step(x);
//   beta = 0.2;   // used from the next run on; a plain number would stay what it was at the recording
//
// It is used wherever a number or a Scalar is, and an integer wherever a size is: a recorded function then has a plan
// for each value. Copies share the number; any thread may change it. In code that runs eagerly it is the number that
// it is now.
#pragma once

#include <atomic>
#include <concepts>
#include <functional>
#include <memory>

#include "engine/location.h"
#include "engine/symbols.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

namespace detail {
/// The number now, or in recorded code a symbol for what it is at each run.
Scalar live_scalar(const std::shared_ptr<std::atomic<double>>& number);
Scalar live_scalar(const std::shared_ptr<std::atomic<int64_t>>& number);
Dim live_size(const std::shared_ptr<std::atomic<int64_t>>& number);
/// Recorded code depends on a live number: `is_same` tells before each run whether it is as it was.
void live_number_was_fixed(std::function<bool()> is_same, SourceLocation where);
}  // namespace detail

template <class T>
requires std::same_as<T, double> || std::same_as<T, int64_t>
class Live {
 public:
  Live(T number) : number_(std::make_shared<std::atomic<T>>(number)) {}
  /// All copies have the new number.
  Live& operator=(T number) {
    *number_ = number;
    return *this;
  }

  operator Scalar() const { return detail::live_scalar(number_); }
  /// As a size. Error(unsupported) in a recorded backward.
  operator Dim() const requires std::same_as<T, int64_t> { return detail::live_size(number_); }
  /// The plain number. A recorded function that asks for it is recorded again when it has changed; in a recorded
  /// backward it is an Error(unsupported).
  T value(SourceLocation where = SourceLocation::current()) const {
    const T now = *number_;
    detail::live_number_was_fixed([number = number_, now] { return *number == now; }, where);
    return now;
  }

 private:
  std::shared_ptr<std::atomic<T>> number_;
};

}  // namespace retrograd
#pragma GCC visibility pop
