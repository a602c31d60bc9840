// Segments of artificial steps: where they end, and what their registers need after a graph.
#include "tracer/plan/segments.h"

#include <catch2/catch.hpp>

using namespace retrograd;

namespace {

using Registers = std::vector<int32_t>;

// A step with registers of its own.
struct Made {
  SegmentStep::Kind kind;
  Registers operands, results, dying = {};
  std::vector<bool> into = {};
};

constexpr auto kLaunch = SegmentStep::Kind::launch, kView = SegmentStep::Kind::view,
               kHost = SegmentStep::Kind::host;

Segments segments_of(const std::vector<Made>& made, int32_t arena = 10) {
  std::vector<SegmentStep> steps;
  for (const Made& m : made) {
    SegmentStep s{m.kind};
    if (m.kind == kHost) {
      s.name = "hook";
      s.why = "somebody is called";
    }
    s.operands = m.operands;
    s.results = m.results;
    s.dying = m.dying;
    s.into = m.into;
    steps.push_back(s);
  }
  return find_segments(steps, arena);
}

Registers read_by(const Segment& s) {
  Registers all;
  for (const Segment::Read& r : s.reads) all.push_back(r.at);
  return all;
}

}  // namespace

TEST_CASE("a step of the host ends a segment, and one launch is no graph") {
  const Segments s = segments_of({{kLaunch, {}, {0}},
                                  {kLaunch, {0}, {1}},
                                  {kHost, {1}, {20}},
                                  {kLaunch, {20}, {2}},
                                  {kHost, {2}, {}},
                                  {kView, {2}, {30}},
                                  {kHost, {30}, {}}});
  REQUIRE(s.list.size() == 2);
  CHECK(s.list[0].is_worth_a_graph());
  CHECK_FALSE(s.list[1].is_worth_a_graph());
  CHECK(to_text(s) == R"(segment 0: 2 launches as a graph
cut at hook: somebody is called
segment 1: 1 launch, which is not worth a graph
cut at hook: somebody is called
cut at hook: somebody is called
)");
  const std::string notes[] = {"it failed", ""};
  CHECK(to_text(s, notes).find("segment 0: 2 launches, one by one: it failed\n") == 0);
}

TEST_CASE("steps without launches are no segment, and no steps have none") {
  CHECK(segments_of({{kView, {10}, {11}}, {kHost, {11}, {}}}).list.empty());
  CHECK(to_text(segments_of({})).empty());
}

TEST_CASE("what comes from outside is read, what is computed gets memory, the arena is neither") {
  const Segments s = segments_of({{kLaunch, {10, -1, 3}, {20}},
                                  {kLaunch, {20, 11}, {12}, {11}, {true}},
                                  {kLaunch, {20}, {21}, {20}},
                                  {kLaunch, {10, 12}, {4}, {10}}});
  REQUIRE(s.list.size() == 1);
  const Segment& segment = s.list[0];
  CHECK(read_by(segment) == Registers{10, 11, 12});
  CHECK_FALSE(segment.reads[1].is_written);
  CHECK(segment.reads[2].is_written);
  CHECK(segment.memory == Registers{20, 21});
  CHECK(segment.dead == Registers{20});
  CHECK(segment.drops == Registers{11, 10});
}

TEST_CASE("a register that is taken again belongs to the new value") {
  const Segments s =
      segments_of({{kLaunch, {10}, {20}, {10}}, {kLaunch, {20}, {10}, {20}}, {kLaunch, {10}, {20}}});
  const Segment& segment = s.list.at(0);
  CHECK(read_by(segment) == Registers{10});
  CHECK(segment.memory == Registers{20, 10});
  CHECK(segment.dead.empty());
  CHECK(segment.drops.empty());
  CHECK(segment.replaced == Registers{10});
}

TEST_CASE("what was read is released, too, where a value came in its place that nobody uses") {
  const Segments s = segments_of({{kLaunch, {10}, {0}, {10}}, {kView, {0}, {10}, {10}}, {kLaunch, {0}, {1}}});
  CHECK(s.list.at(0).replaced == Registers{10});
  CHECK(s.list.at(0).views.empty());
}

TEST_CASE("views that are used after the segment are made again, with what they are views of") {
  const Segments s = segments_of({{kLaunch, {}, {0}},
                                  {kView, {0}, {20}},
                                  {kView, {20}, {21}, {20}},
                                  {kView, {0}, {22}},
                                  {kLaunch, {22}, {1}, {22}},
                                  {kHost, {21}, {}}});
  const Segment& segment = s.list.at(0);
  CHECK(segment.views == std::vector<uint32_t>{1, 2});
  CHECK(segment.dead == Registers{20});
}

TEST_CASE("a view in a register that another view had") {
  const Segments s = segments_of(
      {{kLaunch, {}, {0}}, {kView, {0}, {20}}, {kLaunch, {20}, {1}, {20}}, {kView, {1}, {20}}, {kHost, {20}, {}}});
  CHECK(s.list.at(0).views == std::vector<uint32_t>{3});
  CHECK(s.list.at(0).dead.empty());
}
