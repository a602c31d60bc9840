// Plans made for an executor that computes nothing: the order of launches is that of the graph, memory is
// taken when a value is computed and given back at its last use, a dying operand's memory is written over.
// Not tested here: what plans compute (tests/tracer/proof_test.cc).
#include <catch2/catch.hpp>
#include <memory>
#include <sstream>

#include "engine/runner.h"
#include "ops/all_ops.h"
#include "ops/arithmetic.h"
#include "retrograd/retrograd.h"
#include "tracer/null_executor.h"
#include "tracer/plan.h"
#include "tracer/trail.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

// A backward recorded as compile_backward() does, and its plan for another executor than the CPU's.
class Planned {
 public:
  Planned(const Tensor& loss, rg::Executor& executor, bool retain_graph = false)
      : request_(rg::make_request({loss}, {}, {}, true, retain_graph, false, rg::SourceLocation::current())),
        walk_(request_.walk()),
        trail_(request_, walk_),
        reached_(walk_.reached()) {
    record();
    std::vector<rg::Number> values;
    for (int32_t id = 0; id < graph_.symbols.size(); ++id) values.push_back(graph_.symbols.expr(id).hint);
    plan_ = std::make_unique<rg::Plan>(graph_, sources_, rules_, log_, values, executor);
    values_ = std::move(values);
  }

  void run() const { plan_->run(request_, reached_, trail_, values_); }
  /// The names of the nodes that an executor has to do with, in order.
  std::vector<std::string> nodes_to_launch() const {
    std::vector<std::string> names;
    for (const rg::ir::Node& node : graph_.nodes())
      if (!node.op->run_on_host && !node.op->is(rg::Trait::view)) names.emplace_back(node.op->name);
    return names;
  }

 private:
  void record() {
    rg::Recorder recorder(graph_, walk_);
    rg::BackwardRequest symbolic = request_;
    symbolic.retain_graph = true;
    for (size_t i = 0; i < symbolic.cotangents.size(); ++i)
      symbolic.cotangents[i] = recorder.root(static_cast<uint32_t>(i), request_.cotangents[i].impl().type());
    rg::record_backward(symbolic, walk_, recorder, &recorder);
    sources_ = std::move(recorder.sources);
    rules_ = std::move(recorder.rules);
    if (recorder.log.may_leave) log_ = std::move(recorder.log);
  }

  rg::ir::Graph graph_;
  rg::BackwardRequest request_;
  rg::Walk walk_;
  rg::Trail trail_;
  rg::Reached reached_;
  std::vector<rg::Source> sources_;
  std::vector<rg::RuleRun> rules_;
  rg::DriveLog log_;
  std::vector<rg::Number> values_;
  std::unique_ptr<rg::Plan> plan_;
};

std::vector<std::string> launched(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("launch ")) names.push_back(line.substr(7, line.find('#') - 7));
  return names;
}

Tensor leaf(int rows, int columns) { return rg::full({rows, columns}, 0.5).requires_grad_(); }

}  // namespace

TEST_CASE("a dying operand's memory is written over, and nothing is allocated for the result") {
  const Tensor x = leaf(4, 4);
  rg::NullExecutor executor;
  const Planned planned(rg::sum(rg::neg(rg::neg(rg::exp(x)))), executor);
  executor.clear();
  planned.run();
  // What the first neg reads is an expanded number, which has no memory to write to. Its result dies in the
  // second, and so on to the leaf, which takes the memory over. The result of exp goes with the slot that it
  // was saved in.
  CHECK(executor.text() == R"(allocate f32[4,4]
launch neg#0 f32[4,4]
launch neg#1 f32[4,4] over operand 0
launch mul#2 f32[4,4] over operand 0
)");
  CHECK(executor.allocations() == 1);
  CHECK(executor.launches() == 3);
  CHECK(x.grad().sizes() == rg::IntArray{4, 4});
}

