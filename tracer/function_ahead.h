// Gradients computed ahead: a part of a recorded function (tracer/function_capture.h).
//
// A loss made of elementwise ops saves nothing but what it was given: its backward computes what the forward has computed once more
// (ir/passes/recompute.h), exponentials and all. Its cotangent is nearly always 1, as loss.backward() begins. So there is a third plan, of both
// graphs with a cotangent of 1: it gives the loss and, from the same values and bit for bit, the gradients, which the backward hands over.
// Whether a call runs it is a guess from what became of the calls before; a wrong guess costs the time of a backward, never a result: for another
// cotangent, for gradients that are differentiated again, or where the graph is retained, the backward computes as it would have.
// What is kept between forward and backward is at most what an eager run saves, and so is the peak.
#pragma once

#include <atomic>

#include "tracer/function_capture.h"

namespace retrograd {

/// Whether the next call should compute gradients ahead. Threads may ask and tell at once.
class Foresight {
 public:
  /// With so many wrong guesses, or four for each right one behind them, there is no guess any more.
  static constexpr int64_t kMisses = 8;

  bool expects() const { return expects_.load(std::memory_order_relaxed); }
  /// A backward came that gradients computed ahead would serve, or did.
  void would_serve(bool did) {
    if (did) hits_.fetch_add(1, std::memory_order_relaxed);
    expects_.store(misses() < kMisses + hits() / 4, std::memory_order_relaxed);
  }
  /// Gradients were computed ahead, and no backward took them.
  void missed() {
    misses_.fetch_add(1, std::memory_order_relaxed);
    expects_.store(false, std::memory_order_relaxed);
  }
  int64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  int64_t misses() const { return misses_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> expects_ = false;
  std::atomic<int64_t> hits_ = 0, misses_ = 0;
};

/// The plan of forward and backward, for a cotangent of 1. Its outputs are those of the forward, then the gradients of `backward`.
struct FunctionCapture::Ahead {
  const Backward* backward = nullptr;
  ir::Graph planned;
  std::vector<Source> sources;
  std::unique_ptr<Plan> plan;
  Foresight foresight;
};

}  // namespace retrograd
