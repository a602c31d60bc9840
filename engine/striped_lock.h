// StripedLock: a few mutexes shared by many objects, chosen by address, for objects that are rarely contended and too
// small for a mutex of their own. Two objects may share one mutex: a thread that holds a lock must not lock another
// object of the same StripedLock.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

namespace retrograd::inline v0 {

class StripedLock {
 public:
  std::mutex& of(const void* object) {
    return locks_[reinterpret_cast<uintptr_t>(object) * 0x9E3779B97F4A7C15u >> 58];
  }

 private:
  std::array<std::mutex, 64> locks_;
};

}  // namespace retrograd
