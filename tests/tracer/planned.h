// Planned: a backward recorded as compile_backward() does, and its plan for another executor than the CPU's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "retrograd/retrograd.h"
#include "tracer/backward/recorded_backward.h"

namespace retrograd::testing {

class Planned {
 public:
  Planned(const Tensor& loss, Executor& executor, bool retain_graph = false)
      : request_(make_request({loss}, {}, {}, true, retain_graph, false, SourceLocation::current())),
        walk_(request_.walk()),
        trail_(request_, walk_),
        reached_(walk_.reached()) {
    record();
    const SymbolTable& symbols = recorded_.graph.symbols;
    for (int32_t id = 0; id < symbols.size(); ++id) values_.push_back(symbols.expr(id).hint);
    plan_ = recorded_.plan(values_, executor);
  }

  void run() const { recorded_.run(*plan_, request_, reached_, trail_, values_); }
  /// The names of the nodes that are launched, in order.
  std::vector<std::string> nodes_to_launch() const {
    std::vector<std::string> names;
    for (const ir::Node& node : recorded_.graph.nodes())
      if (!node.op->run_on_host && !node.op->is(Trait::view)) names.emplace_back(node.op->name);
    return names;
  }

 private:
  void record() {
    Recorder recorder(recorded_.graph, walk_);
    BackwardRequest symbolic = request_;
    symbolic.retain_graph = true;
    for (size_t i = 0; i < symbolic.cotangents.size(); ++i)
      symbolic.cotangents[i] = recorder.root(static_cast<uint32_t>(i), request_.cotangents[i].impl().type());
    record_backward(symbolic, walk_, recorder, &recorder);
    recorded_.take(recorder);
  }

  RecordedBackward recorded_;
  BackwardRequest request_;
  Walk walk_;
  Trail trail_;
  Reached reached_;
  std::vector<Number> values_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace retrograd::testing
