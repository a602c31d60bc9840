// See ir/budget/chain.h; start reading at Programme::solve().
#include "ir/budget/chain.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "ir/budget/segments.h"

namespace retrograd::inline v0::ir::budget {
namespace {

// The least cost of each row of segments with each amount of memory, and the choice that gives it.
class Programme {
 public:
  // A choice: to keep what the first segment makes, or else the segment of the next checkpoint.
  static constexpr int16_t kKeep = 0;

  // For amounts up to `most` bytes.
  Programme(const Segments& chain, int64_t most)
      : chain_(chain),
        unit_(most / kMostUnits + 1),
        units_(static_cast<int32_t>(most / unit_)),
        count_(chain.count()),
        whole_(cost_of_once(chain)) {
    const size_t size = at(count_) * at(count_) * at(units_ + 1);
    cost_.assign(size, std::numeric_limits<float>::infinity());
    choice_.assign(size, kKeep);
    solve();
  }

  bool is_within(int32_t first, int32_t last, int32_t units) const {
    return units >= 0 && cost_[place(first, last) + at(units)] < std::numeric_limits<float>::infinity();
  }
  int16_t choice(int32_t first, int32_t last, int32_t units) const {
    return choice_[place(first, last) + at(units)];
  }
  // Of what is needed, and of what is there.
  int32_t units_of(int64_t bytes) const { return static_cast<int32_t>((bytes + unit_ - 1) / unit_); }
  int32_t units_within(int64_t bytes) const { return static_cast<int32_t>(bytes / unit_); }
  bool is_fine_enough(int64_t bytes) const {
    return unit_ == 1 || units_within(bytes) * kFewestPart > units_;
  }

 private:
  size_t place(int32_t first, int32_t last) const {
    return (at(first) * at(count_) + at(last)) * at(units_ + 1);
  }

  static double cost_of_once(const Segments& chain) {
    double sum = 0;
    for (const Segments::Segment& s : chain.segments) sum += s.cost;
    return sum > 0 ? sum : 1;
  }
  // So that any finite cost has a place in a float.
  float share(double cost) const { return static_cast<float>(cost / whole_); }

  // Rows by rising length.
  void solve() {
    for (int32_t length = 0; length < count_; ++length)
      for (int32_t first = 0; first + length < count_; ++first) {
        keep_first(first, first + length);
        advance(first, first + length);
      }
  }

  void keep_first(int32_t first, int32_t last) {
    const Segments::Segment& s = chain_.segments[at(first)];
    const int64_t running = s.most + chain_.segments[at(last)].at_late_begin;
    const int32_t least = units_of(std::max(running, s.own + s.late_most));
    if (first == last) return offer(first, last, least, kKeep, [&](int32_t) { return share(s.own_cost); });
    const int32_t kept = units_of(s.kept);
    const float cost = share(s.cost);
    const float* const rest = &cost_[place(first + 1, last)];
    offer(first, last, std::max(least, kept), kKeep, [=](int32_t m) { return cost + rest[m - kept]; });
  }

  void advance(int32_t first, int32_t last) {
    float cost = 0;
    int64_t most = 0;
    for (int32_t to = first + 1; to <= last; ++to) {
      const Segments::Segment& s = chain_.segments[at(to - 1)];
      cost += share(s.cost);
      most = std::max(most, chain_.passing(first, to - 1) + s.most);
      const int32_t passing = units_of(chain_.passing(first, to)),
                    least = units_of(most + chain_.segments[at(last)].at_late_begin);
      const float* const rest = &cost_[place(to, last)];
      const float* const before = &cost_[place(first, to - 1)];
      offer(first, last, std::max(least, passing), static_cast<int16_t>(to),
            [=](int32_t m) { return cost + rest[m - passing] + before[m]; });
    }
  }

