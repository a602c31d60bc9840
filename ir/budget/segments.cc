// See ir/budget/segments.h.
#include "ir/budget/segments.h"

#include <algorithm>

namespace retrograd::inline v0::ir::budget {

// Each block counts at a place with its bytes times the distance to where it is made, or to its last read, whichever is
// shorter. The sum is piecewise linear: it is added up from its changes of slope.
int32_t turn_of(const Problem& problem) {
  const std::vector<int32_t> maker = problem.makers();
  std::vector<int32_t> last(maker);
  for (int32_t t = 0; t < std::ssize(problem.tasks); ++t)
    for (int32_t b : problem.tasks[at(t)].operands) last[at(b)] = t;
  std::vector<int64_t> bends(problem.tasks.size());
  for (size_t b = 0; b < maker.size(); ++b) {
    if (maker[b] < 0 || problem.blocks[b].to_end) continue;
    const int64_t bytes = problem.blocks[b].bytes;
    const int32_t both = maker[b] + last[b];
    bends[at(maker[b])] += bytes;
    bends[at(both / 2)] -= bytes;
    bends[at(both - both / 2)] -= bytes;
    bends[at(last[b])] += bytes;
  }
  int64_t slope = 0, now = 0, most = 0;
  int32_t turn = 0;
  for (int32_t t = 0; t < std::ssize(bends); ++t) {
    if (now >= most) most = now, turn = t;
    slope += bends[at(t)];
    now += slope;
  }
  return turn;
}

Segments::Segments(const Problem& problem, int32_t late, int32_t most)
    : end(static_cast<int32_t>(problem.tasks.size())),
      is_fixed(problem.blocks.size()),
      problem_(problem),
      late_(late),
      maker_(problem.makers()),
      last_early_(problem.blocks.size(), -1),
      is_own_(problem.blocks.size()) {
  for (int32_t t = 0; t < late; ++t) {
    for (int32_t b : problem.tasks[at(t)].operands) last_early_[at(b)] = t;
    for (int32_t b : problem.tasks[at(t)].results) last_early_[at(b)] = t;
  }
  find_begins(most);
  find_late_begins();
  find_fixed();
  segments.resize(at(count()));
  find_passing();
  find_kept();
  find_costs();
  find_peaks();
}

int32_t Segments::segment_of(int32_t early_task) const {
  return static_cast<int32_t>(std::ranges::upper_bound(begins, early_task) - begins.begin()) - 1;
}

// In windows of equal numbers of tasks, the place that least passes.
void Segments::find_begins(int32_t most) {
  std::vector<int64_t> passes(at(late_) + 1);
  for (int32_t b = 0; b < std::ssize(maker_); ++b)
    if (is_early(b) && !problem_.blocks[at(b)].to_end) {
      passes[at(maker_[at(b)]) + 1] += problem_.blocks[at(b)].bytes;
      passes[at(last_early_[at(b)]) + 1] -= problem_.blocks[at(b)].bytes;
    }
  for (size_t t = 1; t < passes.size(); ++t) passes[t] += passes[t - 1];
  const int32_t windows = std::clamp(late_, 1, most);
  const auto window = [&](int32_t w) { return passes.begin() + int64_t{late_} * w / windows; };
  begins.push_back(0);
  for (int32_t w = 1; w < windows; ++w)
    begins.push_back(static_cast<int32_t>(std::min_element(window(w), window(w + 1)) - passes.begin()));
  begins.push_back(late_);
}

// A late task belongs to the latest part at which all that it reads is at hand: what the segment makes, and what passes
// the cut before it. Not before a segment of which it, or a task behind it, reads something: that is found first.
void Segments::find_late_begins() {
  std::vector<int32_t> lowest(at(end) + 1);
  const auto each_made_early = [&](int32_t t, const auto& f) {
    for (int32_t b : problem_.tasks[at(t)].operands)
      if (is_early(b) && !problem_.blocks[at(b)].to_end && problem_.tasks[at(maker_[at(b)])].until >= t) f(b);
  };
  for (int32_t t = end - 1; t >= late_; --t) {
    lowest[at(t)] = lowest[at(t) + 1];
    each_made_early(t,
                    [&](int32_t b) { lowest[at(t)] = std::max(lowest[at(t)], segment_of(maker_[at(b)])); });
  }
  late_begins.assign(at(count()), end);
  int32_t part = count() - 1;
  late_begins[at(part)] = late_;
  for (int32_t t = late_; t < end; ++t) {
    int32_t highest = part;
    each_made_early(t, [&](int32_t b) { highest = std::min(highest, segment_of(last_early_[at(b)])); });
    for (highest = std::max(highest, lowest[at(t)]); part > highest;) late_begins[at(--part)] = t;
  }
}

void Segments::find_fixed() {
  std::vector<bool> is_late(problem_.blocks.size());
  int32_t part = count() - 1;
  for (int32_t t = late_; t < end; ++t) {
    while (t >= late_end(part)) --part;
    for (int32_t b : problem_.tasks[at(t)].operands) {
      if (!is_early(b)) continue;
      const int32_t made = segment_of(maker_[at(b)]);
      const bool passes = made < part && last_early_[at(b)] >= begins[at(part)];
      is_late[at(b)] = true;
      if (made == part) is_own_[at(b)] = true;
      if ((made != part && !passes) || problem_.tasks[at(maker_[at(b)])].until < t) is_fixed[at(b)] = true;
    }
  }
  for (int32_t b = 0; b < std::ssize(maker_); ++b) {
    const Block& block = problem_.blocks[at(b)];
    if (!is_early(b) || block.to_end || problem_.tasks[at(maker_[at(b)])].until < late_)
      is_fixed[at(b)] = true;
    if (is_early(b) && is_fixed[at(b)] && (is_late[at(b)] || block.to_end)) fixed_bytes += block.bytes;
  }
}

void Segments::find_passing() {
  passing_.assign(at(count()) * at(count()), 0);
  for (int32_t b = 0; b < std::ssize(maker_); ++b) {
    if (is_fixed[at(b)]) continue;
    const int32_t made = segment_of(maker_[at(b)]);
    for (int32_t to = segment_of(last_early_[at(b)]); to > made; --to)
      passing_[at(made) * at(count()) + at(to)] += problem_.blocks[at(b)].bytes;
  }
  for (int32_t from = count() - 2; from >= 0; --from)
    for (int32_t to = 0; to < count(); ++to)
      passing_[at(from) * at(count()) + at(to)] += passing(from + 1, to);
}

void Segments::find_kept() {
  for (int32_t b = 0; b < std::ssize(maker_); ++b) {
    if (is_fixed[at(b)]) continue;
    const int32_t made = segment_of(maker_[at(b)]);
    Segment& s = segments[at(made)];
    if (is_own_[at(b)]) s.own += problem_.blocks[at(b)].bytes;
    if (is_own_[at(b)] || segment_of(last_early_[at(b)]) > made) s.kept += problem_.blocks[at(b)].bytes;
  }
}

// A copy of a segment runs the tasks that make something which is not fixed; one for the late part alone only those
// that lead to what that reads.
void Segments::find_costs() {
  std::vector<bool> leads(is_own_);
  for (int32_t t = late_ - 1; t >= 0; --t) {
    const Task& task = problem_.tasks[at(t)];
    const auto is_made = [&](int32_t b) { return !is_fixed[at(b)]; };
    if (!std::ranges::any_of(task.results, is_made)) continue;
    Segment& s = segments[at(segment_of(t))];
    s.cost += task.cost;
    if (!std::ranges::any_of(task.results, [&](int32_t b) { return is_made(b) && leads[at(b)]; })) continue;
    s.own_cost += task.cost;
    for (int32_t b : task.operands)
      if (is_early(b) && segment_of(maker_[at(b)]) == segment_of(t)) leads[at(b)] = true;
  }
}

// Of what tasks make: each early block up to its last early read, within its segment; each late block to its last.
void Segments::find_peaks() {
  std::vector<int64_t> held(at(end) + 1);  // made before, and read at or behind each task
  const auto add = [&](int32_t made, int32_t last, int64_t bytes) {
    held[at(made) + 1] += bytes;
    held[at(last) + 1] -= bytes;
  };
  std::vector<int32_t> last(problem_.blocks.size());
  for (int32_t t = 0; t < end; ++t)
    for (int32_t b : problem_.tasks[at(t)].operands) last[at(b)] = t;
  for (int32_t b = 0; b < std::ssize(maker_); ++b) {
    if (maker_[at(b)] < 0) continue;
    const bool ends_early = is_early(b);
    int32_t until = ends_early ? std::min(last_early_[at(b)], begins[at(segment_of(maker_[at(b)])) + 1] - 1)
                               : std::max(last[at(b)], maker_[at(b)]);
    if (!ends_early && problem_.blocks[at(b)].to_end) until = end - 1;
    add(maker_[at(b)], until, problem_.blocks[at(b)].bytes);
  }
  for (size_t t = 1; t < held.size(); ++t) held[t] += held[t - 1];
  const auto during = [&](int32_t t) {
    const Task& task = problem_.tasks[at(t)];
    int64_t sum = held[at(t)] + task.scratch - bytes_in_place(problem_, task);
    for (int32_t b : task.results) sum += problem_.blocks[at(b)].bytes;
    return sum;
  };
  for (int32_t s = 0; s < count(); ++s) {
    Segment& segment = segments[at(s)];
    for (int32_t t = begins[at(s)]; t < begins[at(s) + 1]; ++t)
      segment.most = std::max(segment.most, during(t));
    for (int32_t t = late_begins[at(s)]; t < late_end(s); ++t)
      segment.late_most = std::max(segment.late_most, during(t));
    segment.at_late_begin = held[at(late_begins[at(s)])];
  }
}

}  // namespace retrograd::ir::budget
