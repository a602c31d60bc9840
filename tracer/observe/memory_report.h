// MemoryReport: the memory of what has a memory budget (docs/memory_budget.md), for programs and for people.
//
// Bytes are those that a run adds at its peak to what is live when it begins. Times are estimates, as parts of the time
// of all operations, each run once: the roofline of each operation.
#pragma once

#include "tracer/observe/memory_certificate.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct MemoryReport {
  /// A plan: the bytes at its peak, and the part of the estimated time that it takes in addition.
  struct Point {
    int64_t bytes;
    double recomputed_share;
  };
  /// A value that is held across the widest point, before anything is computed again, or that is computed again. The
  /// widest point is the end of the forward of a function with a backward, and the peak of anything else.
  struct Value {
    enum class Action : uint8_t { saved, computed_again, input };
    Action action;
    int32_t times;         // that it is computed again
    std::string_view op;   // "input" of an input
    SourceLocation where;  // of an input, where it is first read behind the point
    int64_t bytes;
    double share;             // of the estimated time, to compute it once more; 0 of an input
    std::string_view reason;  // in a few words
  };
  int64_t budget_bytes = 0;
  int64_t eager_bytes = 0;    // the operations in the order of the recording, one by one
  int64_t ordered_bytes = 0;  // after the passes, before anything is computed again: order and groups alone
  int64_t planned_bytes = 0;  // of a run
  int64_t lower_bound_bytes = 0;  // no plan can add less: what one operation needs
  double recomputed_share = 0;
  double plan_ms = 0;                  // the time of planning it, after the passes
  std::vector<Point> pareto = {};      // all plans that a budget chooses from, by falling bytes
  std::vector<Value> values = {};      // by falling bytes
  MemoryCertificate certificate = {};  // of the plan

  /// All of it but `pareto` and the certificate, a line each: thirty of the values.
  std::string text() const;
  /// Memory against estimated time, as a self-contained SVG: the plans of `pareto`, an eager run, order alone, the
  /// budget, the lower bound, and the plan that was chosen.
  std::string svg() const;
  /// The same as JSON: an object with the figures above by name, and "pareto", a list of {"bytes", "recomputed_share"}.
  std::string json() const;
};

}  // namespace retrograd
#pragma GCC visibility pop
