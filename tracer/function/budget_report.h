// What a MemoryReport says of the plan of a fitted graph, in terms of the graph: its values and its certificate.
#pragma once

#include "ir/passes/budget.h"
#include "tracer/observe/memory_report.h"

namespace retrograd::inline v0 {

/// `graph`: as it was before it was fitted.
std::vector<MemoryReport::Value> values_of(const ir::Graph& graph, const ir::BudgetFit& fit);

/// `besides`: the bytes that a run holds besides the graph.
MemoryCertificate certificate_of(const ir::Graph& graph, const ir::BudgetFit& fit, int64_t besides);

}  // namespace retrograd
