// Streams and events of a device, as owners of the runtime's handles.
//
// A device has three streams: compute, on which everything runs by default, and one for copies in each direction, so
// that they overlap with computing. Only events order streams; nothing uses the runtime's default stream.
#pragma once

#include <utility>

#include "cuda/driver.h"
#include "cuda/health.h"

namespace retrograd::inline v0::cuda {

class Event {
 public:
  /// An event that has not been recorded; it counts as fired.
  Event(Driver& driver, Health& health) : driver_(&driver) {
    health.check(driver.create_event(&handle_), "making an event");
  }
  ~Event() {
    if (handle_) driver_->destroy_event(handle_);
  }
  Event(Event&& other) noexcept : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  EventHandle handle() const { return handle_; }

 private:
  Driver* driver_;
  EventHandle handle_ = nullptr;
};

class Stream {
 public:
  Stream(Driver& driver, Health& health) : driver_(driver), health_(health) {
    health.check(driver.create_stream(&handle_), "making a stream");
  }
  ~Stream() { driver_.destroy_stream(handle_); }
  Stream(const Stream&) = delete;

  StreamHandle handle() const { return handle_; }
  void record(const Event& event) {
    health_.check(driver_.record(event.handle(), handle_), "recording an event");
  }
  /// Later work here begins after all previous work of `other`.
  void follow(Stream& other) {
    const Event event(driver_, health_);  // the runtime keeps it until it has fired
    other.record(event);
    wait(event);
  }
  /// Later work here begins when `event` has fired.
  void wait(const Event& event) {
    health_.check(driver_.wait(handle_, event.handle()), "waiting for an event");
  }
  void synchronize(std::string_view what = "synchronize") {
    health_.check(driver_.synchronize(handle_), what);
  }

 private:
  Driver& driver_;
  Health& health_;
  StreamHandle handle_ = nullptr;
};

}  // namespace retrograd::cuda
