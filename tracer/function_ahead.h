// Gradients computed ahead: a part of a recorded function (tracer/function_capture.h).
//
// A loss made of elementwise ops saves nothing but what it was given: its backward computes what the forward has computed once more
// (ir/passes/recompute.h), exponentials and all. Its cotangent is nearly always 1, as loss.backward() begins. So there is a third plan, of both
// graphs with a cotangent of 1: it gives the loss and, from the same values and bit for bit, the gradients, which the backward hands over.
// It is made when a first backward comes that it would have served. Whether a call runs it is a guess from what became of the calls before; a
// wrong guess costs the time of a backward, never a result: for another cotangent, for gradients that are differentiated again, or where the
// graph is retained, the backward computes as it would have, and where there is no memory for it, so does the forward.
// What is kept between forward and backward is at most what an eager run saves, and so is the peak.
// On the CPU only, and for float32 and float64: elsewhere nobody can look at a cotangent without waiting, or does.
#pragma once

#include <atomic>

#include "tracer/function_capture.h"

namespace retrograd {

/// Whether the next call should compute gradients ahead. Threads may ask and tell at once.
class Foresight {
 public:
  /// So many guesses may be wrong, and one more for each four that were right; those that wait for a backward count as wrong.
  static constexpr int64_t kMisses = 8;

  bool expects() const {
    return expects_.load(std::memory_order_acquire) && waiting_ + misses_ < kMisses + hits_ / 4;
  }
  /// Gradients were computed ahead, and wait.
  void computed() { ++waiting_; }
  /// A backward came that had them.
  void served() {
    --waiting_;
    ++hits_;
    expect();
  }
  /// A backward came that would have had them.
  void expect() { expects_.store(true, std::memory_order_release); }
  /// No backward takes them any more.
  void missed() {
    --waiting_;
    ++misses_;
    expects_.store(false, std::memory_order_relaxed);
  }
  int64_t hits() const { return hits_; }
  int64_t misses() const { return misses_; }

 private:
  std::atomic<bool> expects_ = false;
  std::atomic<int64_t> waiting_ = 0, hits_ = 0, misses_ = 0;
};

/// The plan of forward and backward, for a cotangent of 1. Its outputs are those of the forward, then the gradients of `backward`.
struct FunctionCapture::Ahead {
  const Backward* backward = nullptr;
  // Made under the mutex of the capture, and there from the first time on that foresight expects something.
  bool is_tried = false;
  ir::Graph planned;
  std::vector<Source> sources;
  std::unique_ptr<Plan> plan;  // null: does not pay
  Foresight foresight;
};

}  // namespace retrograd
