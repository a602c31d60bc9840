// The result of a graph does not depend on which passes ran: random graphs, backwards captured from random programs
// (tests/fuzz) and recorded training steps run unchanged and after every set of passes. Everything visible from outside
// must agree bit for bit (graph_run.h), and remaps must be right.
#include <catch2/catch.hpp>

#include "engine/runner.h"
#include "ir/passes/lifetimes.h"
#include "tests/fuzz/asked.h"
#include "tests/fuzz/generator.h"
#include "tests/fuzz/machine.h"
#include "tests/ir/passes/graph_run.h"
#include "tests/ir/passes/passes_test.h"
#include "tests/ir/passes/random_graph.h"
#include "tests/ir/passes/recorded_steps.h"
#include "tests/ir/passes/recording_executor.h"

namespace rg = retrograd;
namespace ir = rg::ir;

namespace {

// RETROGRAD_GRAPHS is their number. With ThreadSanitizer few: on one thread there is nothing to find, at twenty times
// the cost.
#if defined(__SANITIZE_THREAD__)
constexpr int64_t kUsual = 60;
#else
constexpr int64_t kUsual = 500;
#endif
const uint64_t kGraphs = static_cast<uint64_t>(fuzz::asked_for("RETROGRAD_GRAPHS", kUsual)),
               kPrograms = kGraphs / 10;

std::string names(const ir::PassSet& off) {
  std::string text;
  for (size_t i = 0; i < ir::kPassCount; ++i)
    if (!off[i]) text += " " + std::string(ir::kPasses[i].name);
  return text;
}

// Old nodes and values are where the map says: of the same op and type, effects in order.
void check_remap(const ir::Graph& before, const ir::Graph& after, const ir::Remap& remap) {
  bool right =
      remap.nodes.size() == before.nodes().size() && remap.places.size() == before.nodes().size() + 1;
  int32_t last_effect = -1;
  for (size_t i = 0; right && i < before.nodes().size(); ++i) {
    const int32_t now = remap.nodes[i];
    right &= now < 0 || before.nodes()[i].op->name == after.nodes()[static_cast<size_t>(now)].op->name;
    right &= i == 0 || remap.places[i - 1] <= remap.places[i];
    if (now < 0 || before.nodes()[i].op->is(rg::Trait::pure)) continue;
    right &= now > last_effect && remap.places[i] <= now && now < remap.places[i + 1];
    last_effect = now;
  }
  for (ir::ValueId v = 0; right && v < before.value_count(); ++v)
    if (const ir::ValueId now = remap.values[static_cast<size_t>(v)]; now != ir::kNoValue)
      right &= ir::same_type(before.type(v), after.type(now));
  if (!right) FAIL_CHECK("the map is wrong:\n" << before.print() << after.print());
}

struct Counts {
  int graphs = 0, failing = 0, runs = 0, changed[ir::kPassCount] = {};
};

size_t number(std::string_view pass) {
  return static_cast<size_t>(std::ranges::find(ir::kPasses, pass, &ir::Pass::name) - ir::kPasses);
}
const size_t kJoin = number("join_updates"), kEarly = number("early_updates");

// The executor of the passes fuses as the CPU does, and joins updates.
void check_all_sets(const ir::Graph& graph, uint64_t seed, Counts& counts, bool any_layout = true) {
  static rg::RecordingExecutor executor;
  const bool has_updates = passes_test::has_updates(graph);
  const graph_run::Lines expected = graph_run::run(graph, seed, any_layout);
  const auto is_error = [](const std::string& line) { return line.starts_with("error"); };
  if (std::ranges::any_of(expected, is_error)) return void(++counts.failing);
  ++counts.graphs;
  std::vector<std::string> seen;  // texts: many sets make the same
  for (uint64_t set = 0; set < uint64_t{1} << ir::kPassCount; ++set) {
    const ir::PassSet off(set);
    if ((off[kJoin] || off[kEarly]) && !has_updates) continue;  // a repetition
    ir::Graph copy = graph.copy();
    ir::PassInput input = rg::rewrites::all();
    input.executor = &executor;
    const ir::PassReport report = ir::run_passes(copy, {.input = input, .off = off, .verify = true});
    for (size_t i = 0; i < ir::kPassCount; ++i) counts.changed[i] += report.runs[i].changed;
    check_remap(graph, copy, report.remap);
    std::string text = copy.print();
    if (std::ranges::find(seen, text) != seen.end()) continue;
    ++counts.runs;
    const graph_run::Lines found = graph_run::run(copy, seed, any_layout);
    if (found == expected) {
      seen.push_back(std::move(text));
      continue;
    }
    size_t line = 0;
    while (line < found.size() && line < expected.size() && found[line] == expected[line]) ++line;
    FAIL_CHECK("seed " << seed << ", passes" << names(off) << ", line " << line << "\n  "
                       << (line < expected.size() ? expected[line] : "nothing") << "\n  "
                       << (line < found.size() ? found[line] : "nothing") << "\n"
                       << graph.print() << "became\n"
                       << text);
    return;
  }
}

void check_counts(const Counts& counts) {
  std::string text;
  for (size_t i = 0; i < ir::kPassCount; ++i)
    text += " " + std::string(ir::kPasses[i].name) + " " + std::to_string(counts.changed[i]);
  CHECK(counts.failing * 10 < counts.graphs);  // those with indices that are out of range
  WARN(counts.graphs << " graphs, " << counts.runs << " other graphs made of them; changed by" << text);
}

}  // namespace

TEST_CASE("random graphs") {
  Counts counts;
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) check_all_sets(random_graph::make(seed), seed, counts);
  check_counts(counts);
  for (size_t i = 0; i < ir::kPassCount; ++i)
    CHECK((i == kJoin || i == kEarly || static_cast<uint64_t>(counts.changed[i]) > kGraphs / 20));
}

TEST_CASE("backwards of random programs") {
  Counts counts;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    rg::CompiledBackward compiled;
    std::vector<std::shared_ptr<const ir::Graph>> graphs;
    {
      const rg::CompiledBackwardScope scope(compiled);
      const fuzz::Program program = fuzz::generate(seed);
      fuzz::Machine machine(program);
      machine.after_backward = [&] {
        if (const auto graph = compiled.graph();
            graph && graph_run::can_run(*graph) && std::ranges::find(graphs, graph) == graphs.end())
          graphs.push_back(graph);
      };
      machine.run();
    }
    for (const auto& graph : graphs) check_all_sets(*graph, seed, counts);
  }
  check_counts(counts);
  CHECK(static_cast<uint64_t>(counts.graphs) > kPrograms / 2);
}

TEST_CASE("recorded training steps") {
  Counts counts;
  for (const recorded_steps::Step& step : recorded_steps::all_small()) {
    INFO(step.name);
    check_all_sets(step.graph, 1, counts, false);  // optimizers refuse other layouts
  }
  check_counts(counts);
  CHECK(counts.changed[kJoin] > 0);
  CHECK(counts.changed[kEarly] > 0);
}

TEST_CASE("the peak never rises") {
  int lower = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    ir::Graph graph = random_graph::make(seed);
    const int64_t before = ir::lifetimes(graph).peak_bytes();
    ir::run_passes(graph, {.off = passes_test::all_but("schedule")});
    const int64_t after = ir::lifetimes(graph).peak_bytes();
    if (after > before) FAIL_CHECK("seed " << seed);
    lower += after < before;
  }
  WARN("lower in " << lower << " of 1500");
  CHECK(lower > 100);
}