TEST_CASE("a value with two uses keeps its memory until the last") {
  const Tensor x = leaf(2, 3), y = leaf(2, 3);
  rg::NullExecutor executor;
  const Planned planned(rg::sum(rg::mul(rg::sin(x), rg::sin(y)) * 3.0), executor);
  executor.clear();
  planned.run();
  // 3 g is used twice: the product that comes first lies in the memory of sin(y), whose slot is emptied, the
  // other one in that of 3 g.
  CHECK(executor.text() == R"(allocate f32[2,3]
launch mul#0 f32[2,3]
launch mul#1 f32[2,3] over operand 1
launch mul#2 f32[2,3] over operand 0
free 24 bytes
allocate f32[2,3]
launch cos#3 f32[2,3]
launch mul#4 f32[2,3] over operand 0
free 24 bytes
allocate f32[2,3]
launch cos#5 f32[2,3]
launch mul#6 f32[2,3] over operand 0
)");
}

TEST_CASE("the order of launches is that of the graph, spans of small tensors included") {
  REQUIRE(rg::cpu_executor().find_span(&rg::ops::info<rg::ops::Mul>, rg::kFloat32));
  const Tensor x = rg::full({4, 3}, 0.5), w1 = leaf(3, 5), b1 = leaf(1, 5), w2 = leaf(5, 2);
  rg::NullExecutor executor;
  const Planned planned(rg::sum(rg::mm(rg::tanh(rg::mm(x, w1) + b1), w2)), executor);
  executor.clear();
  planned.run();
  CHECK(launched(executor.text()) == planned.nodes_to_launch());
  // What is given back is the result of tanh, with the slot that it was saved in.
  CHECK(executor.text() == R"(allocate f32[4,5]
launch mm#0 f32[4,5]
allocate f32[5,2]
launch mm#1 f32[5,2]
launch tanh_backward#2 f32[4,5] over operand 0
free 80 bytes
allocate f32[1,5]
launch sum#3 f32[1,5]
allocate f32[3,5]
launch mm#4 f32[3,5]
)");
}

TEST_CASE("a gradient that a hook keeps is not written over") {
  const Tensor x = leaf(2, 2);
  const Tensor y = rg::neg(x);
  Tensor kept;
  y.register_hook([&](const Tensor& g) {
    kept = g;
    return Tensor();
  });
  rg::NullExecutor executor;
  const Planned planned(rg::sum(rg::neg(y)), executor);
  executor.clear();
  planned.run();
  CHECK(executor.text() == R"(allocate f32[2,2]
launch neg#0 f32[2,2]
allocate f32[2,2]
launch neg#1 f32[2,2]
)");
}

TEST_CASE("a plan launches the same in each run") {
  const Tensor x = leaf(3, 3), w = leaf(3, 3);
  rg::NullExecutor executor;
  const Planned planned(rg::sum(rg::sigmoid(rg::mm(x, w)) * x), executor, true);
  executor.clear();
  planned.run();
  const std::string first = executor.text();
  x.set_grad({});
  w.set_grad({});
  executor.clear();
  planned.run();
  CHECK(executor.text() == first);
  CHECK(launched(first) == planned.nodes_to_launch());
}

TEST_CASE("a Runner allocates and launches each op, and has kernels for all") {
  rg::NullExecutor executor;
  rg::Runner runner(executor);
  const Tensor a = rg::full({2, 2}, 3.0), b = rg::full({2}, 1.0);
  executor.clear();
  {
    rg::Emitter::Scope scope(runner);
    const Tensor c = rg::mm(a, a) + b;
    CHECK(c.to_vector() == std::vector<double>(4, 0.0));  // computed by nobody
    rg::sort(c.select(0, 0));
  }
  CHECK(executor.text() == R"(allocate f32[2,2]
launch mm#0 f32[2,2]
allocate f32[2,2]
launch add#1 f32[2,2]
free 16 bytes
allocate f32[2]
allocate i64[2]
launch sort#2 f32[2], i64[2]
)");
  for (const rg::OpInfo* op : rg::ops::all_ops()) {
    CHECK(executor.find(op) != nullptr);
    CHECK(executor.find_span(op, rg::kFloat32) == nullptr);
  }
}
