// Region: a part of a forward pass whose records keep, in place of the values that they save, what is needed to compute
// them again (hooks/checkpoint.h, hooks/recompute_policy.h). A RegionLog (engine/region_log.h) makes it.
//
// It has the calls as data; the tensors that it keeps: those that the calls read and did not make (inputs), and results
// that a policy saves; and holders in place of the saved values. It is the pair of saved-tensor hooks of the records:
// the first unpack of a holder in a backward makes a Recomputation (region.cc), which runs calls again.
//
//   at once    all calls run, until the last value that was saved, and give the values of all holders
//   on demand  an unpack runs the calls that lead to its value; other values wait for their last use
//
// The function of the user is not called again. A call is an op with operands and attributes, and draws carry their
// seed and offset; so a recomputation has no side effects and gives the same bits. The calls are emitted into the
// current emitter: a recorder makes them part of its graph.
//
// A recomputation that needs a kept tensor which was written to since is an Error(version_mismatch).
// A kept tensor is dropped with the last holder that may need it. To tell, a region is divided into segments: the
// values that a segment reads from an earlier one are kept. Only regions on demand have more than one.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/tape.h"

namespace retrograd::inline v0 {

class Recomputation;
class Region;

/// While one is open on a thread, eager backwards of this thread share what they recompute. It lives as long as the
/// group. Error(bad_argument) where one is open.
class RecomputeGroup {
 public:
  explicit RecomputeGroup(SourceLocation where);
  ~RecomputeGroup();
  RecomputeGroup(const RecomputeGroup&) = delete;

 private:
  friend class Region;
  const uint64_t id_;
  std::vector<RefPtr<Region>> regions_;  // that were recomputed
  static inline constinit thread_local RecomputeGroup* current = nullptr;
};

/// Counters of the process.
struct RecomputeCounters {
  std::atomic<int64_t> regions{0}, calls{0}, recomputed{0};
};
inline constinit RecomputeCounters recompute_counters;

class Region final : public SavedTensorHooks {
 public:
  using Value = int32_t;  // inputs and results, in order of first use
  static constexpr Value kAbsent = -1;
  static constexpr uint32_t kNoAttrs = ~uint32_t{0};

  struct Call {
    const OpInfo* op;
    uint32_t attrs;          // offset in attrs_, or kNoAttrs
    uint32_t first_operand;  // in operands_
    uint16_t operands, results;
    Value first_result;
    SourceLocation where;
  };

  enum class Recompute : uint8_t { at_once, on_demand };

  Region(Recompute how, SourceLocation where);
  ~Region();

  /// Gives a holder while the region is open on this thread, else the tensor itself. `owner`: the record that saves it.
  std::any save(TensorImpl& value, const Record* owner);
  std::any pack(const Tensor& tensor) override { return save(tensor.impl(), nullptr); }
  Tensor unpack(const std::any& payload) override;
  Region* region() override { return this; }

  SourceLocation where() const { return where_; }
  Recompute how() const { return how_; }
  const std::vector<Call>& calls() const { return calls_; }
  /// The number of calls that a recomputation at once starts. Where the last saved value is an operand, the last of them
  /// is not run.
  size_t calls_started() const { return started_; }
  /// Of all calls; and of one.
  const void* attrs() const { return attrs_.data(); }
  const void* attrs(const Call& call) const {
    return call.attrs == kNoAttrs ? nullptr : attrs_.data() + call.attrs;
  }

  size_t kept_count() const { return kept_.size(); }
  Slot& kept_slot(size_t i) { return kept_[i].slot; }
  const Slot& kept_slot(size_t i) const { return kept_[i].slot; }
  const TensorType& kept_type(size_t i) const { return kept_[i].type; }
  /// A kept tensor, as it was: Error(version_mismatch) if it was written to.
  Tensor kept(size_t i) const;
  int64_t kept_bytes() const { return kept_bytes_; }

