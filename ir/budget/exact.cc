// See ir/budget/exact.h; start reading at Search::run().
#include "ir/budget/exact.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace retrograd::inline v0::ir::budget {
namespace {

// The tasks that make or read each block, in order.
std::vector<std::vector<int32_t>> places_of(const Problem& problem) {
  std::vector<std::vector<int32_t>> places(problem.blocks.size());
  for (int32_t t = 0; t < std::ssize(problem.tasks); ++t) {
    for (int32_t b : problem.tasks[at(t)].operands) places[at(b)].push_back(t);
    for (int32_t b : problem.tasks[at(t)].results) places[at(b)].push_back(t);
  }
  return places;
}

class Search {
 public:
  Search(const Problem& problem, int64_t cap, int64_t most_choices, double below)
      : problem_(problem),
        cap_(cap),
        most_choices_(most_choices),
        candidates_(candidates_of(problem)),
        places_(places_of(problem)),
        maker_(problem.makers()),
        least_(below) {
    std::ranges::stable_sort(candidates_.blocks, std::greater(), [&](int32_t b) {
      return problem.blocks[at(b)].bytes * (places_[at(b)].back() - places_[at(b)].front());
    });
    find_profile();
  }

  // Each candidate is kept first, then made again.
  std::optional<ExactPlan> run() {
    enum : uint8_t { none, kept, again };
    std::vector<uint8_t> tried(candidates_.blocks.size() + 1, none);
    size_t depth = 0;
    while (choices_ < most_choices_) {
      if (tried[depth] == none && depth == candidates_.blocks.size()) take();
      const bool is_over = depth == candidates_.blocks.size() || tried[depth] == again;
      const int32_t block = is_over ? -1 : candidates_.blocks[depth];
      if (is_over) {
        if (depth < candidates_.blocks.size()) choose_again(candidates_.blocks[depth], -1);
        tried[depth] = none;
        if (depth-- == 0) break;
        if (tried[depth] == kept) keep(candidates_.blocks[depth], -1);
        continue;
      }
      ++choices_;
      if (tried[depth] == none) {
        tried[depth] = kept;
        keep(block, 1);
        if (peak() <= cap_) {
          ++depth;
          continue;
        }
        keep(block, -1);
      }
      tried[depth] = again;
      choose_again(block, 1);
      if (cost_ < least_) ++depth;
    }
    if (!best_) return {};
    return ExactPlan{*std::move(best_), choices_ < most_choices_};
  }

 private:
  // What is live in every plan.
  void find_profile() {
    std::vector<bool> is_candidate(problem_.blocks.size());
    for (int32_t b : candidates_.blocks) is_candidate[at(b)] = true;
    profile_.resize(problem_.tasks.size());
    for (size_t b = 0; b < problem_.blocks.size(); ++b) {
      const std::vector<int32_t>& places = places_[b];
      if (places.empty()) continue;
      const int32_t last = problem_.blocks[b].to_end ? std::ssize(problem_.tasks) - 1 : places.back();
      add(places.front(), is_candidate[b] ? last_early(places) : last, problem_.blocks[b].bytes);
      for (int32_t t : places)
        if (is_candidate[b] && t >= candidates_.late) add(t, t, problem_.blocks[b].bytes);
    }
    for (size_t t = 0; t < problem_.tasks.size(); ++t)
      profile_[t] += problem_.tasks[t].scratch - bytes_in_place(problem_, problem_.tasks[t]);
  }
  int32_t last_early(const std::vector<int32_t>& places) const {
    return *(std::ranges::lower_bound(places, candidates_.late) - 1);
  }
  void add(int32_t first, int32_t last, int64_t bytes) {
    for (int32_t t = first; t <= last; ++t) profile_[at(t)] += bytes;
  }
  int64_t peak() const { return std::ranges::max(profile_); }

  // `sign`: 1 for the choice, -1 to undo it.
  void keep(int32_t block, int sign) {
    const std::vector<int32_t>& places = places_[at(block)];
    const int64_t bytes = problem_.blocks[at(block)].bytes * sign;
    add(last_early(places) + 1, places.back(), bytes);
    for (int32_t t : places)
      if (t >= candidates_.late) add(t, t, -bytes);
  }
  void choose_again(int32_t block, int sign) {
    const std::vector<int32_t>& places = places_[at(block)];
    cost_ += sign * problem_.tasks[at(maker_[at(block)])].cost *
             static_cast<double>(places.end() - std::ranges::lower_bound(places, candidates_.late));
    if (sign > 0)
      again_.push_back(block);
    else
      again_.pop_back();
  }

  void take() {
    std::vector<Run> runs = runs_without(problem_, candidates_.late, again_);
    const Measure found = measure(problem_, runs);
    if (found.peak > cap_ || found.cost >= least_) return;
    least_ = found.cost;
    best_ = std::move(runs);
  }

  const Problem& problem_;
  const int64_t cap_, most_choices_;
  Candidates candidates_;
  const std::vector<std::vector<int32_t>> places_;
  const std::vector<int32_t> maker_;
  std::vector<int64_t> profile_;  // of each task: what is live during it at least
  std::vector<int32_t> again_;    // candidates that are made again
  double cost_ = 0, least_;
  int64_t choices_ = 0;
  std::optional<std::vector<Run>> best_;
};

}  // namespace

Candidates candidates_of(const Problem& problem) {
  Candidates found;
  found.late = measure(problem, plain_runs(problem)).at + 1;
  const std::vector<std::vector<int32_t>> places = places_of(problem);
  const std::vector<int32_t> makers = problem.makers();
  for (int32_t b = 0; b < std::ssize(problem.blocks); ++b) {
    if (places[at(b)].empty() || makers[at(b)] < 0 || problem.blocks[at(b)].to_end) continue;
    const int32_t last = places[at(b)].back();
    if (makers[at(b)] < found.late && last >= found.late && problem.tasks[at(makers[at(b)])].until >= last)
      found.blocks.push_back(b);
  }
  return found;
}

std::vector<Run> runs_without(const Problem& problem, int32_t late, std::span<const int32_t> blocks,
                              MadeAgain when) {
  const std::vector<int32_t> makers = problem.makers();
  std::vector<bool> again(problem.blocks.size());
  for (int32_t b : blocks) again[at(b)] = true;
  std::vector<Run> runs;
  std::vector<int32_t> made(problem.blocks.size(), -1);  // the task for which a block was made again last
  std::vector<int32_t> missing;
  for (int32_t t = 0; t < std::ssize(problem.tasks); ++t) {
    const auto is_missing = [&](int32_t b) {
      return t >= late && again[at(b)] && (when == MadeAgain::once ? made[at(b)] < 0 : made[at(b)] != t);
    };
    std::ranges::copy_if(problem.tasks[at(t)].operands, std::back_inserter(missing), is_missing);
    while (!missing.empty()) {
      const int32_t block = missing.back(), maker = makers[at(block)];
      const Task& task = problem.tasks[at(maker)];
      const size_t before = missing.size();
      std::ranges::copy_if(task.operands, std::back_inserter(missing), is_missing);
      if (missing.size() > before) continue;
      missing.pop_back();
      if (std::exchange(made[at(block)], t) == t) continue;
      const auto result = std::ranges::find(task.results, block) - task.results.begin();
      runs.push_back({maker, uint64_t{1} << result});
    }
    runs.push_back({t});
  }
  return runs;
}

std::optional<ExactPlan> exact_plan(const Problem& problem, int64_t cap, int64_t most_choices, double below) {
  return Search(problem, cap, most_choices, below).run();
}

}  // namespace retrograd::ir::budget
