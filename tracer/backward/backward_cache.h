// BackwardCache: the captured backwards of a CompiledBackward, by structure, and the look-up for a call.
//
//   structure   its trail and key, and its graphs: more than one if sizes that were equal by chance differed later
//   capture     a graph, and its plans by sizes (tracer/backward/capture.h)
// A call first compares the tape with the structure that ran last; then it hashes it. If a graph of the structure
// fits the sizes but has no plan for them, it gets another plan; if no graph fits, the backward is recorded. Least
// recently used entries are evicted first.
//
// Any number of threads: the mutex guards everything declared below it, and is not held while a backward is recorded
// or run. The look-up returns shared pointers, so that evicted entries live until their runs are over.
#pragma once

#include <list>
#include <mutex>
#include <unordered_map>

#include "tracer/backward/capture.h"
#include "tracer/backward/compile_backward.h"
#include "tracer/backward/trail.h"

namespace retrograd::inline v0 {

class BackwardCache {
 public:
  struct Structure {
    Key key;
    Trail trail;
    std::vector<std::shared_ptr<Capture>> captures;
    int64_t runs = 0;
  };
  /// The graph and plan that a call runs.
  struct Found {
    std::shared_ptr<Structure> structure;
    std::shared_ptr<Capture> capture;
    std::shared_ptr<const Capture::Entry> entry;
    std::vector<Number> numbers;  // instead of entry->values, if the graph has numbers
    bool captured = false;        // captured for this call
    std::span<const Number> values() const { return numbers.empty() ? entry->values : numbers; }
  };

  /// Looks up graph and plan, and makes what is missing. Counts the call as a run.
  Found prepare(const BackwardRequest& request, Reached& reached);
  /// Whether existing entries would serve a call. Counts nothing.
  bool knows(const BackwardRequest& request, Reached& reached);
  /// A run left its graph.
  void count_left();

  CompiledBackward::Stats stats() const;
  /// The capture of the last call; null before the first.
  std::shared_ptr<Capture> last() const;
  std::string reason() const;
  std::string explain() const;
  void reset();

 private:
  struct KeyHash {
    size_t operator()(const Key& k) const { return k[0]; }
  };

  std::shared_ptr<Structure> newest() const;
  std::shared_ptr<Structure> find(const Key& key);
  std::shared_ptr<Structure> add(const Key& key, const BackwardRequest& request, Walk& walk,
                                 uint64_t regions);
  static bool find_plan(const std::shared_ptr<Structure>& structure, const Key& sizes, const Reached& reached,
                        Found& found);
  bool look_up(const std::shared_ptr<Structure>& structure, const BackwardRequest& request,
               const Reached& reached, Found& found, std::string& misfit);
  Found look_up_or_capture(const BackwardRequest& request, Reached& reached);
  Found capture(const std::shared_ptr<Structure>& structure, const BackwardRequest& request, Walk& walk,
                const Reached& reached);

  mutable std::mutex mutex_;
  std::list<std::shared_ptr<Structure>> structures_;  // most recently used first
  std::unordered_map<Key, std::list<std::shared_ptr<Structure>>::iterator, KeyHash> by_key_;
  std::shared_ptr<Capture> last_;
  std::string reason_;
  CompiledBackward::Stats stats_;
};

}  // namespace retrograd
