// HostDriver: a Driver without a device, for tests. Memory is the host's, of a size that the test chooses; copies run at once; each call can
// be made to fail. Events fire when they are recorded, or, with `holds_events`, when the test lets them.
//
// `log` has what was asked of streams, a line each ("copy 16 on 1", "record e0 on 2", "wait e0 on 1"): streams and events go by the order in
// which they were made.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "cuda/driver.h"

namespace retrograd::cuda {

class HostDriver final : public Driver {
 public:
  explicit HostDriver(size_t bytes = size_t{1} << 30, int devices = 1) : capacity(bytes), devices(devices) {}

  size_t capacity, used = 0;
  int devices;
  Status count_status = kSuccess;
  Status next_launch = kSuccess;  // what last_error() gives once
  Status next_synchronize = kSuccess;
  bool holds_events = false;
  std::string log;
  int synchronizations = 0;

  /// Lets the events fire that were held back.
  void fire_all() {
    for (auto& [event, fired] : fired_) fired = true;
  }
  void fire(EventHandle event) { fired_[event] = true; }
  size_t events() const { return fired_.size(); }
  size_t blocks() const { return sizes_.size(); }

  Status device_count(int* count) override {
    *count = count_status == kSuccess ? devices : 0;
    return count_status;
  }
  const char* text(Status status) override {
    return status == kMemoryAllocation ? "out of memory" : "something failed";
  }
  Status use(int) override { return kSuccess; }
  Status memory_info(size_t* free, size_t* total) override {
    *free = capacity - used;
    *total = capacity;
    return kSuccess;
  }
  Status allocate(void** memory, size_t bytes) override {
    if (used + bytes > capacity) return kMemoryAllocation;
    *memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
    used += bytes;
    sizes_[*memory] = bytes;
    return kSuccess;
  }
  Status free(void* memory) override {
    used -= sizes_.at(memory);
    sizes_.erase(memory);
    std::free(memory);
    return kSuccess;
  }
  Status allocate_pinned(void** memory, size_t bytes) override {
    *memory = std::malloc(bytes);
    ++pinned_made;
    return kSuccess;
  }
  Status free_pinned(void* memory) override {
    std::free(memory);
    return kSuccess;
  }
  Status create_stream(StreamHandle* stream) override {
    *stream = reinterpret_cast<StreamHandle>(++streams_);
    return kSuccess;
  }
  Status destroy_stream(StreamHandle) override { return kSuccess; }
  Status synchronize(StreamHandle) override {
    ++synchronizations;
    return std::exchange(next_synchronize, kSuccess);
  }
  Status create_event(EventHandle* event) override {
    *event = reinterpret_cast<EventHandle>(++made_);
    fired_[*event] = true;
    return kSuccess;
  }
  Status destroy_event(EventHandle event) override {
    fired_.erase(event);
    return kSuccess;
  }
  Status record(EventHandle event, StreamHandle stream) override {
    fired_[event] = !holds_events;
    note("record e" + number(event) + " on " + number(stream));
    return kSuccess;
  }
  Status wait(StreamHandle stream, EventHandle event) override {
    note("wait e" + number(event) + " on " + number(stream));
    return kSuccess;
  }
  Status query(EventHandle event) override { return fired_.at(event) ? kSuccess : kNotReady; }
  Status synchronize(EventHandle event) override {
    fired_.at(event) = true;
    note("synchronize e" + number(event));
    return kSuccess;
  }
  Status copy(void* to, const void* from, size_t bytes, StreamHandle stream) override {
    std::memcpy(to, from, bytes);
    note("copy " + std::to_string(bytes) + " on " + number(stream));
    return kSuccess;
  }
  Status last_error() override { return std::exchange(next_launch, kSuccess); }
  std::unique_ptr<Blas> open_blas() override { return make_blas ? make_blas() : nullptr; }
  Status describe(int, DeviceDescription* d) override {
    *d = {.name = "the host in a device's place", .memory_bytes = capacity};
    return kSuccess;
  }

  std::function<std::unique_ptr<Blas>()> make_blas;  // what open_blas() gives

  int pinned_made = 0;

 private:
  template <class H>
  static std::string number(H* handle) {
    return std::to_string(reinterpret_cast<uintptr_t>(handle));
  }
  void note(const std::string& line) { log += line + "\n"; }

  uintptr_t streams_ = 0, made_ = 0;
  std::map<EventHandle, bool> fired_;
  std::map<void*, size_t> sizes_;
};

}  // namespace retrograd::cuda
