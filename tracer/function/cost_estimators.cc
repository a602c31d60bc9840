// See tracer/function/cost_estimators.h.
#include "tracer/function/cost_estimators.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "engine/error.h"
#include "tracer/observe/machine_rates.h"

namespace retrograd::inline v0 {
namespace {

// Rates of a core with wide vectors and of its share of memory, for the ratio of compute to memory of an op. What a
// launch costs at least is that of some kilobytes.
constexpr double kFlopsPerByte = 8, kLaunchBytes = 4096;
// Sums and products of so many costs as a graph has nodes are finite.
constexpr double kMostCost = 1e100;

// `cost`: of an op, asked for each node but views.
template <class Cost>
double cost_of_node(const ir::Graph& graph, const ir::Node& node, const Cost& cost) {
  if (node.op->is(Trait::view)) return 0;
  std::vector<TensorType> operands, results;
  for (ir::ValueId v : graph.operands(node))
    operands.push_back(v == ir::kNoValue ? TensorType() : graph.type(v));
  for (int r = 0; r < node.results; ++r) results.push_back(graph.type(node.first_result + r));
  return cost(EstimatedOp{node.op->name, operands, results, work_of(*node.op, operands, results)});
}

double checked(double cost, const EstimatedOp& op, SourceLocation where) {
  if (!(cost >= 0 && cost <= kMostCost))
    fail(
        Category::bad_argument, "MemoryBudget::with_estimator",
        fmt::format("the estimator gives {} for {}. Hint: a cost is a number from 0 to 1e100", cost, op.name),
        where);
  return cost;
}

}  // namespace

double roofline_cost(const EstimatedOp& op, double flops_per_byte) {
  return std::max(op.work.bytes, op.work.flops / flops_per_byte) + kLaunchBytes;
}

double flops_cost(const EstimatedOp& op, double) { return std::max(op.work.flops, 1.0); }

const NamedEstimator* find_estimator(std::string_view name) {
  const auto* const found = std::ranges::find(kEstimators, name, &NamedEstimator::name);
  return found == std::end(kEstimators) ? nullptr : found;
}

ir::NodeCost node_cost(const MemoryBudget& budget, Device device) {
  if (const CostEstimator* custom = budget.custom_estimator())
    return [custom](const ir::Graph& graph, const ir::Node& node) {
      return cost_of_node(graph, node,
                          [&](const EstimatedOp& op) { return checked((*custom)(op), op, node.where); });
    };
  const NamedEstimator& named = *find_estimator(budget.estimator());
  const double flops_per_byte = named.is_measured ? machine_rates(device).flops_per_byte() : kFlopsPerByte;
  return [cost = named.cost, flops_per_byte](const ir::Graph& graph, const ir::Node& node) {
    return cost_of_node(graph, node, [&](const EstimatedOp& op) { return cost(op, flops_per_byte); });
  };
}

}  // namespace retrograd
