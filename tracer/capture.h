// Capture: one recorded backward with what binds it to a run, and its plans.
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

  /// Records the backward. The graph's outputs are the gradients of request.inputs when they are not accumulated.
  static std::unique_ptr<Capture> record(const BackwardRequest& request, Walk& walk);

  /// Values of all expressions at the sizes and numbers of this run; empty, with a reason, when the graph does not fit.
  std::vector<Number> values(const BackwardRequest& request, const Walk& walk, std::string& misfit) const;
  /// Reads the numbers in attributes again; the sizes in `values` stay. False when a guard then comes out otherwise than at capture.
  bool update_numbers(const Walk& walk, std::vector<Number>& values) const;
  std::vector<ir::Binding> bind(const BackwardRequest& request, const Walk& walk) const;

  struct Entry {
    std::array<uint64_t, 2> sizes;
    std::vector<Number> values;
    std::unique_ptr<Plan> plan;
  };
  Entry* find(const std::array<uint64_t, 2>& sizes);
  Entry& add(const std::array<uint64_t, 2>& sizes, std::vector<Number> values);

  const ir::Graph& graph() const { return graph_; }
  int64_t unpack_count() const { return unpacks_; }

 private:
  int64_t size_at(const SymbolUse& use, const BackwardRequest& request, const Walk& walk) const;

  ir::Graph graph_;
  std::vector<Source> sources_;
  std::vector<SymbolUse> uses_;
  std::list<Entry> plans_;
  int64_t unpacks_ = 0;
  bool has_numbers_ = false;
};

}  // namespace retrograd
