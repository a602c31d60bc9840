// NumbersOfRun: the numbers that a run of a recorded function, or of its backward, reads again (LiveNumbers).
//
// They are read when the run begins. Each LiveNumbers source is then told, in reverse order, whether its numbers were
// used. After a failed run, these are the numbers requested before the user code that threw or ran last; of later
// numbers, those used by a node that ran. Thus optimizers count completed steps, and the generator rewinds unused
// draws.
#pragma once

#include <algorithm>
#include <string>

#include "engine/each_field.h"
#include "tracer/function/planning.h"

namespace retrograd::inline v0 {

class NumbersOfRun {
 public:
  /// `planned`: the graph that runs. `values`: of its symbols; those of LiveNumbers are read again. `first`: the
  /// recording has just read them.
  NumbersOfRun(const RecordedFunction& recorded, const ir::Graph& planned, std::vector<Number> values,
               bool first)
      : recorded_(recorded), planned_(planned), values_(std::move(values)) {
    if (first) read_ = recorded_.numbers.size();
  }
  ~NumbersOfRun() {
    if (recorded_.numbers.empty()) return;
    const std::vector<bool> used = used_symbols();
    const size_t effects = RecordedFunction::effects_among(planned_, nodes.begun);
    for (size_t i = read_; i-- > 0;) {
      const RecordedFunction::Numbers& n = recorded_.numbers[i];
      n.settle(values_, used.empty() || n.effects < effects || used[static_cast<size_t>(n.first)]);
    }
  }
  NumbersOfRun(const NumbersOfRun&) = delete;

  void read() {
    for (; read_ < recorded_.numbers.size(); ++read_) recorded_.numbers[read_].read(values_);
    const SymbolTable& symbols = recorded_.graph.symbols;
    symbols.evaluate(values_);
    if (symbols.failing_guard(values_) >= 0)
      fail(Category::unsupported, "compile",
           "a live number that decides what was recorded has changed since the call began, or before its backward. "
           "Hint: Live::value() where it decides");
  }
  const std::vector<Number>& values() const { return values_; }
  /// Marks all numbers as used, for a run without the plan.
  void use_all() { nodes.done = nodes.begun = planned_.nodes().size(); }

  NodesRun nodes;
  /// The number of optimizer updates that the plan has completed, in words.
  std::string updates_made() const {
    const auto& all = planned_.nodes();
    const auto is_update = [](const ir::Node& n) { return n.op->is(Trait::updates); };
    const auto made = std::ranges::count_if(std::span(all).first(nodes.done), is_update);
    if (made == 0) return "";
    return "when " + std::to_string(made) + " of " + std::to_string(std::ranges::count_if(all, is_update)) +
           " parameters had been updated";
  }

 private:
  // For each symbol, whether a node that has run uses it; empty: all are used.
  std::vector<bool> used_symbols() const {
    if (nodes.done == planned_.nodes().size()) return {};
    std::vector<bool> used(static_cast<size_t>(planned_.symbols.size()));
    for (const ir::Node& node : std::span(planned_.nodes()).first(nodes.done))
      ir::for_each_field(*node.op, node.attrs, [&](auto, Scalar& number) {
        if (number.is_symbolic()) used[static_cast<size_t>(number.id())] = true;
      });
    return used;
  }

  const RecordedFunction& recorded_;
  const ir::Graph& planned_;
  std::vector<Number> values_;
  size_t read_ = 0;  // number of recorded_.numbers read
};

}  // namespace retrograd
