// Captured backwards of many ops: each is verified, printed and read back, and prints as before. A graph that was read
// back computes correctly at other sizes. Not tested here: hand-written texts (round_trip_test.cc).
#include <catch2/catch.hpp>

#include "ir/replay.h"
#include "ir/verify.h"
#include "tests/ir/ir_test.h"

namespace rg = retrograd;
using ir_test::parse;
using rg::Tensor;

namespace {

struct Case {
  const char* name;
  Tensor (*loss)(const Tensor& x, const Tensor& y);  // x and y: [3,4], y positive
};

const Tensor kRows = rg::tensor({2, 0, 1}, {rg::kInt64});

const Case cases[] = {
    {"arithmetic",
     [](const Tensor& x, const Tensor& y) {
       return rg::sum((x + y) * x / y - 2.5 * x + x / 3.0 - rg::pow(y, x));
     }},
    {"unary",
     [](const Tensor& x, const Tensor& y) {
       return rg::sum(rg::sin(x) + rg::log(y) + rg::rsqrt(y) + rg::pow(y, 2.5) + rg::abs(x));
     }},
    {"activations",
     [](const Tensor& x, const Tensor& y) {
       return rg::sum(rg::gelu(x) + rg::silu(x) + rg::leaky_relu(x, 0.2) + rg::elu(y) + rg::softplus(x) +
                      rg::hardtanh(x));
     }},
    {"comparisons",
     [](const Tensor& x, const Tensor& y) {
       return rg::sum(rg::where(rg::lt(x, y), x, 0.0) + rg::maximum(x, y) + rg::clamp(x, -0.1, 0.1));
     }},
    {"broadcasting",
     [](const Tensor& x, const Tensor& y) {
       return rg::sum(x * rg::sum(y, 0, true) + rg::sum(x, 1, true) / y);
     }},
    {"reductions",
     [](const Tensor& x, const Tensor& y) {
       return rg::mean(x) + rg::prod(y) + rg::sum(rg::amax(x, 1)) + rg::sum(rg::var(y, 0)) +
              rg::sum(rg::logsumexp(x, 1)) + rg::vector_norm(y);
     }},
    {"products",
     [](const Tensor& x, const Tensor& y) {
       const Tensor square = rg::mm(x, y.t());
       return rg::sum(rg::mv(square, square.select(0, 0))) + rg::dot(x.select(0, 1), y.select(0, 0)) +
              rg::sum(rg::bmm(x.view({3, 2, 2}), y.view({3, 2, 2})));
     }},
    {"views",
     [](const Tensor& x, const Tensor& y) {
       return rg::sum(x.view({4, 3}).t() * y + x.narrow(0, 0, 3)) +
              rg::sum(rg::permute(y, {1, 0}).select(0, 2)) + rg::sum(rg::diagonal(x)) +
              rg::sum(rg::unfold(x, 1, 2, 2));
     }},
    {"joins",
     [](const Tensor& x, const Tensor& y) {
       return rg::sum(rg::cat({x, y, x}, 1) * rg::cat({y, x, y}, 1)) +
              rg::sum(rg::flip(x, {0}) * rg::tril(y));
     }},
    {"indices",
     [](const Tensor& x, const Tensor& y) {
       return rg::sum(rg::index_select(x, 0, kRows) * y) + rg::sum(rg::embedding(y, kRows) * x) +
              rg::sum(rg::max(x, 1).values);
     }},
    {"softmax and losses",
     [](const Tensor& x, const Tensor& y) {
       return rg::sum(rg::softmax(x, 1) * y) + rg::cross_entropy(x, kRows) +
              rg::sum(rg::log_softmax(y, 0) * x);
     }},
    {"normalisation",
     [](const Tensor& x, const Tensor& y) {
       return rg::sum(rg::layer_norm(x, {4}, y.select(0, 0), y.select(0, 1)) * y) +
              rg::sum(rg::layer_norm(x, {4}) * y);
     }},
    {"scans", [](const Tensor& x, const Tensor& y) { return rg::sum(rg::cumsum(x, 1) * rg::cumprod(y, 0)); }},
    {"dtypes",
     [](const Tensor& x, const Tensor& y) {
       return rg::sum(x.to(rg::kFloat64) * y.to(rg::kFloat16).to(rg::kFloat64)).to(rg::kFloat32);
     }},
    {"dropout", [](const Tensor& x, const Tensor& y) { return rg::sum(rg::dropout(x * y, 0.5)); }},
};

void check_round_trip(const rg::ir::Graph& graph) {
  rg::ir::verify(graph);
  const std::string text = graph.print();
  const rg::ir::Graph again = parse(text);
  CHECK(again.print() == text);
  rg::ir::verify(again);
}

}  // namespace

TEST_CASE("captured backwards of many ops") {
  for (const Case& c : cases) {
    INFO(c.name);
    const Tensor x = rg::tensor({0.3, -0.7, 1.1, 0.2, -0.4, 0.9, -1.3, 0.6, 0.05, -0.15, 0.8, -0.5}, {3, 4})
                         .requires_grad_();
    const Tensor y = (rg::abs(x.detach()) + 0.25).requires_grad_();
    x.register_hook([](const Tensor& g) { return g; });
    rg::CompiledBackward backward = rg::compile_backward();
    backward(c.loss(x, y));
    check_round_trip(*backward.graph());
    CHECK(backward.graph()->nodes().size() > 3);
    backward.grad({c.loss(x, y)}, {y, x});
    check_round_trip(*backward.graph());
  }
}

TEST_CASE("a captured mean keeps its conversion") {
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = rg::full({2, 3}, 1.0).requires_grad_();
  backward.grad({rg::mean(x)}, {x});
  const std::string text = backward.graph()->print();
  INFO(text);
  const rg::ir::Graph again = parse(text);
  CHECK(again.print() == text);
  std::vector<rg::Number> values(static_cast<size_t>(again.symbols.size()));
  for (int32_t id = 0, n = 0; id < again.symbols.size(); ++id)
    if (again.symbols.expr(id).op == rg::Arith::symbol)
      values[static_cast<size_t>(id)] = rg::Number::of(int64_t{n++ ? 2 : 4});
  again.symbols.evaluate(values);
  const rg::ir::Binding one{.tensor = rg::ones({})};
  const Tensor gradient = rg::ir::replay(again, rg::eager_runner(), {&one, 1}, values)[0];
  CHECK(gradient.to_vector() == std::vector<double>(8, 0.125));
}
