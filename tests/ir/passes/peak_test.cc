// The planned peak after any set of passes is not above that of the recorded graph: random graphs, backwards captured
// from random programs, recorded steps, networks with wide branches. Peaks are those of ir/passes/lifetimes.h,
// including the temporary memory of groups' kernels. With "[.figures]" a table.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>

#include "engine/runner.h"
#include "ir/passes/group_memory.h"
#include "ir/passes/lifetimes.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/rearrange.h"
#include "ops/reduce.h"
#include "ops/unary.h"
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
using recorded_steps::Step;

namespace {

// RETROGRAD_GRAPHS is their number. With ThreadSanitizer few: on one thread there is nothing to find, at twenty times
// the cost.
#if defined(__SANITIZE_THREAD__)
constexpr int64_t kUsual = 100;
#else
constexpr int64_t kUsual = 400;
#endif
const uint64_t kGraphs = static_cast<uint64_t>(fuzz::asked_for("RETROGRAD_GRAPHS", kUsual));

struct Case {
  const ir::Graph& graph;
  std::span<const ir::OutsideWrite> writes = {};
  std::vector<int32_t> given = {};
  rg::Executor& executor = rg::cpu_executor();

  int64_t peak(const ir::Graph& of) const {
    ir::GroupMemories kernels(of, executor);
    return ir::lifetimes(of, {.writes = writes, .given = given, .groups = &kernels}).peak_bytes();
  }
  ir::Graph after(ir::PassSet off) const {
    ir::Graph copy = graph.copy();
    ir::PassInput input = rg::rewrites::all();
    input.writes = writes;
    input.given = given;
    input.executor = &executor;
    ir::run_passes(copy, {.input = input, .off = off, .verify = true});
    return copy;
  }
};

struct Counts {
  int graphs = 0, lower = 0, above = 0;
};

void check_all_sets(const Case& c, const std::string& name, Counts& counts) {
  const int64_t before = c.peak(c.graph);
  ++counts.graphs;
  counts.lower += c.peak(c.after({})) < before;
  const bool joins = c.executor.joins_updates(c.graph.types()[0]),
             has_updates = passes_test::has_updates(c.graph);
  for (uint64_t set = 0; set < uint64_t{1} << ir::kPassCount; ++set) {
    const ir::PassSet off(set);
    if ((!joins && (off & ir::passes_named("join_updates")).any()) ||
        (!has_updates && (off & ir::passes_named("early_updates")).any()))
      continue;  // a repetition
    const ir::Graph now = c.after(off);
    if (c.peak(now) <= before) continue;
    ++counts.above;
    FAIL_CHECK(name << ", passes off " << off << ": " << before << " became " << c.peak(now) << "\n"
                    << c.graph.print() << "became\n"
                    << now.print());
    return;
  }
}

// All inputs that are tensors.
std::vector<int32_t> tensor_inputs(const ir::Graph& graph) {
  std::vector<int32_t> all;
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    if (graph.inputs()[i].kind == ir::Input::Kind::tensor) all.push_back(static_cast<int32_t>(i));
  return all;
}

}  // namespace

TEST_CASE("peaks of random graphs") {
  Counts counts;
  for (uint64_t seed = 1; seed <= kGraphs && counts.above < 3; ++seed) {
    const ir::Graph graph = random_graph::make(seed);
    check_all_sets({graph}, "seed " + std::to_string(seed), counts);
    check_all_sets({graph, {}, tensor_inputs(graph)}, "inputs given, seed " + std::to_string(seed), counts);
  }
  WARN("lower in " << counts.lower << " of " << counts.graphs);
}

TEST_CASE("peaks of backwards of random programs") {
  Counts counts;
  for (uint64_t seed = 1; seed <= 100 && counts.above < 3; ++seed) {
    rg::CompiledBackward compiled;
    const rg::CompiledBackwardScope scope(compiled);
    const fuzz::Program program = fuzz::generate(seed);
    fuzz::Machine machine(program);
    machine.after_backward = [&] {
      if (const auto graph = compiled.graph())
        check_all_sets({*graph}, "program " + std::to_string(seed), counts);
    };
    machine.run();
  }
  CHECK(counts.graphs > 50);
  WARN("lower in " << counts.lower << " of " << counts.graphs);
}

