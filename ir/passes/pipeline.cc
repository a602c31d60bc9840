// See ir/passes/pipeline.h.
#include "ir/passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "ir/verify.h"

namespace retrograd::ir {

bool simplify(Graph& graph, const PassInput& input, Remap& remap) {
  return apply_rewrites(graph, input.simplify, remap);
}
bool broadcast(Graph& graph, const PassInput& input, Remap& remap) {
  return apply_rewrites(graph, input.broadcast, remap);
}

PassSet passes_named(const char* names) {
  PassSet set;
  std::string_view left = names ? names : "";
  while (!left.empty()) {
    const std::string_view name = left.substr(0, left.find(','));
    left.remove_prefix(std::min(name.size() + 1, left.size()));
    const auto* pass = std::ranges::find(kPasses, name, &Pass::name);
    if (pass != std::end(kPasses))
      set.set(static_cast<size_t>(pass - kPasses));
    else if (name == "all")
      set.set();
    else if (!name.empty()) {
      std::string known;
      for (const Pass& p : kPasses) known += fmt::format(" {}", p.name);
      throw Error(Category::bad_argument, fmt::format("there is no pass \"{}\"; there are{}", name, known));
    }
  }
  return set;
}

namespace {

void verify_after(const Pass& pass, const Graph& graph) {
  try {
    verify(graph);
  } catch (const InternalError& e) {
    throw InternalError(fmt::format("after the pass {}: {}", pass.name, e.what()));
  }
}

}  // namespace

PassReport run_passes(Graph& graph, const PassOptions& options) {
  using Clock = std::chrono::steady_clock;
  PassReport report;
  report.remap = Remap::identity(graph);
  for (size_t i = 0; i < kPassCount; ++i) {
    if (options.off[i]) continue;
    const std::string before = options.dump ? graph.print() : "";
    Remap remap;
    PassReport::Run& run = report.runs[i];
    const auto start = Clock::now();
    run.changed = kPasses[i].run(graph, options.input, remap);
    run.nanoseconds = std::chrono::nanoseconds(Clock::now() - start).count();
    run.nodes = graph.nodes().size();
    if (!run.changed) continue;
    report.remap.then(remap);
    if (options.verify) verify_after(kPasses[i], graph);
    if (options.dump) options.dump(kPasses[i], before, graph.print());
  }
  return report;
}

std::string PassReport::text() const {
  std::string text;
  for (size_t i = 0; i < kPassCount; ++i)
    text += fmt::format("{:<12} {:>10.1f} us  {}\n", kPasses[i].name,
                        static_cast<double>(runs[i].nanoseconds) / 1000,
                        runs[i].changed ? fmt::format("{} nodes", runs[i].nodes) : "no change");
  return text;
}

}  // namespace retrograd::ir
