// Checks of the op that docs/add_an_op.md adds: value, derivatives, forward mode, dtypes, tracing, and the op in the
// text form of graphs. Only add_an_op_test.sh compiles this, together with the tests that got a row: only there the op
// exists.
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/autograd.h"
#include "ir/replay.h"
#include "ir/text.h"
#include "ops/all_ops.h"
#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/unary.h"
#include "tests/ops/derivatives/families.h"
#include "tracer/backward/compile_backward.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

const std::vector<double> kAt = {-2.5, -1, 0, 0.5, 3};

Tensor leaf(rg::ScalarType dtype) { return rg::tensor(kAt, {5}, {dtype}).requires_grad_(); }

void check_near(const Tensor& got, double (*wanted)(double), double epsilon) {
  const std::vector<double> values = got.detach().to_vector();
  REQUIRE(values.size() == kAt.size());
  for (size_t i = 0; i < values.size(); ++i)
    CHECK(values[i] == Approx(wanted(kAt[i])).epsilon(epsilon).margin(epsilon));
}

double value(double x) { return std::atan(std::sinh(x)); }
double first(double x) { return 1 / std::cosh(x); }
double second(double x) { return -std::tanh(x) / std::cosh(x); }

}  // namespace

TEST_CASE("the op of the document: values in each dtype") {
  check_near(rg::gudermannian(leaf(rg::kFloat64)), value, 1e-14);
  check_near(rg::gudermannian(leaf(rg::kFloat32)), value, 1e-6);
  const Tensor half = rg::gudermannian(leaf(rg::kBFloat16));
  CHECK(half.dtype() == rg::kBFloat16);
  check_near(half, value, 1e-2);
  const Tensor one = rg::gudermannian(rg::tensor({1}, {rg::kInt64}));
  CHECK(one.dtype() == rg::kFloat32);
  CHECK(one.to_vector()[0] == Approx(value(1)));
}

TEST_CASE("the op of the document: first and second derivative, and the traced backward") {
  const Tensor x = leaf(rg::kFloat64);
  const Tensor g = rg::autograd::grad({rg::sum(rg::gudermannian(x))}, {x}, {}, true, true)[0];
  check_near(g, first, 1e-14);
  check_near(rg::autograd::grad({rg::sum(g)}, {x})[0], second, 1e-14);
  rg::CompiledBackward compiled = rg::compile_backward();
  for (int run = 0; run < 2; ++run) {
    const Tensor traced = compiled.grad({rg::sum(rg::gudermannian(x))}, {x})[0];
    CHECK(traced.to_vector() == g.detach().to_vector());
  }
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("the op of the document: in a graph") {
  const rg::OpInfo* op = rg::ops::find_op("gudermannian");
  REQUIRE(op == &rg::ops::info<rg::ops::Gudermannian>);
  CHECK(op->doc == "atan(sinh(x))");
  const std::string text = "graph @g(%0: f64[5]) {\n  %1 = gudermannian %0 : f64[5]\n  return %1\n}\n";
  const rg::ir::Graph graph = rg::ir::parse(text, rg::ops::find_op);
  CHECK(graph.print() == text);
  const rg::ir::Binding binding{.tensor = leaf(rg::kFloat64)};
  check_near(rg::ir::replay(graph, rg::eager_runner(), {&binding, 1})[0], value, 1e-14);
}

TEST_CASE("the op of the document: its row among the derivatives") {
  std::set<std::string_view> covered;
  for (const derivatives::Row& row : derivatives::unary_rows())
    if (row.name == "gudermannian") derivatives::check_row(row, covered);
  CHECK(covered.contains("gudermannian"));
}
