// Region: a part of a forward pass whose records keep, in place of the values that they save, what is needed to compute
// them again (hooks/checkpoint.h).
//
//   RegionLog   while the region is open on a thread: the Taper tells it each call, and it names each value by the call
//               that gave it
//   Region      what remains: the calls as data, the tensors that they read and did not make (inputs), and holders in
//               place of the saved values. It is the pair of saved-tensor hooks of the records: the first unpack of a
//               holder in a backward runs the calls again, until the last value that was saved, and fills all holders
//
// The function of the user is not called again. A call is an op with operands and attributes, and draws carry their
// seed and offset; so a recomputation has no side effects and gives the same bits. The calls are emitted into the
// current emitter: a recorder makes them part of its graph.
//
// A value is known by its place: memory, version and geometry. So views and writes in place are followed: a write
// gives the memory a new value (compare tracer/function/recorded_memory.h). What no call has made (host data, memory
// that was written to behind the back of the emitters) is an input: kept, with its version. A recomputation that needs
// an input which was written to since is an Error(version_mismatch).
//
// Regions nest. Each call goes to all open logs of the thread, a saved value to the innermost region alone. An input
// that is passed to a region is a saved value of the region around it, or passes through the default pair around it.
// Limits: a log knows the calls of its own thread only; what other threads make is an input.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/tape.h"

namespace retrograd::inline v0 {

class RegionLog;

class Region final : public SavedTensorHooks {
 public:
  using Value = int32_t;  // inputs and results, in order of first use
  static constexpr Value kAbsent = -1;

  struct Call {
    const OpInfo* op;
    uint32_t attrs;          // offset in attrs_
    uint32_t first_operand;  // in operands_
    uint16_t operands, results;
    Value first_result;
    SourceLocation where;
  };

  explicit Region(SourceLocation where) : where_(where) {}

  /// Gives a holder while the region is open on this thread, else the tensor itself. `owner`: the record that saves it.
  std::any save(TensorImpl& value, const Record* owner);
  std::any pack(const Tensor& tensor) override { return save(tensor.impl(), nullptr); }
  Tensor unpack(const std::any& payload) override;
  Region* region() override { return this; }

  SourceLocation where() const { return where_; }
  const std::vector<Call>& calls() const { return calls_; }
  /// The number of calls that a recomputation runs, and the number that it starts: where the last saved value is an
  /// operand, its call is not run.
  size_t calls_run() const { return run_; }
  size_t calls_started() const { return started_; }
  /// Of all calls; and of one.
  const void* attrs() const { return attrs_.data(); }
  const void* attrs(const Call& call) const { return attrs_.data() + call.attrs; }
  size_t input_count() const { return inputs_.size(); }
  Slot& input_slot(size_t i) { return inputs_[i].slot; }
  const Slot& input_slot(size_t i) const { return inputs_[i].slot; }
  const TensorType& input_type(size_t i) const { return inputs_[i].type; }
  /// An input, as it was: Error(version_mismatch) if it was written to.
  Tensor input(size_t i) const;
  /// The records that save values of the region, null for another region that does; only those that still hold them.
  std::vector<const Record*> owners() const;
  /// The value that a holder, which pack() gave, stands for.
  static Value value_of(const std::any& payload);
  /// The number of holders that are alive. With the last one the inputs go.
  size_t holders_alive() const { return holders_alive_.load(std::memory_order_relaxed); }
  /// What a recorded backward depends on: the calls that a recomputation runs, and the types of the inputs. Sizes and
  /// numbers are not part of the structure, as in Record.
  uint64_t structure_hash() const { return structure_hash_; }
  uint64_t size_hash() const { return size_hash_; }
  /// Drops what was recomputed for a backward.
  void forget(uint64_t backward);

  /// Is told of recomputations on its thread.
  class Observer {
   public:
    virtual void recomputes(const Region& region) = 0;
    static inline constinit thread_local Observer* current = nullptr;

   protected:
    ~Observer() = default;
  };

 private:
  friend class RegionLog;
  friend class Recomputation;

  // Stands for a saved value. It lives in a slot; the region refers to it weakly.
  struct Holder {
    Holder(Region& r, Value v, const Record* o) : region(r), value(v), owner(o) { ++region.holders_alive_; }
    ~Holder() {
      if (--region.holders_alive_ == 0 && !region.is_open_) region.drop_inputs();
    }
    Holder(const Holder&) = delete;
    Tensor take(uint64_t backward);

    Region& region;  // kept alive by the slot
    const Value value;
    const Record* const owner;  // null: another region; not dereferenced
    std::vector<std::pair<uint64_t, Tensor>> recomputed;  // by backward
  };
  using Holders = std::vector<std::shared_ptr<Holder>>;
  // The slot of an input that no recomputation reads is empty.
  struct Input {
    Value value = kAbsent;
    size_t first_call = 0;  // the first that may read it
    bool is_saved = false;
    bool is_passed = false;
    TensorType type = {};
    Slot slot = {};

