// Runs a graph that was read from any text: node by node and as a plan, which must agree.
#pragma once

#include <catch2/catch.hpp>
#include <functional>

#include "engine/allocator.h"
#include "engine/runner.h"
#include "ir/replay.h"
#include "tests/ir/ir_test.h"
#include "tests/same_bits.h"
#include "tracer/plan/run.h"

namespace ir_test {

namespace ir = rg::ir;
using rg::Tensor;
using rg::Tensors;
using rg::TensorType;

inline constexpr int64_t kMostBytes = int64_t{1} << 24;  // larger values are not made

inline bool is_large(const TensorType& type) {
  double bytes = static_cast<double>(rg::element_size(type.dtype));
  for (const rg::Dim d : type.shape) bytes *= static_cast<double>(d.raw());
  return bytes > static_cast<double>(kMostBytes);
}
inline bool is_large(const std::vector<TensorType>& types) {
  return std::ranges::any_of(types, [](const TensorType& type) { return is_large(type); });
}

// Fractions; zeros where they may be indices; int32 is a permutation.
inline Tensor some(const TensorType& type) {
  std::vector<double> values(static_cast<size_t>(type.shape.numel().raw()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = type.dtype == rg::kInt32   ? static_cast<double>(i)
                : type.dtype == rg::kInt64 ? 0
                : type.dtype == rg::kBool  ? static_cast<double>(i % 2)
                                           : 0.125 * static_cast<double>(1 + i % 7);
  return rg::tensor(values, type.shape, {type.dtype});
}

struct Outcome {
  Tensors results;
  std::string error;
  bool is_out_of_memory = false;
};

inline Outcome outcome_of(const std::function<Tensors()>& run) {
  Outcome outcome;
  try {
    outcome.results = run();
  } catch (const rg::OutOfMemory& e) {
    outcome = {{}, e.what(), true};
  } catch (const rg::Error& e) {
    outcome.error = e.what();
  }
  return outcome;
}

inline std::vector<ir::Binding> bindings_of(const ir::Graph& graph) {
  std::vector<ir::Binding> bindings(graph.inputs().size());
  for (size_t i = 0; i < bindings.size(); ++i) bindings[i].tensor = some(graph.type(graph.inputs()[i]));
  return bindings;
}

inline Outcome replayed(const ir::Graph& graph) {
  return outcome_of([&] { return ir::replay(graph, rg::eager_runner(), bindings_of(graph)); });
}

inline Outcome planned(const ir::Graph& graph) {
  std::vector<rg::Number> numbers(static_cast<size_t>(graph.symbols.size()));
  return outcome_of([&] {
    const rg::Plan plan({graph, numbers, rg::cpu_executor()});
    return rg::run_plan(plan, bindings_of(graph), numbers);
  });
}

inline void check_alike(const ir::Graph& graph) {
  const Outcome replay = replayed(graph), plan = planned(graph);
  if (replay.is_out_of_memory || plan.is_out_of_memory) return;
  if (replay.error.empty() != plan.error.empty())
    FAIL_CHECK(graph.print() << "replay: " << replay.error << "\nplan: " << plan.error);
  for (size_t i = 0; i < replay.results.size() && i < plan.results.size(); ++i)
    if (!rg::testing::same_bits(replay.results[i], plan.results[i]))
      FAIL_CHECK(graph.print() << "result " << i << " has other bits in a plan");
}

}  // namespace ir_test
