// See benchmarks/memory_budgets.h.
#include "benchmarks/memory_budgets.h"

#include <algorithm>
#include <chrono>
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

// `step`: of a training, with `compiled` in it.
Figures measure(const std::function<void()>& step, const rg::FunctionCache& compiled, int steps) {
  for (int i = 0; i < 2; ++i) step();
  Figures found{compiled.memory(), 0, resident_mb(step)};
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

Figures measure(const std::string& mode, const std::function<rg::Tensor()>& loss, rg::MemoryBudget budget,
                int steps) {
  if (mode == "compile") {
    const auto f = rg::compile(loss, {.budget = budget});
    return measure([&] { f().backward(); }, f, steps);
  }
  const auto step = rg::compile_step(
      [&] {
        const rg::Tensor l = loss();
        l.backward();
        return l.detach();
      },
      {.budget = budget});
  return measure([&] { step(); }, step, steps);
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

void measure_budgets(const std::string& model, const std::string& mode, const rg::Tensors& parameters,
                     const std::function<rg::Tensor()>& loss, const std::vector<double>& budgets, int steps) {
  for (const rg::Tensor& p : parameters) p.set_grad(rg::zeros_like(p));
  const rg::MemoryReport all = measure(mode, loss, rg::MemoryBudget::fraction(1), 1).plan;
  for (double budget : budgets) {
    const bool is_least =
        budget * static_cast<double>(all.eager_bytes) < static_cast<double>(all.pareto.back().bytes);
    const rg::MemoryBudget asked =
        is_least ? rg::MemoryBudget::bytes(all.pareto.back().bytes) : rg::MemoryBudget::fraction(budget);
    print(model, mode, measure(mode, loss, asked, steps), is_least);
  }
}

}  // namespace bench
