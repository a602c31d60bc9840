// See ir/budget/flow.h.
#include "ir/budget/flow.h"

#include <algorithm>

namespace retrograd::inline v0::ir::budget {
namespace {

size_t index(int32_t number) { return static_cast<size_t>(number); }

}  // namespace

Flow::Flow(int32_t nodes) : first_(index(nodes), kNone), level_(index(nodes), kNone) {}

int32_t Flow::add_edge(int32_t from, int32_t to, int64_t capacity) {
  const auto number = static_cast<int32_t>(edges_.size());
  edges_.push_back({to, first_[index(from)], capacity, 0});
  edges_.push_back({from, first_[index(to)], 0, 0});
  first_[index(from)] = number;
  first_[index(to)] = number + 1;
  return number;
}

void Flow::set_capacity(int32_t edge, int64_t capacity) { edges_[index(edge)].capacity = capacity; }

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
  level_[index(kSource)] = 0;
  queue_.assign(1, kSource);
  for (size_t i = 0; i < queue_.size(); ++i)
    for (int32_t e = first_[index(queue_[i])]; e != kNone; e = edges_[index(e)].next) {
      const Edge& edge = edges_[index(e)];
      if (edge.left == 0 || level_[index(edge.to)] != kNone) continue;
      level_[index(edge.to)] = level_[index(queue_[i])] + 1;
      queue_.push_back(edge.to);
    }
  return level_[index(kSink)] != kNone;
}

// 0 if no path along the levels is left. Edges that lead nowhere are not tried again.
int64_t Flow::push_along_path() {
  path_.clear();
  for (int32_t node = kSource; node != kSink;) {
    int32_t& e = now_[index(node)];
    const auto leads_on = [&](const Edge& edge) {
      return edge.left > 0 && level_[index(edge.to)] == level_[index(node)] + 1;
    };
    while (e != kNone && !leads_on(edges_[index(e)])) e = edges_[index(e)].next;
    if (e != kNone) {
      path_.push_back(e);
      node = edges_[index(e)].to;
      continue;
    }
    if (path_.empty()) return 0;
    level_[index(node)] = kNone;
    node = edges_[index(path_.back() ^ 1)].to;
    path_.pop_back();
  }
  const auto left = [&](int32_t e) { return edges_[index(e)].left; };
  const int64_t most = left(*std::ranges::min_element(path_, {}, left));
  for (int32_t e : path_) {
    edges_[index(e)].left -= most;
    edges_[index(e ^ 1)].left += most;
  }
  return most;
}

}  // namespace retrograd::ir::budget
