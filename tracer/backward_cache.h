// BackwardCache: the captured backwards of a CompiledBackward, by their structure, and how a call finds its own.
//
//   structure   how it is recognised (trail and key), and its graphs: more than one when sizes that were equal by chance differed later
//   capture     a graph, and its plans by sizes (tracer/capture.h)
// A call first compares the tape with the structure that ran last; then it hashes it. A graph of the structure that fits the sizes gets
// another plan; if none does, the backward is recorded. The least recently used go first.
//
// Any number of threads: the mutex guards everything below it, and is not held while a backward is recorded or run. What is found are
// shared pointers, so that what is evicted lives until its runs are over.
#pragma once

#include <list>
#include <mutex>
#include <unordered_map>

#include "tracer/capture.h"
#include "tracer/compile_backward.h"
#include "tracer/trail.h"

namespace retrograd {

class BackwardCache {
 public:
  struct Structure {
    Key key;
    Trail trail;
    std::vector<std::shared_ptr<Capture>> captures;
    int64_t runs = 0;
  };
  /// What a call runs.
  struct Found {
    std::shared_ptr<Structure> structure;
    std::shared_ptr<Capture> capture;
    std::shared_ptr<const Capture::Entry> entry;
    std::vector<Number> numbers;  // instead of entry->values, when the graph has numbers
    bool captured = false;        // for this call
    std::span<const Number> values() const { return numbers.empty() ? entry->values : numbers; }
  };

  /// Looks up, and records what is missing. Counts the call as one that runs.
  Found prepare(const BackwardRequest& request, Reached& reached);
  /// Whether a call would be served by what is there. Counts nothing.
  bool knows(const BackwardRequest& request, Reached& reached);
  /// A run left its graph.
  void count_left();

  CompiledBackward::Stats stats() const;
  /// Of the last call; null before the first.
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
  std::shared_ptr<Structure> add(const Key& key, const BackwardRequest& request, Walk& walk);
  static bool find_plan(const std::shared_ptr<Structure>& structure, const Key& sizes, const Reached& reached,
                        Found& found);
  bool look_up(const std::shared_ptr<Structure>& structure, const BackwardRequest& request,
               const Reached& reached, Found& found, std::string& misfit);
  Found look_up_or_capture(const BackwardRequest& request, Reached& reached);
  Found capture(const std::shared_ptr<Structure>& structure, const BackwardRequest& request, Walk& walk,
                const Reached& reached);

  mutable std::mutex mutex_;
  std::list<std::shared_ptr<Structure>> structures_;  // the last used first
  std::unordered_map<Key, std::list<std::shared_ptr<Structure>>::iterator, KeyHash> by_key_;
  std::shared_ptr<Capture> last_;
  std::string reason_;
  CompiledBackward::Stats stats_;
};

}  // namespace retrograd
