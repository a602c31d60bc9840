// NullExecutor: computes nothing and notes what it is told to do, in order: a plan made for it shows what it
// launches and when it takes memory. It has a kernel for every op and no inner loops, so that each step of a
// plan but views and host ops is a launch. The lines are:
//
//   allocate f32[2,2]
//   launch mul#3 f32[2,2]
//   launch neg#4 f32[2,2] over operand 0
//   free 16 bytes
//   arena of 128 bytes
//   launch neg#5 f32[2,2] at 64
//
// A launch has its number and the types of its results; "over" says that they lie in an operand's memory, "at"
// where in the arena of the run, so that nothing was allocated for them. Memory is real and zeroed, since hooks and host ops read it.
//
// One that records launches (NullExecutor executor(true)) has graphs of them, numbered in the order in which they were made. What is launched
// between "record" and "end" is in the graph and does not run:
//
//   record graph 0
//   launch mul#6 f32[2,2] at 0
//   end
//   start graph 0
//
// An executor is not told of memory that is given back, by a plan or by anybody. It sees at the next event
// that less tensor data is live than before (memory::stats); what others took meanwhile hides as much of it.
//
// Limits: one thread, which alone uses tensors meanwhile.
#pragma once

#include <string>
#include <vector>

#include "engine/allocator.h"
#include "engine/executor.h"

namespace retrograd {

class NullExecutor final : public Executor {
 public:
  explicit NullExecutor(bool records_launches = false) : records_(records_launches) {}

  std::string_view name() const override { return "null"; }
  Kernel find(const OpInfo* op) const override;
  void allocate(TensorImpl& cell) override;
  RefPtr<Storage> allocate_memory(int64_t bytes) override;
  void launch(Kernel kernel, const Call& call, TensorImpl* const* outputs,
              std::span<std::byte> scratch) override;

  bool records_launches() const override { return records_; }
  /// As a device does, which it stands for then.
  bool joins_updates(const TensorType&) const override { return records_; }
  std::unique_ptr<LaunchGraph> new_graph() override;
  std::string_view host_work(const OpInfo& op, const void*, std::span<const TensorType>,
                             std::span<const TensorType>) const override;

  /// What happened so far, a line each.
  std::string text() const;
  int64_t allocations() const { return allocations_; }
  int64_t launches() const { return launches_; }
  /// A line of somebody else's, at its place among the others.
  void note(std::string line) { lines_.push_back(std::move(line)); }
  /// Forgets what happened, numbers included; memory that is given back from now on is noted.
  void clear();

 private:
  class Graph;
  void note_freed();
  std::string place(const Call& call, TensorImpl* const* outputs) const;

  const bool records_;
  std::vector<std::string> lines_;
  int graphs_ = 0;
  int64_t allocations_ = 0, launches_ = 0;
  const std::byte* arena_ = nullptr;  // the last
  int64_t arena_bytes_ = 0;
  int64_t live_bytes_ = memory::stats().live_bytes;  // at the last event
};

}  // namespace retrograd
