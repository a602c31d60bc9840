// Flow: a maximum flow of a network, and the minimum cut that it gives.
//
// Dinic's algorithm: levels by a search from the source, then a blocking flow along them, until the sink has no level.
// Capacities are integers, so it ends with the exact value. The network stays as it is while capacities change: one
// network serves a sweep of them. No recursion; arrays only.
//
// Limits: the value of the flow fits into 63 bits. Each phase makes the shortest path longer, so there are at most as
// many phases as a path has edges: meant for shallow networks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace retrograd::inline v0::ir::budget {

class Flow {
 public:
  static constexpr int32_t kSource = 0, kSink = 1;

  /// `nodes`: with source and sink.
  explicit Flow(int32_t nodes);
  /// Returns its number.
  int32_t add_edge(int32_t from, int32_t to, int64_t capacity);
  void set_capacity(int32_t edge, int64_t capacity);

  /// The value of a maximum flow.
  int64_t run();
  /// After run(): whether the node is on the side of the source in the minimum cut that is nearest to it.
  bool is_with_source(int32_t node) const { return level_[static_cast<size_t>(node)] != kNone; }

 private:
  static constexpr int32_t kNone = -1;
  // Edge e and its reverse e ^ 1.
  struct Edge {
    int32_t to, next;
    int64_t capacity, left;
  };

  bool find_levels();
  int64_t push_along_path();

  std::vector<Edge> edges_;
  std::vector<int32_t> first_, now_, level_;  // of each node: edges, the one to try, steps from the source
  std::vector<int32_t> path_, queue_;
};

}  // namespace retrograd::ir::budget