  /// The records that still hold saved values of the region, or of regions that hold one.
  std::vector<const Record*> owners() const;
  /// The value that a holder, which pack() gave, stands for.
  static Value value_of(const std::any& payload);
  /// Calls f(i) for each tensor that would be dropped if one more holder of this one's segment went. `gone`: the
  /// number of holders gone before, by segment.
  template <class F>
  void each_dropped_with(const std::any& payload, std::vector<size_t>& gone, const F& f) const;

  /// What a recorded backward depends on: the calls that a recomputation runs, and what is kept. Sizes and numbers are
  /// not part of the structure, as in Record.
  uint64_t structure_hash() const { return structure_hash_; }
  uint64_t size_hash() const { return size_hash_; }
  /// Drops what was recomputed for a backward.
  void forget(uint64_t backward);

  /// Is told of recomputations on its thread.
  class Observer {
   public:
    virtual void recomputes(const Region&) {}
    /// A call is run again.
    virtual void runs(const Call&) {}
    static inline constinit thread_local Observer* current = nullptr;

   protected:
    ~Observer() = default;
  };

 private:
  friend class RegionLog;
  friend class Recomputation;

  // Stands for a saved value. It lives in a slot; the region refers to it weakly.
  struct Holder {
    Holder(Region& r, Value v, uint32_t s, const Record* o, const Region* i);
    ~Holder();
    Holder(const Holder&) = delete;

    Region& region;  // kept alive by the slot
    const Value value;
    const uint32_t segment;
    const Record* const owner;  // not dereferenced; null:
    const Region* const inner;  // a region inside that keeps the value
  };
  using Holders = std::vector<std::shared_ptr<Holder>>;
  // The slot is empty once no recomputation reads it.
  struct Kept {
    Value value = kAbsent;
    size_t first_call = SIZE_MAX;                  // the first that reads it
    uint32_t first_segment = 0, last_segment = 0;  // that read it
    bool is_saved = false;                         // a holder stands for it
    bool is_passed = false;                        // to the region, by its user
    TensorType type = {};
    Slot slot = {};
  };

  Holders live_holders() const;
  bool is_dead(const Kept& kept) const;
  void drop_kept() noexcept;
  void make_hashes() noexcept;
  /// Of a kept value, else kept_count().
  size_t kept_at(Value value) const;
  std::span<const Value> operands(const Call& call) const {
    return {operands_.data() + call.first_operand, call.operands};
  }

  const SourceLocation where_;
  const Recompute how_;
  std::vector<Call> calls_;
  std::vector<Value> operands_;
  std::vector<std::byte> attrs_;
  std::deque<Kept> kept_;         // in order of keeping
  std::vector<int32_t> kept_of_;  // by value: place in kept_, -1: not kept
  int64_t kept_bytes_ = 0;
  size_t run_ = 0, started_ = 0;
  uint64_t structure_hash_ = 0, size_hash_ = 0;
  std::atomic<bool> is_open_{true};
  std::deque<std::atomic<size_t>> holders_alive_;  // by segment
  std::vector<std::weak_ptr<Holder>> holders_;
  std::mutex mutex_;                                                          // of the next member
  std::vector<std::pair<uint64_t, std::shared_ptr<Recomputation>>> running_;  // by backward, or group
};

template <class F>
void Region::each_dropped_with(const std::any& payload, std::vector<size_t>& gone, const F& f) const {
  const auto* holder = std::any_cast<std::shared_ptr<Holder>>(&payload);
  if (!holder) return;
  gone.resize(holders_alive_.size());
  if (++gone[(*holder)->segment] < holders_alive_[(*holder)->segment].load(std::memory_order_relaxed)) return;
  const uint32_t ended = (*holder)->segment;
  for (size_t i = 0; i < kept_.size(); ++i) {
    const Kept& kept = kept_[i];
    bool is_needed = ended < kept.first_segment || ended > kept.last_segment;
    for (uint32_t s = kept.first_segment; s <= kept.last_segment && !is_needed; ++s)
      is_needed = gone[s] < holders_alive_[s].load(std::memory_order_relaxed);
    if (!is_needed) f(i);
  }
}

}  // namespace retrograd
