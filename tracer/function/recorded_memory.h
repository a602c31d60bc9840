// RecordedMemory: the memory of a recorded function. The graph is functional; this class tracks the value that each
// storage holds.
//
// Each storage has a **root**: the first cell on it, and its current value. A read of a cell with the root's geometry
// returns the root's value, a read of another cell a view of it (as_strided); a write replaces the value, or the part
// of it that the cell shows (as_strided_scatter). So views, detached tensors and their bases stay consistent,
// whichever of them is written through. A computed result has a storage without memory, whose version counts writes
// as in eager mode: version errors are the same. Values without a layout, which opaque hooks return, have no root:
// they are never written to.
// An input that is not row-major, or whose memory is accessed beyond its ends, is written as a row: all of its
// memory. A graph has one value for all cells on the same memory. Where one of them has another history, a replay
// would be wrong: has_two_histories().
// Start reading at value_of() and write(). Roots of inputs are made by FunctionInputs.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tracer/function/recorded_function.h"

namespace retrograd::inline v0 {

class FunctionRecorder;

struct Root {
  RefPtr<Storage> storage;
  RefPtr<TensorImpl> cell;  // its layout; null: row-major, not requested yet
  ir::ValueId value = ir::kNoValue;
  bool is_written = false;
  RefPtr<TensorImpl> history;  // after a write: the base whose history the value has; null: none
  int32_t input = -1;          // of memory from outside: its input
  bool is_gradient = false;    // the .grad of a leaf, whichever tensor that is in a run
  int32_t base_of = -1;        // the argument whose base this is; becomes an input when needed
  int32_t seen = -1;           // base_of, or an argument in this memory; -1: a computed value
  Dim seen_offset = 0;         // where that argument begins
  int arguments = 0;           // number of arguments in this memory
  bool is_flat = false;        // value and cell are all of the memory, as a row
  bool is_outside = false;     // the value has been written to the memory that host code sees
  bool was_outside = false;    // this value, or an earlier one
  int32_t output = -1;         // that holds the value, once requested
  int32_t old_of = -1;  // the value is what the memory of this input held, until the next write outside
  const Storage* outside = nullptr;
  Tensor host_values;           // what the host has filled it with, for the recording
  RefPtr<TensorImpl> as_input;  // the layout of the input
  std::vector<std::pair<RefPtr<TensorImpl>, ir::ValueId>> views;  // of the current value
};

/// A storage of the given size without memory: a recorded value uses it for its version and to detect sharing.
inline RefPtr<Storage> memory_without_data(int64_t bytes) {
  return Storage::wrap(nullptr, bytes, nullptr, nullptr);
}
/// A detached cell with the layout of `cell`.
RefPtr<TensorImpl> geometry_of_cell(const TensorImpl& cell);

/// Whether two cells of one storage show the same elements.
bool same_geometry(const TensorImpl& a, const TensorImpl& b);

class RecordedMemory {
 public:
  explicit RecordedMemory(FunctionRecorder& of) : of_(of) {}

  /// The root of a cell's storage; storage from outside becomes an input.
  Root& root_of(TensorImpl& cell);
  Root* find(const Storage* storage);
  const Root* find(const Storage* storage) const;
  Root& new_root(TensorImpl& cell, ir::ValueId value);
  /// In order of creation.
  const std::vector<Root*>& roots() const { return order_; }
  /// Notes that a root begins as the memory of `storage`, from outside.
  void begin_outside(Root& root, const Storage* storage);

  /// The current value of a cell. `has_history`: the reader has a gradient for it.
  ir::ValueId value_of(TensorImpl& cell, bool has_history);
  /// The part of the current value of its root that a cell shows.
  ir::ValueId shown(Root& root, const TensorImpl& cell);
  /// `self` has the value of `result` from now on.
  void write(TensorImpl& self, const Tensor& result, SourceLocation where);
  /// A tensor passed to or returned by host code: it has this value now.
  void lies_outside(const Tensor& tensor, ir::ValueId value);
  /// See FunctionRecording.
  void made_of_host_values(const Tensor& copy, const Tensor& values);
  Tensor host_values(const TensorImpl& cell) const;
  /// The current value of `self`, as a cell that later writes do not change.
  Tensor present_value(TensorImpl& self);
  /// To be called before a node overwrites the memory of an input: present values that others hold become copies.
  void copy_present_values(const Root& overwritten);
  /// A row-major cell for a value.
  Tensor computed(const TensorType& type, ir::ValueId value);
  void lay_out(TensorImpl& cell);

  Location location_of(const Tensor& tensor);
  ir::ValueId input_value(const Root& root) const;
  /// An input in this memory: of the root itself, or of an argument that is a view of it. kNoValue for computed memory.
  ir::ValueId value_outside(const Root& root) const;
  /// Whether the cell is on the memory of the initial .grad of a leaf.
  bool is_gradient(const TensorImpl& cell) const;
  /// For each value, the value whose memory it uses: itself, or the one that it is a view of.
  std::vector<ir::ValueId> shown_values() const;
  /// For each value, whether it is an input that is written to.
  std::vector<bool> overwritten_inputs() const;

  /// Refuses written memory to which two inputs would be bound, one of them a tensor from outside.
  void check_alone(const Root& root) const;
  bool has_two_histories() const;
  /// Memory from outside that was written to.
  const std::unordered_set<const Storage*>& outside_writes() const { return outside_writes_; }
  /// Whether arguments share memory.
  bool shares_memory() const { return shares_memory_; }
  /// To be called after the function has been recorded: later runs also write to memory from outside, which are not
  /// writes of the recorded function.
  void note_versions();
  uint32_t version_at_end(const Storage& memory) const;

  template <class F>
  void each_held(const F& f) const {
    for (const auto& [storage, root] : roots_) {
      f(root.cell.get()), f(root.as_input.get()), f(root.history.get());
      for (const auto& [cell, value] : root.views) f(cell.get());
    }
  }

 private:
  ir::ValueId emit_geometry(const OpInfo& op, const TensorImpl& cell, ir::ValueId value,
                            const TensorImpl& part, const Tensor& with, int64_t bytes);
  ir::ValueId relate(const OpInfo& op, Root& root, const TensorImpl& cell, const Tensor& with);
  void flatten(Root& root);
  ir::ValueId detached(ir::ValueId value);
  void note_read(const Root& root, const TensorImpl& cell);

  FunctionRecorder& of_;
  std::unordered_map<const Storage*, Root> roots_;
  std::vector<Root*> order_;
  std::unordered_map<const Storage*, int> roots_outside_;  // number of roots that began as this memory
  std::unordered_map<ir::ValueId, ir::ValueId> detached_;
  std::vector<ir::ValueId> without_history_;  // written values that were read without a gradient
  bool has_two_histories_ = false;
  std::unordered_set<const Storage*> outside_writes_;
  std::unordered_map<const Storage*, uint32_t> versions_at_end_;  // of memory from outside
  bool shares_memory_ = false;
};

}  // namespace retrograd
