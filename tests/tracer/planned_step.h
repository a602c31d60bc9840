// PlannedStep: a whole step recorded on the CPU, and its plan for an executor that computes nothing
// (tracer/plan/null_executor.h).
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/passes/pipeline.h"
#include "ir/text.h"
#include "ops/all_ops.h"
#include "retrograd/retrograd.h"
#include "rewrites/rewrites.h"
#include "tracer/plan/null_executor.h"
#include "tracer/plan/run.h"

namespace retrograd::testing {

/// New values of optimizers are computed in the memory of the old ones. The passes run as for a device.
class PlannedStep {
 public:
  template <class F>
  PlannedStep(F function, const Tensors& arguments, bool records_launches = true)
      : executor(records_launches) {
    setenv(ir::kPassesOffVariable, "all", 1);  // those for the CPU
    step_.run(function, arguments);
    unsetenv(ir::kPassesOffVariable);
    graph_ = step_.graph()->copy();
    for (const ir::Binding& b : step_.bindings(arguments)) code_.push_back(b.code);
    const std::vector<ir::OutsideWrite> outside = outside_writes();
    ir::PassInput input = rewrites::all();
    input.writes = outside;
    input.executor = &executor;
    ir::run_passes(graph_, {.input = input, .verify = true});
    make_plan();
  }
  explicit PlannedStep(std::string_view text) : executor(true), graph_(ir::parse(text, ops::find_op)) {
    make_plan();
  }

  /// The log of the executor for one run.
  std::string run() {
    executor.clear();
    run_plan(*plan_, bindings_, numbers_);
    return executor.text();
  }
  Tensors results() { return run_plan(*plan_, bindings_, numbers_); }
  std::string segments() const { return plan_->segments_text(); }
  LaunchStats stats() const { return plan_->launch_stats(); }
  const ir::Graph& graph() const { return graph_; }
  /// Other numbers in later runs; `some`: each one of so many.
  void change_numbers(size_t some = 1) {
    for (size_t i = 0; i < numbers_.size(); i += some)
      if (numbers_[i].kind == Number::Kind::Float) numbers_[i] = Number::of(numbers_[i].as_double() * 0.5);
  }
  /// Has another value in later runs.
  void scale_number(size_t i, double by) { numbers_[i] = Number::of(numbers_[i].as_double() * by); }
  /// A new tensor for the first input of this type.
  void replace_input(const TensorType& type) {
    for (size_t i = 0; i < bindings_.size(); ++i)
      if (graph_.type(graph_.inputs()[i].value) == type) {
        replaced_.push_back(std::exchange(bindings_[i].tensor, {}));
        bindings_[i] = binding_of(graph_.inputs()[i]);
        return;
      }
  }

  NullExecutor executor;

 private:
  void make_plan() {
    for (int32_t id = 0; id < graph_.symbols.size(); ++id) numbers_.push_back(graph_.symbols.expr(id).hint);
    const std::vector<WrittenInput> written = writes();
    plan_ = std::make_unique<Plan>(PlanRequest{
        .graph = graph_, .values = numbers_, .executor = executor, .writes = written, .arena_waste = 0});
    for (const ir::Input& input : graph_.inputs()) {
      bindings_.push_back(binding_of(input));
      if (!code_.empty()) bindings_.back().code = code_[bindings_.size() - 1];
    }
  }

  ir::Binding binding_of(const ir::Input& input) const {
    ir::Binding b;
    if (input.kind != ir::Input::Kind::tensor) return b;
    const TensorType type = graph_.type(input.value);
    b.tensor = zeros(type.shape, {type.dtype});
    return b;
  }
  // Of inputs that an update gives their value in the end.
  std::vector<WrittenInput> writes() const {
    std::vector<WrittenInput> writes;
    for (const ir::OutsideWrite& w : outside_writes())
      writes.push_back({graph_.inputs()[static_cast<size_t>(w.input)].value,
                        graph_.outputs()[static_cast<size_t>(w.output)]});
    return writes;
  }
  std::vector<ir::OutsideWrite> outside_writes() const {
    std::vector<ir::OutsideWrite> outside;
    for (const ir::Node& node : graph_.nodes()) {
      int result = 0;
      for (ir::ValueId v : graph_.operands(node)) {
        if (!node.op->is(Trait::updates) || v == ir::kNoValue || result == node.results) continue;
        const auto input = std::ranges::find(graph_.inputs(), v, &ir::Input::value);
        const auto output = std::ranges::find(graph_.outputs(), node.first_result + result++);
        if (input == graph_.inputs().end() || output == graph_.outputs().end()) continue;
        outside.push_back({static_cast<int32_t>(input - graph_.inputs().begin()),
                           static_cast<int32_t>(output - graph_.outputs().begin())});
      }
    }
    return outside;
  }

  FunctionCache step_{FunctionKind::step};
  std::vector<RefPtr<HostCode>> code_;  // of the inputs; none of a graph that was read
  ir::Graph graph_;
  std::vector<Number> numbers_;
  std::unique_ptr<Plan> plan_;
  std::vector<ir::Binding> bindings_;
  Tensors replaced_;
};

}  // namespace retrograd::testing
