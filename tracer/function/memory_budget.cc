// See tracer/function/memory_budget.h.
#include "tracer/function/memory_budget.h"

#include <cmath>

#include <fmt/format.h>

#include "engine/error.h"
#include "ir/budget/solve.h"

namespace retrograd::inline v0 {

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
  if (!found) {
    std::string known;
    for (const ir::budget::Solver& solver : ir::budget::kSolvers) known += fmt::format(" {}", solver.name);
    fail(Category::bad_argument, "MemoryBudget::with_solver",
         fmt::format("there is no solver \"{}\"; there are{}", name, known));
  }
  MemoryBudget budget = *this;
  budget.solver_ = found->name;
  return budget;
}

int64_t MemoryBudget::limit(int64_t eager) const {
  return kind_ == Kind::bytes ? bytes_
                              : static_cast<int64_t>(std::floor(fraction_ * static_cast<double>(eager)));
}

}  // namespace retrograd
