// Capture: one recorded backward with what binds it to a run, and its plans, one per set of sizes.
//
// On a device, what can run as one step stands together in the graph (tracer/capture_fusion.cc).
//
// Immutable but for the list of plans, which the owner guards. Captures and plans are shared pointers: one that is evicted or forgotten
// stays alive until its runs are over.
#pragma once

#include <list>
#include <memory>

#include "tracer/key.h"
#include "tracer/plan.h"
#include "tracer/recorder.h"

namespace retrograd {

class Capture {
 public:
  static constexpr size_t kPlans = 16;  // kept per graph; the least recently used one goes first

  /// Records the backward. The graph's outputs are the gradients of the inputs when they are not accumulated.
  static std::shared_ptr<Capture> record(const BackwardRequest& request, Walk& walk);

  /// The values of all expressions for one set of sizes, and a plan for them; none for a backward that is recorded itself, which runs by
  /// replay into the Taper.
  struct Entry {
    Key sizes;
    std::vector<Number> values;
    std::unique_ptr<Plan> plan;
  };

  /// Values of all expressions at the sizes and numbers of this run; empty, with a reason, when the graph does not fit.
  std::vector<Number> values(const BackwardRequest& request, const Reached& reached,
                             std::string& misfit) const;
  /// `values` with the numbers of this run; the sizes stay. False when a guard then comes out otherwise than at capture.
  bool read_numbers(const Reached& reached, std::vector<Number>& values) const;
  bool has_numbers() const { return !numbers_.empty(); }
  /// The graph calls code of the user's, which may change what is to come.
  bool may_leave() const { return log_.may_leave; }
  std::vector<ir::Binding> bind(const BackwardRequest& request, const Reached& reached) const;
  /// Empties the slots of the records whose rules lie within the first `ran` nodes: for a run by replay, which does not.
  void release_slots(const Reached& reached, size_t ran) const;

  std::shared_ptr<const Entry> make_plan(const Key& sizes, std::vector<Number> values) const;
  std::shared_ptr<const Entry> find(const Key& sizes);
  /// True when another plan had to go.
  bool keep(std::shared_ptr<const Entry> entry);

  const ir::Graph& graph() const { return graph_; }
  int64_t unpack_count() const { return unpacks_; }
  size_t plan_count() const { return plans_.size(); }

 private:
  int64_t size_at(const SymbolUse& use, const BackwardRequest& request, const Reached& reached) const;
  void fuse(const BackwardRequest& request, const Walk& walk);

  ir::Graph graph_;
  std::vector<Source> sources_;
  std::vector<SymbolUse> sizes_, numbers_;
  std::vector<RuleRun> rules_;
  DriveLog log_;
  std::vector<RefPtr<Hook>> inlined_;
  std::list<std::shared_ptr<const Entry>> plans_;  // the last used first
  int64_t unpacks_ = 0;
  bool is_replayed_ = false;
};

}  // namespace retrograd
