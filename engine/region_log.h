// RegionLog: a region while it is open on a thread. The Taper tells it each call, and it names each value by the call
// that gave it.
//
// A value is known by its place: memory, version and geometry. So views and writes in place are followed: a write
// gives the memory a new value (compare tracer/function/recorded_memory.h). What no call has made (host data, memory
// that was written to behind the back of the emitters) is an input: a tensor that the region keeps.
//
// A policy (hooks/recompute_policy.h) decides for the results of each call whether they are saved. Such a value is kept
// when a record saves it, or a call whose results are recomputed reads it: then the tensor is at hand, and whether it
// is needed is known.
//
// Regions nest. Each call goes to all open logs of the thread, a saved value to the innermost region alone. An input
// that is passed to a region is a saved value of the region around it, or passes through the default pair around it.
// Limits: a log knows the calls of its own thread only; what other threads make is an input.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "engine/region.h"

namespace retrograd::inline v0 {

/// What becomes of the results of a call. A pair: they are kept as it packs them.
struct SaveDecision {
  bool is_saved = false;
  RefPtr<SavedTensorHooks> pair = {};
};
/// Decides for the results of a call; `name`: for a value that gets this name, `call` is null.
using DecideSave = std::function<SaveDecision(const Region& region, const Call* call, std::string_view name,
                                              std::span<const Tensor> results)>;

/// Lives on the thread that made it; logs of a thread usually end in the reverse order.
class RegionLog {
 public:
  /// Opens a region that is recomputed at once. `early_stop`: a recomputation ends at the last saved value, not after
  /// all calls.
  RegionLog(bool early_stop, SourceLocation where)
      : RegionLog(Region::Recompute::at_once, early_stop, {}, where) {}
  /// Opens one that is recomputed on demand.
  RegionLog(DecideSave decide, SourceLocation where)
      : RegionLog(Region::Recompute::on_demand, true, std::move(decide), where) {}
  /// Ends it as close() does, except that inputs pass through no pair.
  ~RegionLog();
  RegionLog(const RegionLog&) = delete;
  /// A tensor is passed to the region, which has just been opened.
  void pass(TensorImpl& input);
  /// Ends the region. Passed inputs that a recomputation reads go through the default pair around the region.
  void close();
  /// Ends the log on another thread: what its own thread calls is no longer logged. It must not be destroyed.
  void abandon() { is_suspended_ = true; }

  static bool is_open() { return innermost_; }
  static RegionLog* innermost() { return innermost_; }
  /// Calls of this thread go to another log, or to none, until this ends.
  class Redirect {
   public:
    explicit Redirect(RegionLog* to) : before_(std::exchange(innermost_, to)) {}
    ~Redirect() { innermost_ = before_; }
    Redirect(const Redirect&) = delete;

   private:
    RegionLog* const before_;
  };
  RegionLog* outer() const { return outer_; }
  const Region& region() const { return *region_; }

  /// Called by the Taper before and after it runs a call.
  static void begin(const Call& call);
  static void end(const Call& call, const Tensor* results);
  /// Another cell, on a storage of its own, shows the present value of `self`.
  static void stands_for(const TensorImpl& stand_in, TensorImpl& self);
  /// `self` is about to be overwritten.
  static void before_write(const TensorImpl& self);
  /// `self` was overwritten with the value of `result`, which has the same type.
  static void wrote(const TensorImpl& self, TensorImpl& result);
  /// The user has given `value` a name.
  static void name(const Tensor& value, std::string_view name);

  /// While a region is recomputed, or its policy asked, nothing is logged. Its log, if it is still open, knows what that gives by the first calls.
  class Recomputing {
   public:
    explicit Recomputing(const Region& region) : log_(of(region)) { set(true); }
    ~Recomputing() { set(false); }
    Recomputing(const Recomputing&) = delete;
    void gave(const TensorImpl& cell, Region::Value value) const {
      if (log_) log_->values_.insert_or_assign(place_of(cell), value);
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

  RegionLog(Region::Recompute how, bool early_stop, DecideSave decide, SourceLocation where);
  static RegionLog* of(const Region& region);
  static Place place_of(const TensorImpl& cell);
  uint32_t segment() const { return static_cast<uint32_t>(region_->holders_alive_.size() - 1); }

  Value read(TensorImpl& cell);
  Value value_of(TensorImpl& cell);
  Value new_values(size_t count);
  Value add_call(const OpInfo& op, std::span<const Value> operands, const void* attrs, size_t results,
                 SourceLocation where);
  Value add_part(const OpInfo& op, std::span<const Value> operands, const TensorImpl& part, const Root& root);
  Root* root_of(const TensorImpl& cell, uint32_t version);
  void set_root(const TensorImpl& cell, Value value);
  void note_results(const Call& call, const Tensor* results);
  void note_write(const TensorImpl& self, TensorImpl& result);
  void save_from_write(const TensorImpl& self);

  SaveDecision ask(const Call* call, std::string_view name, std::span<const Tensor> results);
  void decide(const Call& call, Value first, const Tensor* results);
  void keep(Value value, TensorImpl& cell, const RefPtr<SavedTensorHooks>& pair = {});
  void keep_if_saved(Value value, TensorImpl& cell);
  void note_reader(Value value, size_t call);
  void begin_segment_if_due();

  std::any save(TensorImpl& cell, const Record* owner);
  std::any save(Value value, const Record* owner, const Region* inner, size_t run, size_t started);
  void pack(Region::Kept& kept, const RefPtr<SavedTensorHooks>& pair) const;
  void end_region() noexcept;

  const RefPtr<Region> region_;
  RegionLog* outer_;
  const size_t outer_calls_;  // logged around this region when it was opened
  const bool early_stop_;
  const RefPtr<SavedTensorHooks> outer_pair_;
  std::optional<SavedTensorHooksGuard> pair_;
  bool is_suspended_ = false;                           // see Recomputing
  std::vector<std::pair<Value, TensorImpl*>> pending_;  // operands of the call that runs
  std::unordered_map<Place, Value, PlaceHash> values_;
  std::unordered_map<uint32_t, Root> roots_;                   // by identity of the memory
  std::unordered_map<uint32_t, std::vector<size_t>> kept_in_;  // on demand: kept tensors, by their memory

  // On demand.
  const DecideSave decide_;
  std::vector<bool> is_saved_;        // by value: a policy wants it kept
  std::vector<uint32_t> segment_of_;  // by value
  size_t saves_in_segment_ = 0;
  int64_t bytes_in_segment_ = 0, bytes_crossing_ = 0;

  static inline constinit thread_local RegionLog* innermost_ = nullptr;
};

}  // namespace retrograd