    bool is_stale() const;
  };

  Holders live_holders() const;
  void drop_inputs() noexcept;
  void make_hashes() noexcept;
  size_t input_at(Value value) const;

  const SourceLocation where_;
  std::vector<Call> calls_;
  std::vector<Value> operands_;
  std::vector<std::byte> attrs_;
  std::deque<Input> inputs_;  // by ascending value
  Value values_ = 0;
  size_t run_ = 0, started_ = 0;
  uint64_t structure_hash_ = 0, size_hash_ = 0;
  bool is_open_ = true;
  std::atomic<size_t> holders_alive_{0};
  std::vector<std::weak_ptr<Holder>> holders_;
  std::mutex mutex_;                     // of the next member, and of what the holders hold
  std::vector<uint64_t> recomputed_in_;  // backwards
};

/// The log of an open region. Logs of a thread nest: they end in the reverse order.
class RegionLog {
 public:
  /// Opens a region. `early_stop`: a recomputation ends at the last saved value, not after all calls.
  RegionLog(bool early_stop, SourceLocation where);
  /// Ends it as close() does, except that inputs pass through no pair.
  ~RegionLog();
  RegionLog(const RegionLog&) = delete;
  /// A tensor is passed to the region, which has just been opened.
  void pass(TensorImpl& input);
  /// Ends the region. Passed inputs that a recomputation reads go through the default pair around the region.
  void close();

  static bool is_open() { return innermost_; }
  static RegionLog* innermost() { return innermost_; }
  RegionLog* outer() const { return outer_; }
  const Region& region() const { return *region_; }

  /// Called by the Taper before and after it runs a call.
  static void begin(const retrograd::Call& call);
  static void end(const retrograd::Call& call, const Tensor* results);
  /// Another cell, on a storage of its own, shows the present value of `self`.
  static void stands_for(const TensorImpl& stand_in, TensorImpl& self);
  /// `self` was overwritten with the value of `result`, which has the same type.
  static void wrote(const TensorImpl& self, TensorImpl& result);

  /// While a region is recomputed, its log, if it is still open, knows what that gives by the first calls.
  class Recomputing {
   public:
    explicit Recomputing(const Region& region) : log_(of(region)) { set(true); }
    ~Recomputing() { set(false); }
    Recomputing(const Recomputing&) = delete;
    void gave(const TensorImpl& cell, Region::Value value) {
      if (log_) log_->bind(cell, value);
    }

   private:
    void set(bool is_suspended) {
      if (log_) log_->is_suspended_ = is_suspended;
    }
    RegionLog* const log_;
  };

 private:
  friend class Region;
  using Value = Region::Value;
  using Place = std::pair<uint64_t, uint64_t>;  // hash of memory, version and geometry
  struct PlaceHash {
    size_t operator()(const Place& place) const { return place.first; }
  };
  // What a memory holds: a value with the row-major layout of the cell, which has no storage.
  struct Root {
    Value value;
    uint32_t version;
    RefPtr<TensorImpl> cell;
  };

  static RegionLog* of(const Region& region);
  static Place place_of(const TensorImpl& cell);
  Value read(TensorImpl& cell);
  Value value_of(TensorImpl& cell);
  Value add_input(TensorImpl& cell);
  Value add_call(const OpInfo& op, std::span<const Value> operands, const void* attrs, size_t results,
                 SourceLocation where);
  Value add_part(const OpInfo& op, std::span<const Value> operands, const TensorImpl& part, const Root& root);
  Root* root_of(const TensorImpl& cell, uint32_t version);
  void set_root(const TensorImpl& cell, Value value);
  void note_results(const retrograd::Call& call, const Tensor* results);
  void note_write(const TensorImpl& self, TensorImpl& result);
  void bind(const TensorImpl& cell, Value value) { values_.insert_or_assign(place_of(cell), value); }
  std::any save(TensorImpl& cell, const Record* owner);
  std::any save(Value value, const Record* owner, size_t run, size_t started);
  void pack_inputs();
  void pack_input(Region::Input& input) const;
  void end_region() noexcept;

  const RefPtr<Region> region_;
  RegionLog* const outer_;
  const size_t outer_calls_;  // logged around this region when it was opened
  const bool early_stop_;
  const RefPtr<SavedTensorHooks> outer_pair_;
  std::optional<SavedTensorHooksGuard> pair_;
  bool is_suspended_ = false;   // its own recomputation runs
  Value passed_ = 0;            // the first values are inputs that were passed
  std::vector<Value> pending_;  // operands of the call that runs
  std::unordered_map<Place, Value, PlaceHash> values_;
  std::unordered_map<uint32_t, Root> roots_;  // by identity of the memory

  static inline constinit thread_local RegionLog* innermost_ = nullptr;
};

}  // namespace retrograd
