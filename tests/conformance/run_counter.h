// Counts how often each labelled op call is started: by the program, and by the recomputations of its checkpoints.
//
// While a call runs, each open region notes the label with the number of calls that it has logged. A recomputation
// starts the labels that were noted before the last call that it starts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/region_log.h"

namespace retrograd::conformance {

class RunCounter final : public Region::Observer {
 public:
  RunCounter() : outer_(std::exchange(current, this)) {}
  ~RunCounter() { current = outer_; }
  RunCounter(const RunCounter&) = delete;

  /// To be called when a checkpoint begins: another region may have had its address.
  void begins(const Region& region) { labels_[&region].clear(); }
  void starts(const std::string& label) {
    ++counts_[label];
    for (const RegionLog* log = RegionLog::innermost(); log; log = log->outer())
      labels_[&log->region()].emplace_back(label, log->region().calls().size());
  }
  void recomputes(const Region& region) override {
    for (const auto& [label, first_call] : labels_[&region])
      if (first_call < region.calls_started()) ++counts_[label];
  }
  const std::map<std::string, int>& counts() const { return counts_; }

 private:
  Observer* const outer_;
  std::map<std::string, int> counts_;
  std::map<const Region*, std::vector<std::pair<std::string, size_t>>> labels_;
};

}  // namespace retrograd::conformance
