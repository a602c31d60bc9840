// Temporary memory of kernels: elements without initialisation, aligned to 64 bytes, freed at the end of the scope.
// The amount that a call needs is known before it runs, from types, layouts, attributes and the number of threads.
//
//   Scratch<T>        elements for a whole call
//   ThreadScratch<T>  the same for each thread of a loop; mine() returns this thread's
//   ScratchRoom       for calls made by the chunks of a loop, if these need memory themselves
//
// All three are created on the thread that runs the call, before its loops, and are freed in reverse order. Where the
// bytes come from:
// - from an area that was lent (ScratchArea), one piece after the other, as long as they fit into it;
// - else from the allocator of tensor data: they are counted and limited as such;
// - from nowhere while a call is measured (measure_scratch): it then runs up to the point where it has asked
//   for all it needs. Parallel loops run no chunk, pieces are at an address where nothing is, as the data of
//   its tensors. What else would touch data is left out where measuring() is true. A kernel that asks for
//   memory is marked in the kernel table (KernelTable::kScratch); the others are not measured.
//
// Sizes are rounded up to 64 bytes, so that the pieces of a call add up to the area that holds them.
// OutOfMemory if there is none, or if the size in bytes overflows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/parallel.h"

namespace retrograd::inline v0::cpu {

/// The address of data while a call is measured: not null, must not be accessed.
inline void* const kNowhere = reinterpret_cast<void*>(uintptr_t{64});

/// True while a call is measured.
inline bool measuring() { return loop_thread.measures; }

namespace detail {

// The memory requested by this thread's calls since the area was lent, or measuring began.
struct ScratchStack {
  std::byte* area = nullptr;
  int64_t size = 0;  // of the area
  int64_t top = 0, peak = 0;
};
extern constinit thread_local ScratchStack scratch_stack;

int64_t scratch_size(int64_t count, size_t item);  // in bytes, rounded up
void* take_scratch(int64_t bytes);
void give_scratch(void* piece, int64_t bytes) noexcept;

}  // namespace detail

/// Lends memory to the calls of this thread, for a scope. It begins at a multiple of 64 bytes.
class ScratchArea {
 public:
  explicit ScratchArea(std::span<std::byte> memory) : before_(detail::scratch_stack) {
    detail::scratch_stack = {memory.data(), static_cast<int64_t>(memory.size())};
  }
  ~ScratchArea() { detail::scratch_stack = before_; }
  ScratchArea(const ScratchArea&) = delete;
  /// The most bytes in use at a time so far.
  int64_t peak() const { return detail::scratch_stack.peak; }

 private:
  detail::ScratchStack before_;
};

template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t size) : bytes_(detail::scratch_size(size, sizeof(T))) {
    static_assert(alignof(T) <= 64);
    if (bytes_ > 0) data_ = static_cast<T*>(detail::take_scratch(bytes_));
  }
  ~Scratch() {
    if (bytes_ > 0) detail::give_scratch(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  /// Null when there are no elements.
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  int64_t bytes_;
  T* data_ = nullptr;
};

/// Parts are a page apart: hardware prefetch beyond the end of a thread's part would take lines from the thread that
/// writes there (a product of 128 x 128 x 128 took a tenth longer on cores that share little).
template <class T>
class ThreadScratch {
 public:
  /// For loops of at most `chunks` chunks: no more threads take part in loops that begin during its lifetime.
  explicit ThreadScratch(int64_t size, int64_t chunks = INT64_MAX)
      : limit_(chunks),
        bytes_(detail::scratch_size(size, sizeof(T))),
        memory_(bytes_ > 0 ? bytes_ + (limit_.threads() - 1) * pitch() : 0) {}
  int64_t bytes() const { return bytes_; }  // of one thread
  /// The part of this thread, in a chunk; null when there are no elements.
  T* mine() const {
    const bool is_first = bytes_ == 0 || limit_.threads() == 1;
    return reinterpret_cast<T*>(memory_.data() + (is_first ? 0 : loop_thread.number * pitch()));
  }

 private:
  static constexpr int64_t kApart = 4096;
  int64_t pitch() const { return bytes_ + kApart; }

  ThreadLimit limit_;
  int64_t bytes_;
  Scratch<std::byte> memory_;
};

/// The most bytes that f() uses at a time; f() runs without memory and data.
template <class F>
int64_t measure_scratch(const F& f) {
  const ScratchArea counters({});
  const LoopThread before = loop_thread;
  struct Restore {
    const LoopThread& state;
    ~Restore() { loop_thread = state; }
  } restore{before};
  loop_thread.measures = true;
  f();
  return counters.peak();
}

/// The same for the work of a chunk of a loop of `chunks` chunks.
template <class F>
int64_t measure_chunk(int64_t chunks, const F& f) {
  return measure_scratch([&] {
    loop_thread.inside = loop_thread.inside || chunks > 1;
    f();
  });
}

/// Memory for calls made by the chunks of a loop: `bytes` for each thread, from measure_chunk(). In a chunk:
///   const ScratchArea area = room.lend();
class ScratchRoom {
 public:
  ScratchRoom(int64_t bytes, int64_t chunks) : bytes_(bytes), parts_(bytes, chunks) {}
  ScratchArea lend() const { return ScratchArea({parts_.mine(), static_cast<size_t>(bytes_)}); }

 private:
  int64_t bytes_;
  ThreadScratch<std::byte> parts_;
};

}  // namespace retrograd::cpu
