// Prefetching: values that are fetched before they are needed.
//
// A pair of saved-tensor hooks that fetches a value from elsewhere takes time, and an eager backward does not know what
// comes next. The plan of a recorded one does (tracer/plan/prefetch_schedule.h): it tells a pair with a Prefetcher some
// nodes in advance that a payload will be unpacked, and the pair begins to fetch. The unpack itself stays where it is:
// checks, errors and the order of hooks are those of an eager backward.
#pragma once

#include <any>
#include <cstdint>

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct PrefetchOptions {
  /// A fetch begins at most this many computing nodes before its use; 0: at the use, as in an eager backward. Nodes
  /// that are started together, as a graph of launches, count as one.
  int nodes = 1;
  /// How much prefetching may raise the peak of a backward. A value that does not fit is fetched later, at its use at
  /// the latest.
  int64_t room_bytes = 0;
};

/// Several threads may call it at the same time, as they may the pair that it belongs to.
class Prefetcher {
 public:
  virtual PrefetchOptions options() const = 0;
  /// The bytes that begin() takes until the unpack; 0: this payload cannot be prefetched.
  virtual int64_t bytes(const std::any& payload) const = 0;
  /// Begins the fetch that the next unpack of the payload will return. Does nothing if one has begun already.
  virtual void begin(const std::any& payload) = 0;
  /// Releases a fetch that was begun and not unpacked; the payload is as before.
  virtual void drop(const std::any& payload) noexcept = 0;

 protected:
  ~Prefetcher() = default;
};

}  // namespace retrograd
#pragma GCC visibility pop
