// See ir/budget/greedy.h; start reading at Simulation::run().
#include "ir/budget/greedy.h"

#include <algorithm>
#include <queue>

namespace retrograd::inline v0::ir::budget {
namespace {

class Simulation {
 public:
  Simulation(const Problem& problem, int64_t cap)
      : problem_(problem),
        cap_(cap),
        end_(static_cast<int32_t>(problem.tasks.size())),
        maker_(problem.makers()),
        until_(problem.tasks.size(), Task::kNever),
        blocks_(problem.blocks.size()),
        unwanted_(problem.tasks.size()) {
    for (int32_t t = 0; t < end_; ++t)
      for (int32_t b : problem.tasks[at(t)].operands) blocks_[at(b)].uses.push_back(t);
    for (size_t b = 0; b < blocks_.size(); ++b)
      if (problem.blocks[b].to_end) blocks_[b].uses.push_back(end_);
    for (int32_t t = 0; t < end_; ++t) until_[at(t)] = until_with_operands(t);
  }

  std::optional<std::vector<Run>> run() {
    for (now_ = 0; now_ < end_; ++now_) {
      drop_unwanted();
      if (!run_task(now_)) return {};
    }
    return std::move(runs_);
  }

 private:
  static constexpr int32_t kNone = -1;
  struct State {
    std::vector<int32_t> uses = {};  // tasks that read it, in order
    size_t next = 0;                 // into uses: the first that has not run
    int32_t wanted = kNone;          // the last task for which it may be needed to make others again
    int32_t pins = 0;                // runs that wait for other operands and need it
    double price = 0;                // while it is not there: the cost to make it
    bool is_live = false;
  };
  // A task that is to run, and the block that it is run for.
  struct Waiting {
    int32_t task, block;
    size_t next = 0;  // its first operand that is not pinned
  };

  State& state(int32_t block) { return blocks_[at(block)]; }
  // A live block, and its score when it was last looked at. The heap gives the least.
  struct Entry {
    double score;
    int32_t block;
    bool operator<(const Entry& other) const {
      return score != other.score ? score > other.score : block > other.block;
    }
  };

  int64_t bytes(int32_t block) const { return problem_.blocks[at(block)].bytes; }

  // The last task before which a task can run again, and all that it needs with it.
  int32_t until_with_operands(int32_t t) const {
    int32_t until = problem_.tasks[at(t)].until;
    for (int32_t b : problem_.tasks[at(t)].operands)
      if (maker_[at(b)] != kNone && !problem_.blocks[at(b)].to_end)
        until = std::min(until, until_[at(maker_[at(b)])]);
    return until;
  }

  // The first task from `from` on that reads the block; kNone if none does.
  int32_t next_use(const State& s, int32_t from) const {
    size_t i = s.next;
    while (i < s.uses.size() && s.uses[i] < from) ++i;
    return i < s.uses.size() ? s.uses[i] : kNone;
  }
  bool is_needed(const State& s, int32_t from) const {
    return s.wanted >= from || next_use(s, from) != kNone;
  }

  // Runs a task of the order, and before it whatever must run again for it.
  bool run_task(int32_t task) {
    waiting_.assign(1, {task, kNone});
    while (!waiting_.empty()) {
      Waiting& top = waiting_.back();
      const Task& t = problem_.tasks[at(top.task)];
      if (top.next < t.operands.size()) {
        const int32_t block = t.operands[top.next];
        if (!state(block).is_live && maker_[at(block)] != kNone) {
          const int32_t maker = maker_[at(block)];
          if (until_[at(maker)] < now_) return false;
          waiting_.push_back({maker, block});
        } else {
          ++state(block).pins;
          ++top.next;
        }
        continue;
      }
      if (!run_now(top.task, top.block)) return false;
      waiting_.pop_back();
    }
    return true;
  }

  // All operands are there and pinned. `block`: that a copy is run for; kNone: the task of the order.
  bool run_now(int32_t task, int32_t block) {
    const Task& t = problem_.tasks[at(task)];
    const int32_t after = block == kNone ? now_ + 1 : now_;
    // What is dropped may make others worth keeping, which changes what the run needs.
    Run run = run_for(task, block, after);
    for (; live_ + bytes_for(run, after) > cap_; run = run_for(task, block, after))
      if (!drop_cheapest(after)) return false;
    runs_.push_back(run);
    if (runs_.size() > kMostRuns * problem_.tasks.size()) return false;
    for (size_t i = 0; i < t.results.size(); ++i)
      if (stays(run, i, block, after)) add(t.results[i]);
    for (int32_t b : t.operands) {
      State& s = state(b);
      --s.pins;
      while (block == kNone && s.next < s.uses.size() && s.uses[s.next] <= now_) ++s.next;
      if (!s.is_live) continue;
      if (s.pins == 0 && !is_needed(s, after))
        drop(b);
      else
        enter(b, after);  // its next use is another
    }
    return true;
  }

