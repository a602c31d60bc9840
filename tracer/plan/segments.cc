// See tracer/plan/segments.h; start reading at find_segments.
#include "tracer/plan/segments.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace retrograd::inline v0 {
namespace {

// Builds one segment: tracks each register, step by step.
class Finder {
 public:
  Finder(std::span<const SegmentStep> steps, int32_t arena, uint32_t begin, uint32_t end)
      : steps_(steps), arena_(arena) {
    segment_.begin = begin;
    segment_.end = end;
  }

  Segment run() {
    for (uint32_t i = segment_.begin; i < segment_.end; ++i) look(i);
    find_views();
    for (int32_t r : segment_.memory)
      if (!registers_.at(r).is_live) segment_.dead.push_back(r);
    return std::move(segment_);
  }

 private:
  struct Register {
    bool is_made = false;  // by a step of the segment
    bool is_live = true;
  };

  bool is_fixed(int32_t r) const { return r < arena_; }

  void look(uint32_t number) {
    const SegmentStep& s = steps_[number];
    segment_.launches += s.kind == SegmentStep::Kind::launch;
    for (int32_t r : s.operands) read(r, false);
    for (size_t i = 0; i < s.results.size(); ++i) {
      const int32_t r = s.results[i];
      if (!s.into.empty() && s.into[i])
        read(r, true);
      else
        make(r, s.kind == SegmentStep::Kind::launch);
    }
    for (int32_t r : s.dying) drop(r);
  }

  void read(int32_t r, bool is_written) {
    if (is_fixed(r) || registers_[r].is_made) return;
    const auto known = std::ranges::find(segment_.reads, r, &Segment::Read::at);
    if (known == segment_.reads.end())
      segment_.reads.push_back({r, is_written});
    else
      known->is_written |= is_written;
  }

  void make(int32_t r, bool has_memory) {
    if (is_fixed(r)) return;
    registers_[r] = {true, true};
    if (std::erase(segment_.drops, r)) segment_.replaced.push_back(r);
    if (has_memory && std::ranges::find(segment_.memory, r) == segment_.memory.end())
      segment_.memory.push_back(r);
  }

  void drop(int32_t r) {
    if (is_fixed(r)) return;
    registers_[r].is_live = false;
    if (!registers_[r].is_made) segment_.drops.push_back(r);
  }

  // Backwards from the end: views that exist after the segment, and the views on which they are based.
  void find_views() {
    std::map<int32_t, bool> wanted;  // registers, at this place
    for (const auto& [r, state] : registers_) wanted[r] = state.is_made && state.is_live;
    for (uint32_t i = segment_.end; i-- > segment_.begin;) {
      const SegmentStep& s = steps_[i];
      if (s.kind == SegmentStep::Kind::view && wanted[s.results[0]]) {
        segment_.views.push_back(i);
        if (!registers_.at(s.results[0]).is_live) segment_.dead.push_back(s.results[0]);
        wanted[s.results[0]] = false;
        wanted[s.operands[0]] = true;
      } else {
        for (int32_t r : s.results) wanted[r] = false;  // another value
      }
    }
    std::ranges::reverse(segment_.views);
  }

  std::span<const SegmentStep> steps_;
  const int32_t arena_;
  Segment segment_;
  std::map<int32_t, Register> registers_;
};

}  // namespace

void LaunchStats::add(const LaunchStats& o) {
  graph_launches += o.graph_launches;
  launches += o.launches;
  recordings += o.recordings;
  updates += o.updates;
  copies += o.copies;
  given_up += o.given_up;
}

Segments find_segments(std::span<const SegmentStep> steps, int32_t arena) {
  using enum SegmentStep::Kind;
  Segments segments;
  const auto count = static_cast<uint32_t>(steps.size());
  for (uint32_t begin = 0; begin < count;) {
    if (steps[begin].kind == host) {
      segments.cuts.push_back({begin, steps[begin].name, steps[begin].why});
      ++begin;
      continue;
    }
    uint32_t end = begin;
    while (end < count && steps[end].kind != host) ++end;
    Segment segment = Finder(steps, arena, begin, end).run();
    if (segment.launches > 0) segments.list.push_back(std::move(segment));
    begin = end;
  }
  return segments;
}

std::string to_text(const Segments& segments, std::span<const std::string> notes) {
  std::string text;
  size_t number = 0;
  auto cut = segments.cuts.begin();
  const auto add_cuts_before = [&](uint32_t step) {
    for (; cut != segments.cuts.end() && cut->step < step; ++cut)
      text += fmt::format("cut at {}: {}\n", cut->name, cut->why);
  };
  for (const Segment& s : segments.list) {
    add_cuts_before(s.begin);
    const bool has_note = number < notes.size() && !notes[number].empty();
    text += fmt::format("segment {}: {} launch{}", number, s.launches, s.launches == 1 ? "" : "es");
    if (!s.is_worth_a_graph())
      text += ", which is not worth a graph";
    else if (has_note)
      text += ", one by one: " + notes[number];
    else
      text += " as a graph";
    text += '\n';
    ++number;
  }
  add_cuts_before(~uint32_t{0});
  return text;
}

}  // namespace retrograd
