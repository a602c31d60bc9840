// Forecast: the most bytes that will be live during a run of a plan, found before it runs.
//
// It simulates the memory of the run step by step: which memory is held, and when its last holder releases it. Memory
// is **ours** if it is held only by registers and slots that this run empties; it is freed with its last holder. All
// other memory stays allocated: parameters, saved values that the user still holds, values handed out. Layouts of
// views are computed, since only dense tensors take over memory. The memory use of user code is ignored
// (tracer/plan/peak_meter.h): user code is assumed not to keep its operands, and its results cost nothing. In a plan
// for a device, memory on the CPU is ignored as well. Cost: a hash map of the slots, and a step of the same order as
// a replayed one.
#pragma once

#include "tracer/plan/run.h"

namespace retrograd::inline v0 {

/// The memory that a run will hold. User code and the values of `unpacks` do not count.
struct MemoryTimeline {
  int64_t most = 0;           // bytes, at any step
  int64_t at_begin = 0;       // bytes
  int64_t at_end = 0;         // bytes, outputs included
  std::vector<int64_t> live;  // of each step, the most during it
  std::vector<size_t> last;   // of each of `unpacks`: the last step that needs its memory
  // Parallel to Program::registers: a result that will share its operand's memory; the operand that a leaf will take
  // over.
  std::vector<bool> lies_over;
  // Of Program::fused: the nodes run one by one, as their kernel is not available yet.
  std::vector<bool> one_by_one;
};

MemoryTimeline forecast(const PlanRun& run, std::span<const UnpackStep> unpacks = {});

}  // namespace retrograd
