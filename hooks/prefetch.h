// Values that come back before they are asked for.
//
// What a pair of saved-tensor hooks brings from elsewhere takes time, and an eager backward does not know what comes next. The plan of a
// recorded one does (tracer/prefetch.h): a pair that has a Prefetcher is told some nodes ahead that a payload will be unpacked, and begins. The
// unpack itself stays where it is: checks, errors and the order of hooks are those of an eager backward.
#pragma once

#include <any>
#include <cstdint>

namespace retrograd {

struct PrefetchOptions {
  /// A value is begun when so many nodes that compute lie between there and its use, at the most; 0: where it is used, as in an eager backward.
  /// What is started together, as a graph of launches, counts as one.
  int nodes = 1;
  /// By how much that may lift the peak of a backward. What does not fit is begun later, at its use at the latest.
  int64_t room_bytes = 0;
};

/// May be called from several threads, as the pair that it belongs to.
class Prefetcher {
 public:
  virtual PrefetchOptions options() const = 0;
  /// The bytes that begin() takes till the unpack; 0: nothing can be begun for this payload.
  virtual int64_t bytes(const std::any& payload) const = 0;
  /// The next unpack of the payload gives what is begun here. If there is something begun already, nothing happens.
  virtual void begin(const std::any& payload) = 0;
  /// Lets go of what was begun and not unpacked; the payload is as before.
  virtual void drop(const std::any& payload) noexcept = 0;

 protected:
  ~Prefetcher() = default;
};

}  // namespace retrograd
