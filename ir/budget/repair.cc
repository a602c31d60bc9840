// See ir/budget/repair.h.
#include "ir/budget/repair.h"

#include <algorithm>

#include "ir/budget/exact.h"

namespace retrograd::inline v0::ir::budget {
namespace {

class Repair {
 public:
  explicit Repair(const Problem& problem) : problem_(problem), candidates_(candidates_of(problem)) {
    set({});
  }

  // Of the last plan, for a cap that is lower. Null if it finds none.
  const std::vector<Run>* within(int64_t cap) {
    cap_ = cap;
    set(std::move(now_.again));
    while (now_.measure.over > 0)
      if (!choose()) return nullptr;
    while (take_back()) {
    }
    return &now_.runs;
  }

 private:
  struct Plan {
    std::vector<int32_t> again;  // the candidates that are made again
    std::vector<Run> runs;
    Measure measure;
  };

  void set(std::vector<int32_t> again) { now_ = with(std::move(again)); }
  Plan with(std::vector<int32_t> again) const {
    std::vector<Run> runs = runs_without(problem_, candidates_.late, again);
    const Measure found = measure(problem_, runs, cap_);
    return {std::move(again), std::move(runs), found};
  }

  // The choice that takes off most for its cost; false if none takes off anything.
  bool choose() {
    std::optional<Plan> best;
    double best_gain = 0;
    for (int32_t block : candidates_.blocks) {
      if (std::ranges::count(now_.again, block)) continue;
      std::vector<int32_t> again = now_.again;
      again.push_back(block);
      Plan plan = with(std::move(again));
      const double less = now_.measure.over - plan.measure.over,
                   more = std::max(plan.measure.cost - now_.measure.cost, 1e-12);
      if (less <= 0 || less / more <= best_gain) continue;
      best_gain = less / more;
      best = std::move(plan);
    }
    if (best) now_ = *std::move(best);
    return best.has_value();
  }

  // The dearest choice without which the plan is still within the cap; false if there is none.
  bool take_back() {
    std::optional<Plan> best;
    for (size_t i = 0; i < now_.again.size(); ++i) {
      std::vector<int32_t> again = now_.again;
      again.erase(again.begin() + static_cast<std::ptrdiff_t>(i));
      Plan plan = with(std::move(again));
      if (plan.measure.over <= 0 && plan.measure.cost < (best ? *best : now_).measure.cost)
        best = std::move(plan);
    }
    if (best) now_ = *std::move(best);
    return best.has_value();
  }

  const Problem& problem_;
  int64_t cap_ = 0;
  const Candidates candidates_;
  Plan now_;
};

}  // namespace

std::vector<std::vector<Run>> repaired_plans(const Problem& problem, std::span<const int64_t> caps) {
  Repair repair(problem);
  std::vector<std::vector<Run>> plans;
  for (int64_t cap : caps) {
    const std::vector<Run>* plan = repair.within(cap);
    if (!plan) break;
    plans.push_back(*plan);
  }
  return plans;
}

}  // namespace retrograd::ir::budget