  // A copy makes what is not there and needed.
  Run run_for(int32_t task, int32_t block, int32_t after) {
    const std::vector<int32_t>& results = problem_.tasks[at(task)].results;
    Run run{task};
    for (size_t i = 0; i < results.size() && block != kNone; ++i)
      if (results[i] != block && (state(results[i]).is_live || !is_needed(state(results[i]), after)))
        run.results &= ~(uint64_t{1} << i);
    return run;
  }
  // Whether a result is there after the run.
  bool stays(const Run& run, size_t result, int32_t block, int32_t after) {
    const int32_t r = problem_.tasks[at(run.task)].results[result];
    return run.makes(result) && (block != kNone || is_needed(state(r), after));
  }

  // What a run takes beyond what is live before it.
  int64_t bytes_for(const Run& run, int32_t after) {
    const Task& t = problem_.tasks[at(run.task)];
    int64_t sum = t.scratch;
    for (size_t i = 0; i < t.results.size(); ++i)
      if (run.makes(i) || t.makes_all) sum += bytes(t.results[i]);
    taken_.assign(t.operands.size(), false);
    laid_.assign(t.results.size(), false);
    for (const auto& [result, operand] : t.overlays) {
      const State& s = state(t.operands[at(operand)]);
      if (!s.is_live || s.pins > 1 || is_needed(s, after) || taken_[at(operand)] || laid_[at(result)] ||
          !run.makes(at(result)))
        continue;
      taken_[at(operand)] = laid_[at(result)] = true;
      sum -= bytes(t.results[at(result)]);
    }
    return sum;
  }

  double price_of(int32_t block) {
    const Task& t = problem_.tasks[at(maker_[at(block)])];
    double sum = t.cost;
    for (int32_t b : t.operands)
      if (!state(b).is_live && maker_[at(b)] != kNone) sum += state(b).price;
    return sum;
  }

  // For each byte and each task that it would be held for. Dropping what is held longest costs least.
  double score_of(int32_t block, int32_t after) {
    const int32_t next = next_use(state(block), after);
    const int32_t held = std::max(1, (next == kNone ? state(block).wanted : next) - now_);
    return price_of(block) / (static_cast<double>(bytes(block)) * held);
  }
  bool may_go(int32_t block, int32_t after) const {
    const State& s = blocks_[at(block)];
    return s.pins == 0 && until_[at(maker_[at(block)])] >= std::max(next_use(s, after), s.wanted);
  }

  void add(int32_t block) {
    state(block).is_live = true;
    live_ += bytes(block);
    enter(block, now_);
  }
  void enter(int32_t block, int32_t after) {
    if (!problem_.blocks[at(block)].to_end && bytes(block) > 0) there_.push({score_of(block, after), block});
  }
  void drop(int32_t block) {
    state(block).price = price_of(block);
    state(block).is_live = false;
    live_ -= bytes(block);
  }

  // `after`: the first task that has still to read what it reads. False if there is nothing to drop.
  bool drop_cheapest(int32_t after) {
    aside_.clear();
    int32_t found = kNone;
    while (found == kNone && !there_.empty()) {
      const Entry entry = there_.top();
      there_.pop();
      if (!state(entry.block).is_live) continue;
      const Entry now{score_of(entry.block, after), entry.block};
      if (!may_go(entry.block, after))
        aside_.push_back(now);
      else if (!there_.empty() && there_.top().score < now.score && entry.score < now.score)
        there_.push(now);  // it was cheaper once
      else
        found = entry.block;
    }
    for (const Entry& entry : aside_) there_.push(entry);
    if (found == kNone) return false;
    want_operands(found, std::max(next_use(state(found), after), state(found).wanted));
    drop(found);
    return true;
  }

  void drop_unwanted() {
    for (int32_t b : unwanted_[at(now_)])
      if (state(b).is_live && !is_needed(state(b), now_)) drop(b);
  }

  // What the block is made from may be needed at that task.
  void want_operands(int32_t block, int32_t task) {
    for (int32_t b : problem_.tasks[at(maker_[at(block)])].operands) {
      if (state(b).wanted >= task) continue;
      state(b).wanted = task;
      if (task + 1 < end_) unwanted_[at(task) + 1].push_back(b);
    }
  }

  const Problem& problem_;
  const int64_t cap_;
  const int32_t end_;
  const std::vector<int32_t> maker_;
  std::vector<int32_t> until_;  // of each task
  std::vector<State> blocks_;
  std::vector<std::vector<int32_t>> unwanted_;  // before each task: what may not be wanted any more
  std::priority_queue<Entry> there_;            // the live blocks that may be dropped; some that are not live
  std::vector<Entry> aside_;
  std::vector<Waiting> waiting_;
  std::vector<Run> runs_;
  std::vector<bool> taken_, laid_;
  int64_t live_ = 0;
  int32_t now_ = 0;  // the task of the order that runs, or for which others run again
};

}  // namespace

std::optional<std::vector<Run>> greedy_plan(const Problem& problem, int64_t cap) {
  return Simulation(problem, cap).run();
}

}  // namespace retrograd::ir::budget