  // A choice for all amounts of memory from `least` on.
  template <class Cost>
  void offer(int32_t first, int32_t last, int32_t least, int16_t choice, const Cost& cost) {
    float* const best = &cost_[place(first, last)];
    int16_t* const chosen = &choice_[place(first, last)];
    for (int32_t m = least; m <= units_; ++m) {
      const float found = cost(m);
      chosen[m] = found < best[m] ? choice : chosen[m];
      best[m] = std::min(found, best[m]);
    }
  }

  static constexpr int32_t kFewestPart = 4;  // below that part of its units, memory counts in finer ones

  const Segments& chain_;
  const int64_t unit_;
  const int32_t units_, count_;
  const double whole_;
  std::vector<float> cost_;
  std::vector<int16_t> choice_;
};

// The runs of a solution, in order.
class Schedule {
 public:
  Schedule(const Problem& problem, const Segments& chain, const Programme& programme)
      : problem_(problem), chain_(chain), programme_(programme), next_late_(chain.begins.back()) {}

  std::vector<Run> with(int32_t units) {
    std::vector<Row> open{{0, chain_.count() - 1, units}};
    while (!open.empty()) {
      const Row row = open.back();
      open.pop_back();
      if (row.units == kLatePart) {
        run_late_part(row.first);
        continue;
      }
      const int16_t choice = programme_.choice(row.first, row.last, row.units);
      if (choice != Programme::kKeep) {
        for (int32_t s = row.first; s < choice; ++s) run_segment(s);
        const int32_t passing = programme_.units_of(chain_.passing(row.first, choice));
        open.push_back({row.first, choice - 1, row.units});
        open.push_back({choice, row.last, row.units - passing});
        continue;
      }
      run_segment(row.first);
      open.push_back({row.first, row.first, kLatePart});
      if (row.first == row.last) continue;
      const int32_t kept = programme_.units_of(chain_.segments[at(row.first)].kept);
      open.push_back({row.first + 1, row.last, row.units - kept});
    }
    return without_unread(problem_, std::move(runs_));
  }

 private:
  static constexpr int32_t kLatePart = -1;
  // Segments whose late parts are to run, with so much memory; kLatePart: that of the first one alone.
  struct Row {
    int32_t first, last, units;
  };

  void run_segment(int32_t s) {
    const bool is_again = s < next_segment_;
    if (!is_again) ++next_segment_;
    for (int32_t t = chain_.begins[at(s)]; t < chain_.begins[at(s + 1)]; ++t)
      if (!is_again)
        runs_.push_back({t});
      else if (problem_.tasks[at(t)].until >= next_late_)
        run_again(t);
  }
  void run_again(int32_t t) {
    Run run{t, 0};
    const std::vector<int32_t>& results = problem_.tasks[at(t)].results;
    for (size_t i = 0; i < results.size(); ++i)
      if (!chain_.is_fixed[at(results[i])]) run.results |= uint64_t{1} << i;
    if (run.results != 0) runs_.push_back(run);
  }
  void run_late_part(int32_t s) {
    for (; next_late_ < chain_.late_end(s); ++next_late_) runs_.push_back({next_late_});
  }

  const Problem& problem_;
  const Segments& chain_;
  const Programme& programme_;
  std::vector<Run> runs_;
  int32_t next_segment_ = 0, next_late_;  // of the first runs, in their order
};

}  // namespace

std::vector<std::vector<Run>> chain_plans(const Problem& problem, std::span<const int64_t> caps) {
  const Segments chain(problem, turn_of(problem) + 1, kMostSegments);
  std::vector<std::vector<Run>> plans;
  std::optional<Programme> programme;
  for (int64_t cap : caps) {
    const int64_t room = cap - chain.fixed_bytes;
    if (room <= 0) break;
    if (!programme || !programme->is_fine_enough(room)) programme.emplace(chain, room);
    const int32_t units = programme->units_within(room);
    if (!programme->is_within(0, chain.count() - 1, units)) continue;
    std::vector<Run> runs = Schedule(problem, chain, *programme).with(units);
    if (plans.empty() || plans.back() != runs) plans.push_back(std::move(runs));
  }
  return plans;
}

}  // namespace retrograd::ir::budget
