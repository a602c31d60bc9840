// See ir/budget/cut.h; start reading at Hull::run().
#include "ir/budget/cut.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "ir/budget/exact.h"
#include "ir/budget/flow.h"

namespace retrograd::inline v0::ir::budget {
namespace {

class Hull {
 public:
  explicit Hull(const Problem& problem)
      : problem_(problem),
        late_(candidates_of(problem).late),
        maker_(problem.makers()),
        network_(static_cast<int32_t>(2 + late_ + std::ssize(problem.blocks))) {
    add_blocks();
    add_tasks();
    for (int32_t t = 0; t < late_; ++t) whole_ += problem.tasks[at(t)].cost;
    if (whole_ == 0) whole_ = 1;
    scale_ = std::max(1.0, std::floor(kMostBytes / std::max(bytes_, 1.0)));
    for (const auto& [edge, block] : saves_)
      network_.set_capacity(edge, static_cast<int64_t>(scaled(problem.blocks[at(block)].bytes)));
  }

  std::vector<std::vector<Run>> run(size_t most_plans) {
    vertices_.push_back(at_mu(kInfinite));
    vertices_.push_back(at_mu(0.5));  // all costs together are less than a byte
    std::deque<std::pair<size_t, size_t>> between{{0, 1}};
    for (; !between.empty() && vertices_.size() <= most_plans; between.pop_front()) {
      const auto [more, less] = between.front();
      const double bytes = vertices_[more].bytes - vertices_[less].bytes,
                   cost = vertices_[less].cost - vertices_[more].cost;
      if (bytes <= 0 || cost <= 0) continue;
      const double mu = std::min(bytes / cost, kInfinite);
      Vertex found = at_mu(mu);
      const auto price = [mu](const Vertex& v) { return v.bytes + mu * v.cost; };
      if (price(found) >= price(vertices_[more]) * (1 - 1e-9)) continue;
      between.emplace_back(more, vertices_.size());
      between.emplace_back(vertices_.size(), less);
      vertices_.push_back(std::move(found));
    }
    return plans();
  }

 private:
  // Sums of bytes and of costs below it are exact in a double, and far from the limit of a flow.
  static constexpr double kMostBytes = 1e15, kInfinite = 1e17;

  struct Vertex {
    double bytes = 0, cost = 0;  // saved; of what is made again, as a share of the early tasks'
    std::vector<int32_t> again;  // blocks
  };

  int32_t node_of_task(int32_t t) const { return 2 + t; }
  int32_t node_of_block(int32_t b) const { return 2 + late_ + b; }
  bool is_early(int32_t task) const { return task >= 0 && task < late_; }
  // Memory that costs nothing to save is always saved.
  bool has_choice(int32_t b) const {
    return is_early(maker_[at(b)]) && !problem_.blocks[at(b)].to_end && problem_.blocks[at(b)].bytes > 0;
  }
  double scaled(double price) const { return std::min(price * scale_, kInfinite); }
  double share(int32_t t) const { return problem_.tasks[at(t)].cost / whole_; }

  void add_blocks() {
    needed_until_.assign(problem_.blocks.size(), Task::kNever);
    for (int32_t t = late_; t < std::ssize(problem_.tasks); ++t)
      for (int32_t b : problem_.tasks[at(t)].operands) needed_until_[at(b)] = t;
    for (int32_t b = 0; b < std::ssize(problem_.blocks); ++b) {
      if (!has_choice(b)) continue;
      if (needed_until_[at(b)] >= 0)
        network_.add_edge(Flow::kSource, node_of_block(b), static_cast<int64_t>(kInfinite));
      saves_.emplace_back(network_.add_edge(node_of_block(b), node_of_task(maker_[at(b)]), 0), b);
      bytes_ += static_cast<double>(problem_.blocks[at(b)].bytes);
    }
  }
  // From the last: what a task is needed for comes after it.
  void add_tasks() {
    runs_.assign(at(late_), kMayNot);
    for (int32_t t = late_ - 1; t >= 0; --t) {
      const Task& task = problem_.tasks[at(t)];
      int32_t until = Task::kNever;
      for (int32_t b : task.results) until = std::max(until, needed_until_[at(b)]);
      const int32_t edge = network_.add_edge(node_of_task(t), Flow::kSink, static_cast<int64_t>(kInfinite));
      if (task.until < until) continue;
      runs_[at(t)] = edge;
      for (int32_t b : task.operands) {
        needed_until_[at(b)] = std::max(needed_until_[at(b)], until);
        if (has_choice(b))
          network_.add_edge(node_of_task(t), node_of_block(b), static_cast<int64_t>(kInfinite));
      }
    }
  }

  Vertex at_mu(double mu) {
    for (int32_t t = 0; t < late_; ++t)
      if (runs_[at(t)] != kMayNot)
        network_.set_capacity(runs_[at(t)], static_cast<int64_t>(std::max(1.0, scaled(mu * share(t)))));
    network_.run();
    Vertex vertex;
    for (int32_t t = 0; t < late_; ++t)
      if (network_.is_with_source(node_of_task(t))) vertex.cost += share(t);
    for (const auto& [edge, b] : saves_) {
      if (!network_.is_with_source(node_of_block(b))) continue;
      if (network_.is_with_source(node_of_task(maker_[at(b)])))
        vertex.again.push_back(b);
      else
        vertex.bytes += static_cast<double>(problem_.blocks[at(b)].bytes);
    }
    return vertex;
  }

  std::vector<std::vector<Run>> plans() {
    std::ranges::stable_sort(vertices_, {}, &Vertex::cost);
    std::vector<std::vector<Run>> plans;
    for (const Vertex& vertex : vertices_)
      if (!vertex.again.empty())
        plans.push_back(runs_without(problem_, late_, vertex.again, MadeAgain::once));
    return plans;
  }

  static constexpr int32_t kMayNot = -1;

  const Problem& problem_;
  const int32_t late_;
  const std::vector<int32_t> maker_;
  Flow network_;
  double bytes_ = 0, scale_ = 1, whole_ = 0;
  std::vector<int32_t> needed_until_;               // of each block: the last late task that may need it
  std::vector<std::pair<int32_t, int32_t>> saves_;  // edges from blocks to their makers, with the block
  std::vector<int32_t> runs_;                       // of each early task: its edge to the sink, or kMayNot
  std::vector<Vertex> vertices_;
};

}  // namespace

std::vector<std::vector<Run>> cut_plans(const Problem& problem, size_t most_plans) {
  return Hull(problem).run(most_plans);
}

}  // namespace retrograd::ir::budget