TEST_CASE("peaks of recorded steps") {
  Counts counts;
  rg::RecordingExecutor joining;
  for (const Step& step : recorded_steps::all_small()) {
    check_all_sets({step.graph, step.writes}, step.name, counts);
    check_all_sets({step.graph, step.writes, {}, joining}, step.name + ", updates joined", counts);
  }
}

TEST_CASE("a hundred thousand nodes take no more than seconds, also where groups are cut") {
  constexpr int kNodes = 100000;
  const rg::TensorType row{rg::kFloat32, rg::kCPU, {1, 100}}, column{rg::kFloat32, rg::kCPU, {100, 1}},
      whole{rg::kFloat32, rg::kCPU, {100, 100}};
  ir::Graph apart, repeated;  // each of its own input; groups that are all above the peak
  const auto node = [](ir::Graph& graph, const rg::OpInfo& op, std::vector<ir::ValueId> operands,
                       const void* attrs, const rg::TensorType& type) {
    return graph.append(op, operands, attrs, {&type, 1}).first_result;
  };
  std::vector<ir::ValueId> outputs;
  for (int i = 0; i < kNodes; ++i)
    outputs.push_back(node(apart, rg::ops::info<rg::ops::Neg>, {apart.add_tensor_input(row)}, nullptr, row));
  apart.set_outputs(outputs);
  const ir::ValueId side = repeated.add_tensor_input(column);
  ir::ValueId x = repeated.add_tensor_input(row);
  const rg::ops::Flip::Attrs first{rg::IntList{0}};
  const rg::ops::Sum::Attrs columns{{0}, true};
  const rg::ops::Mul::Attrs product{};
  for (int i = 0; i < kNodes / 7; ++i) {
    const ir::ValueId a = node(repeated, rg::ops::info<rg::ops::Flip>, {x}, &first, row);
    const ir::ValueId b = node(repeated, rg::ops::info<rg::ops::Flip>, {a}, &first, row);
    const ir::ValueId waits = node(repeated, rg::ops::info<rg::ops::Mul>, {a, b}, &product, row);
    const ir::ValueId outer = node(repeated, rg::ops::info<rg::ops::Mul>, {side, x}, &product, whole);
    const ir::ValueId exp = node(repeated, rg::ops::info<rg::ops::Exp>, {outer}, nullptr, whole);
    const ir::ValueId sum = node(repeated, rg::ops::info<rg::ops::Sum>, {exp}, &columns, row);
    x = node(repeated, rg::ops::info<rg::ops::Mul>, {waits, sum}, &product, row);
  }
  repeated.set_outputs({x});
  for (const ir::Graph* graph : {&apart, &repeated}) {
    const Case c{*graph};
    const auto start = std::chrono::steady_clock::now();
    const ir::Graph now = c.after({});
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
    CHECK(c.peak(now) <= c.peak(*graph));
  }
}

TEST_CASE("figures of peaks", "[.figures]") {
  std::vector<Step> steps = recorded_steps::all_small();
  steps.push_back(recorded_steps::gpt(12, 768, 4, 64));
  steps.push_back(recorded_steps::gpt(12, 768, 4, 64, true));
  steps.push_back(recorded_steps::gpt(100, 16, 2, 8));
  steps.push_back(recorded_steps::gpt(1000, 16, 2, 8));
  for (const Step& step : steps) {
    const Case c{step.graph, step.writes};
    const auto start = std::chrono::steady_clock::now();
    const ir::Graph now = c.after({});
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const ir::Graph plain = c.after(ir::passes_named("fuse"));
    size_t grouped = 0;
    for (const ir::Node& n : now.nodes()) grouped += n.group >= 0;
    const auto free = ir::find_groups(plain, {rg::cpu_executor()});
    std::printf(
        "%-40s %7zu nodes, peak %10.3f -> %10.3f unfused, %10.3f MB; groups %d of %d, %zu of %td nodes; %.1f "
        "ms\n",
        step.name.c_str(), now.nodes().size(), static_cast<double>(c.peak(step.graph)) / 1e6,
        static_cast<double>(c.peak(plain)) / 1e6, static_cast<double>(c.peak(now)) / 1e6,
        1 + std::ranges::max(now.nodes(), {}, &ir::Node::group).group, free.groups, grouped,
        std::ranges::count_if(free.group, [](int32_t g) { return g >= 0; }), ms);
  }
}
