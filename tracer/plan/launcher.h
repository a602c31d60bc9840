// Launcher: one step of a plan as a call of a kernel, of a fused kernel, of a view's layout or of an op that runs on
// the host.
//
// A result is stored in memory that its register already holds (the arena, a written input), over an operand that
// dies here and that only this run sees, or in new memory of the register's own cell.
// While a segment is recorded (`recording`), results are stored in memory that the recordings keep.
#pragma once

#include <vector>

#include "engine/host_code.h"
#include "engine/tape.h"
#include "tracer/plan/frame.h"

namespace retrograd::inline v0 {

/// The records of a tape whose slots a run reads, and the regions whose inputs it reads; none for a run of a recorded
/// function. `retain`: slots of records are not emptied.
struct SavedSlots {
  /// The place of the first region: they follow the records.
  static constexpr uint32_t kRegions = uint32_t{1} << 31;

  std::span<Record* const> records = {};
  std::span<Region* const> regions = {};
  bool retain = false;

  /// The index of tensor `part` of the payload in a slot; -1: of the saved value.
  static uint32_t index(uint32_t slot, int32_t part) {
    return slot | static_cast<uint32_t>(part + 1) << kPart;
  }
  Slot& slot(uint64_t record, uint32_t index) const;
  /// The tensor of a payload that an index means; null: it means the saved value.
  const Tensor* part(uint64_t record, uint32_t index) const;
  /// The saved value, or a tensor of its payload; a slot of a record that is not retained is emptied.
  Tensor value(uint64_t record, uint32_t index) const;

 private:
  static constexpr int kPart = 8;  // bits of a slot's number
  static int32_t part_of(uint64_t record, uint32_t index) {
    return record >= kRegions ? -1 : static_cast<int32_t>(index >> kPart) - 1;
  }
};

class Launcher {
 public:
  Launcher(const Program& program, Frame& frame, SavedSlots slots)
      : program_(program), frame_(frame), slots_(slots) {}

  /// A step of kind span, kernel, view or host.
  void call(const Step& s);
  /// A step of kind code.
  void code(const Step& s, HostCode& code);
  void fused(const Step& s);
  /// Gives a register's own cell the memory that the recordings keep for it.
  void put_memory(size_t r);
  void* attrs_of(const StepAttrs& attrs) const { return AttrTable::of_run(attrs, frame_.patched); }

  const Recordings* recording = nullptr;
  /// For each of Program::fused, whether its nodes run one by one, as assumed by the forecast. Empty: the kernels
  /// decide.
  std::vector<bool> one_by_one;

 private:
  void view(const Step& s, const Call& call);
  void host(const Step& s, const Call& call);
  void take_results(const Step& s, Tensor* results);
  void kernel(const Step& s, const Call& call);
  void kernel_over(const Step& s, const Call& call, TensorImpl** operands);
  TensorImpl* fused_output(const Step& s, size_t o, TensorImpl** inputs, RefPtr<TensorImpl>& kept);
  void give_memory(size_t r);
  std::span<std::byte> scratch(int32_t piece) const;
  Kernel kernel_of(const Step& s, const Call& call) const {
    return s.kind == StepKind::span ? program_.executor.find(call.op) : s.kernel;
  }

  const Program& program_;
  Frame& frame_;
  const SavedSlots slots_;
};

}  // namespace retrograd
