// StripedLock: a few mutexes shared by many objects, chosen by address, for what is rarely contended and too small for a mutex of its own.
// Two objects may share one: who holds a lock must not ask for that of another object of the same StripedLock.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

namespace retrograd {

class StripedLock {
 public:
  std::mutex& of(const void* object) {
    return locks_[reinterpret_cast<uintptr_t>(object) * 0x9E3779B97F4A7C15u >> 58];
  }

 private:
  std::array<std::mutex, 64> locks_;
};

}  // namespace retrograd
