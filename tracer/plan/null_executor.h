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
// A launch has its number and the types of its results; "over" says that the results are in an operand's memory, "at"
// their offset in the arena of the run, so that nothing was allocated for them. Memory is real and zeroed, since
// hooks and host ops read it.
//
// A NullExecutor that records launches (NullExecutor executor(true)) makes graphs of them, numbered in order of
// creation. Launches between "record" and "end" are in the graph and do not run:
//
//   record graph 0
//   launch mul#6 f32[2,2] at 0
//   end
//   start graph 0
//
// An executor is not notified of freed memory. At the next event it sees that less tensor data is live than before
// (memory::stats); allocations by others in the meantime hide as many bytes of it.
//
// Limits: one thread; no other thread may use tensors meanwhile.
#pragma once

#include <string>
#include <vector>

#include "engine/allocator.h"
#include "engine/executor.h"

namespace retrograd::inline v0 {

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
  /// As on a device, which it then represents.
  bool joins_updates(const TensorType&) const override { return records_; }
  std::unique_ptr<LaunchGraph> new_graph() override;
  std::string_view host_work(const OpInfo& op, const void*, std::span<const TensorType>,
                             std::span<const TensorType>) const override;

  /// The events so far, one per line.
  std::string text() const;
  int64_t allocations() const { return allocations_; }
  int64_t launches() const { return launches_; }
  /// Adds a line of the caller, in order with the others.
  void note(std::string line) { lines_.push_back(std::move(line)); }
  /// Forgets all events, numbers included; memory freed from now on is noted.
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
