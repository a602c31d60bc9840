// See ir/budget/flow.h.
#include "ir/budget/flow.h"

#include <algorithm>

#include "ir/budget/problem.h"

namespace retrograd::inline v0::ir::budget {

Flow::Flow(int32_t nodes) : first_(at(nodes), kNone), level_(at(nodes), kNone) {}

int32_t Flow::add_edge(int32_t from, int32_t to, int64_t capacity) {
  const auto number = static_cast<int32_t>(edges_.size());
  edges_.push_back({to, first_[at(from)], capacity, 0});
  edges_.push_back({from, first_[at(to)], 0, 0});
  first_[at(from)] = number;
  first_[at(to)] = number + 1;
  return number;
}

void Flow::set_capacity(int32_t edge, int64_t capacity) { edges_[at(edge)].capacity = capacity; }

int64_t Flow::run() {
  for (Edge& e : edges_) e.left = e.capacity;
  int64_t value = 0;
  while (find_levels()) {
    now_ = first_;
    while (const int64_t pushed = push_along_path()) value += pushed;
  }
  return value;
}

bool Flow::find_levels() {
  std::ranges::fill(level_, kNone);
  level_[at(kSource)] = 0;
  queue_.assign(1, kSource);
  for (size_t i = 0; i < queue_.size(); ++i)
    for (int32_t e = first_[at(queue_[i])]; e != kNone; e = edges_[at(e)].next) {
      const Edge& edge = edges_[at(e)];
      if (edge.left == 0 || level_[at(edge.to)] != kNone) continue;
      level_[at(edge.to)] = level_[at(queue_[i])] + 1;
      queue_.push_back(edge.to);
    }
  return level_[at(kSink)] != kNone;
}

// 0 if no path along the levels is left. Edges that lead nowhere are not tried again.
int64_t Flow::push_along_path() {
  path_.clear();
  for (int32_t node = kSource; node != kSink;) {
    int32_t& e = now_[at(node)];
    const auto leads_on = [&](const Edge& edge) {
      return edge.left > 0 && level_[at(edge.to)] == level_[at(node)] + 1;
    };
    while (e != kNone && !leads_on(edges_[at(e)])) e = edges_[at(e)].next;
    if (e != kNone) {
      path_.push_back(e);
      node = edges_[at(e)].to;
      continue;
    }
    if (path_.empty()) return 0;
    level_[at(node)] = kNone;
    node = edges_[at(path_.back() ^ 1)].to;
    path_.pop_back();
  }
  const auto left = [&](int32_t e) { return edges_[at(e)].left; };
  const int64_t most = left(*std::ranges::min_element(path_, {}, left));
  for (int32_t e : path_) {
    edges_[at(e)].left -= most;
    edges_[at(e ^ 1)].left += most;
  }
  return most;
}

}  // namespace retrograd::ir::budget
