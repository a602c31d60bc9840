// Plan: a captured graph made ready to run for one set of sizes, and its replay.
//
//   Step     one node: kernel, view, or host work; operand and result registers; registers whose value dies here.
//   Register where a value is during a run. Values of one type whose lifetimes do not overlap share a register.
//   Frame    the registers of one run: prepared cells with type and strides set, to which only memory is given. A plan is immutable; frames
//            are leased, so concurrent and nested runs of one plan do not meet.
// A register's memory is allocated when its value is computed and freed at its last use. An elementwise step takes over the register of an
// operand that dies in it, and writes over its memory when nobody else sees that. An unpacked value is the saved cell itself: nothing is copied.
// Numbers in attributes that are symbols are filled in at each run, in copies that belong to the frame.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "engine/executor.h"
#include "ir/replay.h"

namespace retrograd {

class Plan {
 public:
  /// `values`: of every expression of graph.symbols at these sizes. The graph must outlive the plan.
  Plan(const ir::Graph& graph, std::span<const Number> values, Executor& executor);
  ~Plan();
  Plan(const Plan&) = delete;

  /// Runs every step in order and returns the graph's outputs. `numbers`: values of all expressions for this run (empty: those of the plan).
  /// retain: slots keep what they hold; else each is emptied when it is unpacked.
  Tensors run(std::span<const ir::Binding> bindings, std::span<const Number> numbers, bool retain) const;

  size_t step_count() const { return steps_.size(); }
  /// True when an attribute depends on a number of the run.
  bool has_numbers() const { return !patches_.empty(); }

 private:
  struct Frame;
  enum class Kind : uint8_t { kernel, view, host, unpack, hook, accumulate_grad, retain_grad };
  struct Step {
    const OpInfo* op;
    Kernel kernel;
    void* attrs;
    SourceLocation where;
    uint32_t first_register;  // operands, then results, then the dying, in registers_
    int32_t handle;
    uint16_t operands, results, dying;
    Kind kind;
    int8_t takes = -1;        // operand that dies here and whose register, and memory if it may, the result takes over
  };
  struct Patch {
    uint32_t step;
    size_t offset;            // of the copy in the frame's attribute bytes
    void* symbolic;           // attributes with symbols
  };

  void plan_steps(std::span<const Number> values);
  void assign_registers();
  std::unique_ptr<Frame> new_frame() const;
  void patch_numbers(Frame& frame, std::span<const Number> numbers) const;
  void run_step(Frame& frame, const Step& step, void* attrs, std::span<const ir::Binding> bindings, bool retain) const;
  void run_kernel(Frame& frame, const Step& step, const Call& call, const int32_t* results) const;
  void run_over(Frame& frame, const Step& step, const Call& call, TensorImpl** operands, int32_t result) const;
  void run_bound(Frame& frame, const Step& step, const ir::Binding& binding, bool retain) const;

  const ir::Graph& graph_;
  Executor& executor_;
  std::vector<Step> steps_;
  std::vector<int32_t> registers_;      // operand -1: none
  std::vector<int32_t> register_types_;  // of each register, into cell_types_
  std::vector<TensorType> cell_types_;   // the distinct types of the graph, concrete
  std::vector<int32_t> input_registers_, output_registers_;
  std::vector<std::unique_ptr<std::byte[]>> attrs_;
  std::vector<Patch> patches_;
  size_t patch_bytes_ = 0;
  mutable std::atomic<Frame*> spare_{nullptr};
};

}  // namespace retrograd
