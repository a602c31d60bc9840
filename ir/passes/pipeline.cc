// See ir/passes/pipeline.h.
#include "ir/passes/pipeline.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "ir/passes/lifetimes.h"
#include "ir/verify.h"

namespace retrograd::inline v0::ir {

bool simplify(Graph& graph, const PassInput& input, Remap& remap) {
  return apply_rewrites(graph, input.simplify, remap);
}
bool broadcast(Graph& graph, const PassInput& input, Remap& remap) {
  return apply_rewrites(graph, input.broadcast, remap);
}

Lifetimes lifetimes_of(const Graph& graph, const PassInput& input) {
  return lifetimes(graph, {.values = input.values, .writes = input.writes, .given = input.given});
}
int64_t peak_of(const Graph& graph, const PassInput& input) {
  return lifetimes_of(graph, input).peak_bytes();
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

static_assert(std::ranges::is_sorted(kPasses, {}, &Pass::stage));

// Where the passes of a stage end.
constexpr size_t end_of(Pass::Stage stage) {
  return static_cast<size_t>(std::ranges::upper_bound(kPasses, stage, {}, &Pass::stage) - kPasses);
}
constexpr size_t kRules = end_of(Pass::Stage::rules), kClean = end_of(Pass::Stage::cleaning);

class Pipeline {
 public:
  Pipeline(Graph& graph, const PassOptions& options)
      : graph_(graph), options_(options), input_(options.input) {
    if (!options.off.all()) input_.most_bytes = peak_of(graph, input_);
    begin();
  }

  // Each rule sees only a few nodes. When all of them together raise the peak, the last kind is omitted, and then the
  // one before.
  PassReport run() {
    std::optional<Graph> recorded;
    if (!(options_.off | ~PassSet((1 << kRules) - 1)).all()) recorded = graph_.copy();
    for (size_t rules = kRules;; --rules) {
      run(0, rules);
      run(kRules, kClean);
      if (!has_changed(rules) || peak_of(graph_, input_) <= input_.most_bytes) break;
      graph_ = recorded->copy();
      begin();
    }
    run(kClean, kPassCount);
    return std::move(report_);
  }

 private:
  void begin() {
    report_ = {};
    report_.remap = Remap::identity(graph_);
  }

  bool has_changed(size_t passes) const {
    return std::ranges::any_of(std::span(report_.runs).first(passes), &PassReport::Run::changed);
  }

  void run(size_t first, size_t end) {
    using Clock = std::chrono::steady_clock;
    for (size_t i = first; i < end; ++i) {
      if (options_.off[i]) continue;
      const std::string before = options_.dump ? graph_.print() : "";
      Remap remap;
      PassReport::Run& run = report_.runs[i];
      const auto start = Clock::now();
      run.changed = kPasses[i].run(graph_, input_, remap);
      run.nanoseconds = std::chrono::nanoseconds(Clock::now() - start).count();
      run.nodes = graph_.nodes().size();
      if (!run.changed) continue;
      report_.remap.then(remap);
      if (options_.verify) verify_after(kPasses[i], graph_);
      if (options_.dump) options_.dump(kPasses[i], before, graph_.print());
    }
  }

  Graph& graph_;
  const PassOptions& options_;
  PassInput input_;
  PassReport report_;
};

}  // namespace

PassReport run_passes(Graph& graph, const PassOptions& options) { return Pipeline(graph, options).run(); }

std::string PassReport::text() const {
  std::string text;
  for (size_t i = 0; i < kPassCount; ++i)
    text += fmt::format("{:<12} {:>10.1f} us  {}\n", kPasses[i].name,
                        static_cast<double>(runs[i].nanoseconds) / 1000,
                        runs[i].changed ? fmt::format("{} nodes", runs[i].nodes) : "no change");
  return text;
}

}  // namespace retrograd::ir
