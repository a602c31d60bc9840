// Capture: one recorded backward with its bindings to a run, and its plans, one per set of sizes.
//
// On a device, nodes that can run as one step are adjacent in the graph (tracer/backward/capture_fusion.cc).
//
// Immutable except for the list of plans, which the owner guards. Captures and plans are shared pointers: an evicted
// or forgotten one stays alive until its runs are over.
#pragma once

#include <list>
#include <memory>

#include "tracer/backward/key.h"
#include "tracer/backward/recorded_backward.h"

namespace retrograd::inline v0 {

class Capture {
 public:
  static constexpr size_t kPlans = 16;  // kept per graph; least recently used evicted first

  /// Records the backward. The graph's outputs are the gradients of the inputs if they are not accumulated.
  /// `inlines`: it contains the unpacks of traceable pairs; else it calls them.
  static std::shared_ptr<Capture> record(const BackwardRequest& request, Walk& walk, const Reached& reached,
                                         bool inlines = true);

  /// The values of all expressions for one set of sizes, and a plan for them; none for a backward that is recorded
  /// itself, which runs by replay into the Taper.
  struct Entry {
    Key sizes;
    std::vector<Number> values;
    std::unique_ptr<Plan> plan;
  };

  /// Values of all expressions at the sizes and numbers of this run; empty, with a reason, if the graph does not fit.
  std::vector<Number> values(const BackwardRequest& request, const Reached& reached,
                             std::string& misfit) const;
  /// `values` with the numbers of this run; the sizes stay. Returns false if a guard then evaluates differently than
  /// at capture.
  bool read_numbers(const Reached& reached, std::vector<Number>& values) const;
  bool has_numbers() const { return !numbers_.empty() || !lives_.empty(); }
  const RecordedBackward& recorded() const { return recorded_; }

  std::shared_ptr<const Entry> make_plan(const Key& sizes, std::vector<Number> values) const;
  std::shared_ptr<const Entry> find(const Key& sizes);
  /// Returns true if another plan was evicted.
  bool keep(std::shared_ptr<const Entry> entry);

  const ir::Graph& graph() const { return recorded_.graph; }
  int64_t unpack_count() const { return unpacks_; }
  size_t plan_count() const { return plans_.size(); }

 private:
  void take_numbers(const Reached& reached, std::vector<Number>& values) const;
  int64_t size_at(const SymbolUse& use, const BackwardRequest& request, const Reached& reached) const;
  void fuse(const BackwardRequest& request, const Reached& reached);

  RecordedBackward recorded_;
  std::vector<SymbolUse> sizes_, numbers_;
  std::vector<LiveUse> lives_;
  std::vector<RefPtr<Hook>> inlined_;
  std::vector<RefPtr<SavedTensorHooks>> inlined_pairs_;
  std::list<std::shared_ptr<const Entry>> plans_;  // most recently used first
  int64_t unpacks_ = 0;
  bool is_replayed_ = false;
};

}  // namespace retrograd
