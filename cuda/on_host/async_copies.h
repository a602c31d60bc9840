// Copies to shared memory that a thread has begun and not yet waited for (cp.async), of one thread. They are executed
// as late as a device may execute them: at the wait that asks for them. A kernel that reads too early, or overwrites
// the source too early, gives wrong results.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

namespace on_host {

class AsyncCopies {
 public:
  /// `filled` bytes from `source`, then zeros.
  void begin(void* to, const void* source, size_t bytes, size_t filled) {
    open_.push_back({static_cast<char*>(to), static_cast<const char*>(source), bytes, filled});
  }
  /// The copies begun since the last commit() become a group.
  void commit() {
    groups_.push_back(std::move(open_));
    open_ = {};
  }
  /// Waits until at most `left` groups are unfinished.
  void wait(size_t left) {
    while (groups_.size() > left) {
      for (const Copy& c : groups_.front()) {
        if (c.filled > 0) std::memcpy(c.to, c.source, c.filled);
        std::memset(c.to + c.filled, 0, c.bytes - c.filled);
      }
      groups_.erase(groups_.begin());
    }
  }

 private:
  struct Copy {
    char* to;
    const char* source;
    size_t bytes, filled;
  };
  std::vector<Copy> open_;
  std::vector<std::vector<Copy>> groups_;
};

}  // namespace on_host
