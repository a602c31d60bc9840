// See benchmarks/memory_budgets.h.
#include "benchmarks/memory_budgets.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

#include "benchmarks/common/line.h"

namespace bench {
namespace {

namespace rg = retrograd;
using Clock = std::chrono::steady_clock;

// A number of /proc/self/status, in MB; 0 if there is none.
double status_mb(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key + ":")) return std::stod(line.substr(key.size() + 1)) / 1024;
  return 0;
}

// What a run adds to the resident memory of the process.
double resident_mb(const std::function<void()>& run) {
  rg::memory::empty_cache();
  std::ofstream("/proc/self/clear_refs") << "5";
  const double before = status_mb("VmRSS");
  run();
  return status_mb("VmHWM") - before;
}

struct Figures {
  rg::MemoryReport plan;
  double step_ms, rss_mb;
  int64_t measured = 0;
};

// What is trained, and how: step or compile.
struct Subject {
  std::string mode;
  rg::Tensors parameters;
  std::function<rg::Tensor()> loss;
};

// A step of a training with a budget, and the memory of its plan once it has run.
struct Training {
  std::function<void()> step;
  std::function<rg::MemoryReport()> memory;
};

Training training_of(const Subject& subject, rg::MemoryBudget budget) {
  if (subject.mode == "compile") {
    const auto f = rg::compile(subject.loss, {.budget = budget});
    return {[f, parameters = subject.parameters] {
              f().backward();
              for (const rg::Tensor& p : parameters) p.set_grad({});
            },
            [f] { return f.memory(); }};
  }
  const auto f = rg::compile_step(
      [loss = subject.loss] {
        const rg::Tensor l = loss();
        l.backward();
        return l.detach();
      },
      {.budget = budget});
  return {[f] { f(); }, [f] { return f.memory(); }};
}

Figures measure(const Training& training, int steps) {
  const std::function<void()>& step = training.step;
  for (int i = 0; i < 2; ++i) step();
  Figures found{training.memory(), 0, resident_mb(step)};
  std::vector<double> times;
  for (int i = 0; i < steps; ++i) {
    const int64_t before = rg::memory::stats().live_bytes;
    rg::memory::reset_peak();
    const auto begin = Clock::now();
    step();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    found.measured = std::max(found.measured, rg::memory::stats().peak_bytes - before);
  }
  std::nth_element(times.begin(), times.begin() + steps / 2, times.end());
  found.step_ms = times[static_cast<size_t>(steps / 2)];
  return found;
}

struct Range {
  int64_t eager = 0, least = 0;  // bytes
};

// The last plans of a curve may be out of reach (docs/memory_budget.md).
Range range_of(const Subject& subject) {
  const auto planned = [&](rg::MemoryBudget budget) {
    const Training training = training_of(subject, budget);
    training.step();
    return training.memory();
  };
  const rg::MemoryReport all = planned(rg::MemoryBudget::fraction(1));
  for (size_t i = all.pareto.size(); --i > 0;) try {
      return {all.eager_bytes, planned(rg::MemoryBudget::bytes(all.pareto[i].bytes)).planned_bytes};
    } catch (const rg::Error& e) {
      if (e.category() != rg::Category::bad_argument) throw;
    }
  return {all.eager_bytes, all.planned_bytes};
}

// In bytes.
std::vector<int64_t> budgets_in(const Range& range, const Budgets& budgets) {
  std::vector<int64_t> all;
  for (double part : budgets.parts)
    all.push_back(static_cast<int64_t>(part * static_cast<double>(range.eager)));
  for (int i = 0; i < budgets.count; ++i)
    all.push_back(range.eager - (range.eager - range.least) * i / (budgets.count - 1));
  return all;
}

// Prints what does not hold. `all`: of all budgets so far.
bool check(const std::vector<Figures>& all) {
  const Figures& last = all.back();
  bool holds = true;
  const auto require = [&](bool is_right, const char* promise, int64_t found, int64_t expected) {
    if (!is_right)
      std::fprintf(stderr, "a budget of %lld bytes: %s: %lld, %lld\n",
                   static_cast<long long>(last.plan.budget_bytes), promise, static_cast<long long>(found),
                   static_cast<long long>(expected));
    holds &= is_right;
  };
  const int64_t planned = last.plan.planned_bytes;
  require(last.measured == planned, "a step adds what was planned", last.measured, planned);
  require(planned <= last.plan.budget_bytes, "the plan is within it", planned, last.plan.budget_bytes);
  for (const Figures& other : all)
    require((other.plan.budget_bytes < last.plan.budget_bytes) <= (other.plan.planned_bytes <= planned) &&
                (other.plan.budget_bytes > last.plan.budget_bytes) <= (other.plan.planned_bytes >= planned),
            "for a smaller one no more is planned", planned, other.plan.planned_bytes);
  return holds;
}

void print(const std::string& model, const std::string& mode, const Figures& f, bool is_least) {
  Line()
      .text("bench", "memory")
      .text("model", model)
      .text("mode", mode)
      .number("budget", static_cast<double>(f.plan.budget_bytes) / static_cast<double>(f.plan.eager_bytes), 3)
      .count("budget_bytes", f.plan.budget_bytes)
      .count("planned_peak", f.plan.planned_bytes)
      .count("measured_peak", f.measured)
      .number("rss_peak_mb", f.rss_mb, 1)
      .number("step_ms", f.step_ms, 1)
      .number("recomputed_share", f.plan.recomputed_share, 4)
      .count("lower_bound_bytes", f.plan.lower_bound_bytes)
      .number("plan_ms", f.plan.plan_ms, 1)
      .text("least", is_least ? "true" : "false")
      .print();
}

}  // namespace

bool measure_budgets(const std::string& model, const std::string& mode, const rg::Tensors& parameters,
                     const std::function<rg::Tensor()>& loss, const Budgets& budgets, int steps) {
  const Subject subject{mode, parameters, loss};
  if (mode == "step")
    for (const rg::Tensor& p : parameters) p.set_grad(rg::zeros_like(p));
  const Range range = range_of(subject);
  std::vector<Figures> all;
  bool holds = true;
  for (int64_t bytes : budgets_in(range, budgets)) {
    const rg::MemoryBudget budget = rg::MemoryBudget::bytes(std::max(bytes, range.least));
    all.push_back(measure(training_of(subject, budget), steps));
    print(model, mode, all.back(), bytes < range.least);
    holds &= check(all);
  }
  return holds;
}

}  // namespace bench
