// NumbersOfRun: the numbers that a run of a recorded function, or of its backward, reads anew (Emitter::live_numbers). For tracer/function_run.cc
// and function_gradients.cc only.
//
// They are read when the run begins. When it ends, those who gave them are told which of them were used, the last first: all, or, of a run that
// failed, those that the function had asked for before the code of the user's that threw, or that ran last; of those between this and
// what comes next, where passes have their way, the ones that a node which has run has. So an optimizer counts the steps that were made, and the
// generator takes places back that were not reached, as if they had not been read.
#pragma once

#include <algorithm>
#include <string>

#include "ir/each_field.h"
#include "tracer/function_capture.h"

namespace retrograd {

class FunctionCapture::NumbersOfRun {
 public:
  /// `planned`: the graph that runs. `values`: of its symbols that are not read anew. `first`: the recording has read those that are.
  NumbersOfRun(const RecordedFunction& recorded, const ir::Graph& planned, std::vector<Number> values,
               bool first)
      : recorded_(recorded), planned_(planned), values_(std::move(values)) {
    if (first) read_ = recorded_.numbers.size();
  }
  ~NumbersOfRun() {
    if (recorded_.numbers.empty()) return;
    const std::vector<bool> used = used_symbols();
    const size_t effects = RecordedFunction::effects_among(planned_, run.nodes_begun);
    for (size_t i = read_; i-- > 0;) {
      const RecordedFunction::Numbers& n = recorded_.numbers[i];
      n.settle(values_, used.empty() || n.effects < effects || used[static_cast<size_t>(n.first)]);
    }
  }
  NumbersOfRun(const NumbersOfRun&) = delete;

  void read() {
    std::vector<Scalar> now;
    for (; read_ < recorded_.numbers.size(); ++read_) {
      const RecordedFunction::Numbers& n = recorded_.numbers[read_];
      now.resize(static_cast<size_t>(n.count));
      n.live.read(now);
      for (int i = 0; i < n.count; ++i)
        values_[static_cast<size_t>(n.first + i)] = now[static_cast<size_t>(i)].number();
    }
    recorded_.graph.symbols.evaluate(values_);
  }
  const std::vector<Number>& values() const { return values_; }
  /// They are used, in a run that is none of the plan's.
  void use_all() { run.nodes_run = run.nodes_begun = planned_.nodes().size(); }

  FunctionRun run;
  /// How many of the updates of optimizers the plan has made.
  std::string updates_made() const {
    const auto& nodes = planned_.nodes();
    const auto is_update = [](const ir::Node& n) { return n.op->is(Trait::updates); };
    const auto made = std::ranges::count_if(std::span(nodes).first(run.nodes_run), is_update);
    if (made == 0) return "";
    return "when " + std::to_string(made) + " of " + std::to_string(std::ranges::count_if(nodes, is_update)) +
           " parameters had been updated";
  }

 private:
  // Of each symbol whether a node that has run has it; empty: all have.
  std::vector<bool> used_symbols() const {
    if (run.nodes_run == planned_.nodes().size()) return {};
    std::vector<bool> used(static_cast<size_t>(planned_.symbols.size()));
    for (const ir::Node& node : std::span(planned_.nodes()).first(run.nodes_run))
      ir::for_each_field(*node.op, node.attrs, [&](auto, Scalar& number) {
        if (number.is_symbolic()) used[static_cast<size_t>(number.id())] = true;
      });
    return used;
  }

  const RecordedFunction& recorded_;
  const ir::Graph& planned_;
  std::vector<Number> values_;
  size_t read_ = 0;  // of recorded_.numbers
};

}  // namespace retrograd
