// MemoryBudget: the most bytes that a run of a recorded step, or a call of a recorded function with the backward
// directly after it, may add to what is live when it begins. Values are computed again where that is needed, with the
// same bits (docs/memory_budget.md).
//
//   auto step = rg::compile_step(f, {.budget = rg::MemoryBudget::fraction(0.35)});
//   step(x, y);
//   std::cout << step.memory().planned_bytes;
//
// A budget is a promise: a plan never exceeds it by a byte. Where no plan can meet it, the call is an
// Error(bad_argument) that says the least that can be, and which operation holds it there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "tracer/observe/memory_report.h"
#include "tracer/observe/work.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// An operation of a recording, as an estimator of costs sees it: with concrete sizes. A missing operand has an
/// undefined dtype.
struct EstimatedOp {
  std::string_view name;
  std::span<const TensorType> operands, results;
  Work work;
};
/// The time that an operation takes, in any unit: from 0 to 1e100. Calls may be concurrent.
using CostEstimator = std::function<double(const EstimatedOp&)>;

class MemoryBudget {
 public:
  /// None: memory is as the passes leave it.
  MemoryBudget() = default;
  /// At most `n` bytes. Error(bad_argument) if it is negative.
  static MemoryBudget bytes(int64_t n);
  /// This part of MemoryReport::eager_bytes. Error(bad_argument) if it is not from 0 to 1.
  static MemoryBudget fraction(double f);

  /// The same, planned by the solver of this name: default, greedy, cut, dp, repair, exact (docs/memory_budget.md).
  /// Error(bad_argument) for any other.
  MemoryBudget with_solver(std::string_view name) const;
  /// The same, with the costs of operations by the estimator of this name: roofline, flops, measured
  /// (docs/memory_budget.md). Error(bad_argument) for any other.
  MemoryBudget with_estimator(std::string_view name) const;
  /// The same, with the costs that a function gives. It decides between plans that are within the budget. A cost that
  /// is none makes the call that is planned an Error(bad_argument), as does an empty function here.
  MemoryBudget with_estimator(CostEstimator estimator) const;

  bool is_set() const { return kind_ != Kind::none; }
  /// In bytes, for what adds `eager` without a plan.
  int64_t limit(int64_t eager) const;
  std::string_view solver() const { return solver_; }
  std::string_view estimator() const { return estimator_; }
  /// Null where the estimator has a name only.
  const CostEstimator* custom_estimator() const { return custom_.get(); }

 private:
  enum class Kind : uint8_t { none, bytes, fraction };
  MemoryBudget(Kind kind, int64_t bytes, double fraction) : kind_(kind), bytes_(bytes), fraction_(fraction) {}

  Kind kind_ = Kind::none;
  int64_t bytes_ = 0;
  double fraction_ = 0;
  std::string_view solver_ = "default", estimator_ = "roofline";  // of static storage
  std::shared_ptr<const CostEstimator> custom_;
};

}  // namespace retrograd
#pragma GCC visibility pop
