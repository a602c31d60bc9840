// Plans made for an executor that computes nothing: the order of launches is that of the graph, memory is allocated
// when a value is computed and freed at its last use, a dying operand's memory is reused. Not tested here: computed
// values (tests/tracer/proof_test.cc).
#include <catch2/catch.hpp>
#include <memory>
#include <sstream>

#include "engine/runner.h"
#include "ops/all_ops.h"
#include "ops/arithmetic.h"
#include "retrograd/retrograd.h"
#include "tests/tracer/planned.h"
#include "tracer/plan/null_executor.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;
using rg::testing::Planned;

namespace {

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
  // The first neg reads an expanded number, which has no memory to write to. Its result dies in the second, and so on
  // to the leaf, which takes the memory over. The result of exp is freed with the slot that it was saved in.
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
  // 3 g is used twice: the first product uses the memory of sin(y), whose slot is emptied, the other one that of 3 g.
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
  // The freed memory is the result of tanh, with the slot that it was saved in.
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
    CHECK(c.to_vector() == std::vector<double>(4, 0.0));  // nothing has computed it
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
