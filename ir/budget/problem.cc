// See ir/budget/problem.h.
#include "ir/budget/problem.h"

#include <algorithm>

namespace retrograd::inline v0::ir::budget {
namespace {

// The lifetimes of a plan: each time that a block is made is an instance.
class Instances {
 public:
  Instances(const Problem& problem, std::span<const Run> runs) : problem_(problem), runs_(runs) {
    std::vector<int32_t> now(problem.blocks.size(), kNone);
    for (int32_t r = 0; r < std::ssize(runs); ++r) {
      const Task& task = problem.tasks[at(runs[at(r)].task)];
      for (int32_t block : task.operands) {
        read_.push_back(now[at(block)]);
        if (now[at(block)] != kNone) last_[at(now[at(block)])] = r;
      }
      for (size_t i = 0; i < task.results.size(); ++i)
        if (runs[at(r)].makes(i)) {
          now[at(task.results[i])] = static_cast<int32_t>(last_.size());
          last_.push_back(r);
        }
    }
    for (size_t block = 0; block < now.size(); ++block)
      if (problem.blocks[block].to_end && now[block] != kNone)
        last_[at(now[block])] = static_cast<int32_t>(runs.size());
  }

  // `each`: the bytes of each run; may be null.
  Measure measure(int64_t cap, std::vector<int64_t>* each = nullptr) {
    Measure found;
    std::vector<bool> has_run(problem_.tasks.size());
    size_t read = 0, made = 0;  // positions in read_ and last_
    int64_t live = 0;
    for (int32_t r = 0; r < std::ssize(runs_); ++r) {
      const Run& run = runs_[at(r)];
      const Task& task = problem_.tasks[at(run.task)];
      if (has_run[at(run.task)]) found.cost += task.cost;
      has_run[at(run.task)] = true;
      int64_t kept = 0, passing = task.scratch - overlaid(task, run, r, read);
      for (size_t i = 0; i < task.results.size(); ++i) {
        const int64_t bytes = problem_.blocks[at(task.results[i])].bytes;
        const bool stays = run.makes(i) && last_[made++] != r;
        if (stays)
          kept += bytes;
        else if (run.makes(i) || task.makes_all)
          passing += bytes;
      }
      const int64_t held = live + kept + passing;
      if (held > found.peak) found.peak = held, found.at = r;
      if (held > cap) found.over += static_cast<double>(held - cap);
      if (each) each->push_back(held);
      live += kept;
      for (int32_t block : task.operands) {
        const int32_t instance = read_[read++];
        if (instance != kNone && last_[at(instance)] == r) live -= problem_.blocks[at(block)].bytes;
      }
    }
    return found;
  }

  std::vector<int32_t> held_during(int32_t run) {
    std::vector<int32_t> held;
    size_t read = 0, made = 0;
    for (int32_t r = 0; r <= run; ++r) {
      const Task& task = problem_.tasks[at(runs_[at(r)].task)];
      if (r == run) overlaid(task, runs_[at(r)], r, read);
      for (size_t i = 0; i < task.results.size(); ++i) {
        const bool makes = runs_[at(r)].makes(i), stays = makes && last_[made] >= run;
        made += makes;
        if (r < run ? stays : !laid_[i] && (makes || task.makes_all)) held.push_back(task.results[i]);
      }
      read += task.operands.size();
    }
    return held;
  }

 private:
  static constexpr int32_t kNone = -1;

  // The bytes of results that are computed in the memory of operands. `read`: the position of the first operand.
  int64_t overlaid(const Task& task, const Run& run, int32_t r, size_t read) {
    int64_t sum = 0;
    taken_.assign(task.operands.size(), false);
    laid_.assign(task.results.size(), false);
    for (const auto& [result, operand] : task.overlays) {
      const int32_t instance = read_[read + at(operand)];
      if (instance == kNone || last_[at(instance)] != r || taken_[at(operand)] || laid_[at(result)] ||
          !run.makes(at(result)))
        continue;
      taken_[at(operand)] = laid_[at(result)] = true;
      sum += problem_.blocks[at(task.results[at(result)])].bytes;
    }
    return sum;
  }

  const Problem& problem_;
  const std::span<const Run> runs_;
  std::vector<int32_t> read_;  // of each operand of each run: the instance, or kNone
  std::vector<int32_t> last_;  // of each instance: the last run that needs it
  std::vector<bool> taken_, laid_;
};

bool makes_any(const Task& task, const Run& run) {
  for (size_t i = 0; i < task.results.size(); ++i)
    if (run.makes(i)) return true;
  return false;
}

}  // namespace

std::vector<int32_t> Problem::makers() const {
  std::vector<int32_t> makers(blocks.size(), -1);
  for (int32_t t = 0; t < std::ssize(tasks); ++t)
    for (int32_t block : tasks[at(t)].results) makers[at(block)] = t;
  return makers;
}

std::vector<Run> plain_runs(const Problem& problem) {
  std::vector<Run> runs;
  for (int32_t t = 0; t < std::ssize(problem.tasks); ++t) runs.push_back({t});
  return runs;
}

Measure measure(const Problem& problem, std::span<const Run> runs, int64_t cap) {
  return Instances(problem, runs).measure(cap);
}

std::vector<Run> without_unread(const Problem& problem, std::vector<Run> runs) {
  std::vector<bool> is_copy, has_run(problem.tasks.size()), is_read(problem.blocks.size());
  for (const Run& run : runs) {
    is_copy.push_back(has_run[at(run.task)]);
    has_run[at(run.task)] = true;
  }
  std::vector<Run> kept;  // from the last
  for (size_t r = runs.size(); r-- > 0;) {
    const Task& task = problem.tasks[at(runs[r].task)];
    Run run = runs[r];
    for (size_t i = 0; i < task.results.size(); ++i)
      if (run.makes(i)) {
        const size_t block = at(task.results[i]);
        if (is_copy[r] && !is_read[block]) run.results &= ~(uint64_t{1} << i);
        is_read[block] = false;
      }
    if (is_copy[r] && !makes_any(task, run)) continue;
    for (int32_t b : task.operands) is_read[at(b)] = true;
    kept.push_back(run);
  }
  std::ranges::reverse(kept);
  return kept;
}

std::vector<int64_t> held_bytes(const Problem& problem, std::span<const Run> runs) {
  std::vector<int64_t> each;
  Instances(problem, runs).measure(std::numeric_limits<int64_t>::max(), &each);
  return each;
}

std::vector<int32_t> blocks_held(const Problem& problem, std::span<const Run> runs, int32_t run) {
  return Instances(problem, runs).held_during(run);
}

int64_t bytes_in_place(const Problem& problem, const Task& task) {
  int64_t sum = 0;
  for (int32_t r = 0; r < std::ssize(task.results); ++r)
    if (std::ranges::any_of(task.overlays, [&](const Task::Overlay& o) { return o.result == r; }))
      sum += problem.blocks[at(task.results[at(r)])].bytes;
  return sum;
}

int64_t bytes_alone(const Problem& problem, const Task& task) {
  int64_t bytes = task.scratch - bytes_in_place(problem, task);
  for (int32_t block : task.operands) bytes += problem.blocks[at(block)].bytes;
  for (int32_t block : task.results) bytes += problem.blocks[at(block)].bytes;
  return bytes;
}

int64_t least_bytes(const Problem& problem) {
  int64_t most = 0;
  for (const Task& task : problem.tasks) most = std::max(most, bytes_alone(problem, task));
  return most;
}

}  // namespace retrograd::ir::budget
