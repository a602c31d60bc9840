// Segments: a problem as a chain, for the dynamic programme of chain.h, where its words are explained.
//
//   cuts        segment s is the early tasks from begins[s] up to begins[s + 1]
//   late parts  that of segment s is the late tasks from late_begins[s] up to late_begins[s - 1], or to the end
//   fixed       blocks that no copy makes
//
// Late tasks run in the latest part where what they read is at hand, and parts in falling order. Sizes are in
// bytes, without fixed blocks; segments are counted from 0, and cut s lies before segment s.
#pragma once

#include "ir/budget/problem.h"

namespace retrograd::inline v0::ir::budget {

/// The task at which a chain turns, as a loss: that over which most is held long, from before it to behind it. A peak
/// may lie some tasks away from it, where a gradient is large.
int32_t turn_of(const Problem& problem);

struct Segments {
  /// `late`: the first late task. `most`: segments.
  Segments(const Problem& problem, int32_t late, int32_t most);

  int32_t count() const { return static_cast<int32_t>(begins.size()) - 1; }
  /// Where the late part of a segment ends.
  int32_t late_end(int32_t s) const { return s == 0 ? end : late_begins[at(s - 1)]; }
  /// Of what passes cut `to`: what was made from cut `from` on.
  int64_t passing(int32_t from, int32_t to) const { return passing_[at(from) * at(count()) + at(to)]; }

  int32_t end;                       // of the late tasks
  std::vector<int32_t> begins;       // and where the last segment ends
  std::vector<int32_t> late_begins;  // of each segment
  std::vector<bool> is_fixed;        // of each block; those of late tasks are
  int64_t fixed_bytes = 0;           // of early tasks, needed late
  struct Segment {
    double cost = 0;            // of a copy
    double own_cost = 0;        // of a copy for its late part alone
    int64_t own = 0;            // what it makes and its late part needs
    int64_t kept = 0;           // that, and what it makes and passes its end
    int64_t most = 0;           // what it makes, at its peak
    int64_t late_most = 0;      // what late tasks make, at the peak of its late part
    int64_t at_late_begin = 0;  // and before that
  };
  std::vector<Segment> segments;

 private:
  void find_begins(int32_t most);
  void find_late_begins();
  void find_fixed();
  void find_passing();
  void find_kept();
  void find_costs();
  void find_peaks();
  bool is_early(int32_t b) const { return maker_[at(b)] >= 0 && maker_[at(b)] < late_; }
  int32_t segment_of(int32_t early_task) const;

  const Problem& problem_;
  const int32_t late_;
  const std::vector<int32_t> maker_;
  std::vector<int32_t> last_early_;  // of each block: the last early task that makes or reads it
  std::vector<bool> is_own_;         // of each block: the late part of its segment reads it
  std::vector<int64_t> passing_;
};

}  // namespace retrograd::ir::budget
