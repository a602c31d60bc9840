// RunMeter: the measurement of a run (tracer/plan/peak_meter.h). It separates the memory that the plan is responsible
// for, which the forecast knows, from memory that is live or freed because of user code.
//
// Memory that was passed to or returned by user code is **known** while a register or slot of the run has it. Other
// allocations of user code show in the live bytes. Known memory has two properties: it may be **live**, and it may be
// **planned**, which means that the forecast counts it. Memory that the plan allocated and passed to user code is
// planned until the last register that did not get it from user code releases it; if it is still live then, user code
// holds it, and its bytes are unplanned from there on. Memory returned by user code is never planned. The forecast
// predicts which results share memory with their operands. The prediction fails if user code also holds the operand,
// or returned it in another layout than assumed. The memory of such a result then counts as in the forecast.
// Start reading at before() and after(), then look().
#pragma once

#include "tracer/plan/forecast.h"
#include "tracer/plan/peak_meter.h"

namespace retrograd::inline v0 {

class RunMeter {
 public:
  explicit RunMeter(PlanRun& run) : RunMeter(run, forecast(run)) {}
  void before(const Step& s);
  /// To be called after user code, before the step releases dying values.
  void called();
  void after(const Step& s);
  /// Runs user code between two steps.
  template <class Code>
  void between_steps(const Code& code) {
    begin_code();
    code();
    end_code();
  }

 private:
  RunMeter(PlanRun& run, MemoryTimeline timeline);
  struct Known {
    const Storage* memory;
    int64_t bytes;
    std::vector<const Slot*> slots = {};  // that hold it and are emptied by the run
    bool is_planned = false;              // the forecast counts it
    bool is_live = true;
    bool is_kept = false;    // the forecast counts it to the end
    bool is_shared = false;  // held also outside the run
    int64_t unplanned() const { return bytes * (is_live - is_planned); }
  };
  // The forecast for a result of a step.
  struct Result {
    bool lies_over = false;            // it shares memory with an operand
    const Storage* operand = nullptr;  // memory of that operand; null: none
    int64_t bytes = 0;
    bool is_from_code = false;  // the operand
  };
  // The state of the current step.
  struct Current {
    bool is_code = false;
    bool is_first = false;         // a leaf gets its first gradient, the expected one
    std::vector<Result> expected;  // of each result
    int64_t live = 0;              // before it
    int64_t within = 0;            // bytes that it takes, or saves, only because of user code
  };

  TensorImpl* cell(int32_t r) const { return r < 0 ? nullptr : run_.frame().at[static_cast<size_t>(r)]; }
  std::span<const int32_t> operands(const Step& s) const { return {program_.registers_of(s), s.operands}; }
  std::span<const int32_t> results(const Step& s) const {
    return {program_.registers_of(s) + s.operands, s.results};
  }
  std::span<const int32_t> dying(const Step& s) const {
    return {program_.registers_of(s) + s.operands + s.results, s.dying};
  }
  TensorImpl& leaf_of(const Step& s) const { return *run_.bindings()[static_cast<size_t>(s.bound)].leaf; }
  void begin_code();
  void end_code();
  bool calls_code(const Step& s) const;
  Known* find(const Storage* memory);
  void know(const TensorImpl* x, bool came_from_code);
  bool is_held(const Known& k, bool planned) const;
  bool is_shared(const Known& k) const;
  int32_t source(const Step& s, size_t result) const;
  Result expected(const Step& s, size_t result) const;
  void note_memory(const Result& expected, const TensorImpl& x);
  void note_result(const Result& expected, int32_t r);
  void note_leaf(const Result& expected, const TensorImpl& grad);
  int64_t unplanned() const;
  void look(size_t known_before);

  const PlanRun& run_;
  const Program& program_;
  MeteredRun measured_;
  const std::vector<bool> lies_over_;  // by the forecast
  std::vector<bool> from_code_;        // of each register: its value came from user code
  std::vector<Known> known_;
  // Unplanned bytes of memory that is not known; negative if user code freed planned memory.
  int64_t unseen_ = 0;
  int64_t unplanned_ = 0;  // these and the known ones
  Current now_;
};

}  // namespace retrograd
