// See tracer/function/memory_budget.h.
#include "tracer/function/memory_budget.h"

#include <cmath>

#include <fmt/format.h>

#include "engine/error.h"
#include "ir/budget/solve.h"
#include "tracer/function/cost_estimators.h"

namespace retrograd::inline v0 {
namespace {

[[noreturn]] void fail_unknown(std::string_view op, std::string_view what, std::string_view name,
                               const auto& known) {
  std::string names;
  for (const auto& one : known) names += fmt::format(" {}", one.name);
  fail(Category::bad_argument, op, fmt::format("there is no {} \"{}\"; there are{}", what, name, names));
}

}  // namespace

MemoryBudget MemoryBudget::bytes(int64_t n) {
  if (n < 0) fail(Category::bad_argument, "MemoryBudget::bytes", fmt::format("{} bytes are not a budget", n));
  return {Kind::bytes, n, 0};
}

MemoryBudget MemoryBudget::fraction(double f) {
  if (!(f >= 0 && f <= 1))
    fail(Category::bad_argument, "MemoryBudget::fraction",
         fmt::format("{} is not from 0 to 1. Hint: it is a part of what an eager run adds", f));
  return {Kind::fraction, 0, f};
}

MemoryBudget MemoryBudget::with_solver(std::string_view name) const {
  const ir::budget::Solver* const found = ir::budget::find_solver(name);
  if (!found) fail_unknown("MemoryBudget::with_solver", "solver", name, ir::budget::kSolvers);
  MemoryBudget budget = *this;
  budget.solver_ = found->name;
  return budget;
}

MemoryBudget MemoryBudget::with_estimator(std::string_view name) const {
  const NamedEstimator* const found = find_estimator(name);
  if (!found) fail_unknown("MemoryBudget::with_estimator", "estimator", name, kEstimators);
  MemoryBudget budget = *this;
  budget.estimator_ = found->name;
  budget.custom_.reset();
  return budget;
}

MemoryBudget MemoryBudget::with_estimator(CostEstimator estimator) const {
  if (!estimator) fail(Category::bad_argument, "MemoryBudget::with_estimator", "the function is empty");
  MemoryBudget budget = *this;
  budget.estimator_ = "custom";
  budget.custom_ = std::make_shared<const CostEstimator>(std::move(estimator));
  return budget;
}

int64_t MemoryBudget::limit(int64_t eager) const {
  return kind_ == Kind::bytes ? bytes_
                              : static_cast<int64_t>(std::floor(fraction_ * static_cast<double>(eager)));
}

}  // namespace retrograd
