// See optim/line_search.h.
#include "optim/line_search.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace retrograd::inline v0::optim::detail {
namespace {

constexpr double kSufficientDecrease = 1e-4, kCurvature = 0.9, kLeastChange = 1e-9;

// An interval that contains a point at which the conditions hold, its ends in the order in which they were found.
struct Bracket {
  std::array<LinePoint, 2> ends;
  int low;  // the end with the lower loss

  Bracket(const LinePoint& a, const LinePoint& b) : ends{a, b} { find_low(); }
  void find_low() { low = ends[0].loss <= ends[1].loss ? 0 : 1; }
  LinePoint& lower() { return ends[static_cast<size_t>(low)]; }
  LinePoint& higher() { return ends[static_cast<size_t>(1 - low)]; }
  double least() const { return std::min(ends[0].t, ends[1].t); }
  double most() const { return std::max(ends[0].t, ends[1].t); }
};

class Search {
 public:
  Search(const std::function<LinePoint(double)>& evaluate, const LinePoint& start, int64_t most)
      : evaluate_(evaluate), start_(start), most_(most) {}

  LineSearch run(double t, double longest) {
    Bracket bracket = find_bracket(t);
    while (!is_done_ && iterations_ < most_ &&
           !((bracket.most() - bracket.least()) * longest < kLeastChange)) {
      narrow(bracket, evaluate(next_within(bracket)));
      ++iterations_;
    }
    return {bracket.lower(), evaluations_};
  }

 private:
  LinePoint evaluate(double t) {
    ++evaluations_;
    return evaluate_(t);
  }
  bool decreases_too_little(const LinePoint& p) const {
    return p.loss > start_.loss + kSufficientDecrease * p.t * start_.slope;
  }
  bool is_flat(const LinePoint& p) const { return std::abs(p.slope) <= -kCurvature * start_.slope; }

  // Longer and longer steps, until one is good or is beyond a good one.
  Bracket find_bracket(double t) {
    LinePoint before = start_, now = evaluate(t);
    for (; iterations_ < most_; ++iterations_) {
      if (decreases_too_little(now) || (iterations_ > 1 && now.loss >= before.loss)) return {before, now};
      if (is_flat(now)) {
        is_done_ = true;
        return {now, now};
      }
      if (now.slope >= 0) return {before, now};
      const double next = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
      before = std::move(now);
      now = evaluate(next);
    }
    return {start_, now};
  }

  // The minimum by interpolation; a tenth of the length away from an end that it is near to twice, or at.
  double next_within(const Bracket& b) {
    const double least = b.least(), most = b.most(), margin = 0.1 * (most - least);
    const double t = cubic_minimum(b.ends[0], b.ends[1], least, most);
    const bool is_near = std::min(most - t, t - least) < margin;
    const bool moves = is_near && (was_near_ || t >= most || t <= least);
    was_near_ = is_near && !moves;
    if (!moves) return t;
    return std::abs(t - most) < std::abs(t - least) ? most - margin : least + margin;
  }

  void narrow(Bracket& b, const LinePoint& now) {
    if (decreases_too_little(now) || now.loss >= b.lower().loss) {
      b.higher() = now;
      b.find_low();
      return;
    }
    if (is_flat(now))
      is_done_ = true;
    else if (now.slope * (b.higher().t - b.lower().t) >= 0)
      b.higher() = b.lower();
    b.lower() = now;
  }

  const std::function<LinePoint(double)>& evaluate_;
  const LinePoint& start_;
  const int64_t most_;
  bool is_done_ = false, was_near_ = false;
  int64_t iterations_ = 0, evaluations_ = 0;
};

}  // namespace

LineSearch strong_wolfe(const std::function<LinePoint(double)>& evaluate, const LinePoint& start, double t,
                        double longest, int64_t most) {
  return Search(evaluate, start, most).run(t, longest);
}

double cubic_minimum(const LinePoint& a, const LinePoint& b, double least, double most) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (least + most) / 2;
  const double d2 = std::sqrt(square);
  const double at = a.t <= b.t ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                               : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return std::min(std::max(at, least), most);
}

}  // namespace retrograd::optim::detail
