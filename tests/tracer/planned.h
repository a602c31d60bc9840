// Planned: a backward recorded as compile_backward() does, and its plan for an executor of the test's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "retrograd/retrograd.h"
#include "tracer/plan.h"
#include "tracer/trail.h"

namespace retrograd::testing {

class Planned {
 public:
  Planned(const Tensor& loss, Executor& executor, bool retain_graph = false)
      : request_(make_request({loss}, {}, {}, true, retain_graph, false, SourceLocation::current())),
        walk_(request_.walk()),
        trail_(request_, walk_),
        reached_(walk_.reached()) {
    record();
    for (int32_t id = 0; id < graph_.symbols.size(); ++id) values_.push_back(graph_.symbols.expr(id).hint);
    plan_ = std::make_unique<Plan>(graph_, sources_, rules_, log_, values_, executor);
  }

  void run() const { plan_->run(request_, reached_, trail_, values_); }

 private:
  void record() {
    Recorder recorder(graph_, walk_);
    BackwardRequest symbolic = request_;
    symbolic.retain_graph = true;
    for (size_t i = 0; i < symbolic.cotangents.size(); ++i)
      symbolic.cotangents[i] = recorder.root(static_cast<uint32_t>(i), request_.cotangents[i].impl().type());
    record_backward(symbolic, walk_, recorder, &recorder);
    sources_ = std::move(recorder.sources);
    rules_ = std::move(recorder.rules);
    if (recorder.log.may_leave) log_ = std::move(recorder.log);
  }

  ir::Graph graph_;
  BackwardRequest request_;
  Walk walk_;
  Trail trail_;
  Reached reached_;
  std::vector<Source> sources_;
  std::vector<RuleRun> rules_;
  DriveLog log_;
  std::vector<Number> values_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace retrograd::testing
