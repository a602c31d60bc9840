// Estimators of the costs of operations by name, and those of the user: they change what a memory budget computes
// again, and never whether the budget holds.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>

#include "tests/errors.h"
#include "tests/scenarios/computed_again.h"
#include "tests/tracer/budgeted.h"

namespace rg = retrograd;
using namespace budgeted;
using rg::EstimatedOp;
using rg::MemoryBudget;

namespace {

// Two values of 16 KiB that are read before and after a product of 64 KiB: `thin`, a product with an inner size of 8,
// which moves 20 KiB and multiplies little, and `wide`, a tanh, which moves 32 KiB and multiplies nothing.
Tensor read_both_twice(const Tensors& in) {
  const Tensor thin = rg::mm(in[0], in[1]), wide = rg::tanh(in[2]);
  const auto corner = [](const Tensor& t) { return rg::select(rg::select(t, 0, 0), 0, 0); };
  const Tensor large = rg::mm(in[0] * (corner(thin) + corner(wide)), in[3]);
  const Tensor k = rg::sum(rg::square(large));
  return thin * k + wide * (k + 1);
}
Tensors inputs() {
  rg::manual_seed(8);
  return {rg::randn({64, 8}), rg::randn({8, 64}), rg::randn({64, 64}), rg::randn({8, 256})};
}

// What is computed again where one of the two must go.
std::vector<std::string_view> again_with(const MemoryBudget& budget) {
  auto f = rg::compile(read_both_twice, {.budget = budget});
  const Tensors in = inputs();
  CHECK(rg::testing::same_bits(f(in), read_both_twice(in)));
  const rg::MemoryReport report = f.memory();
  CHECK(report.planned_bytes <= report.budget_bytes);
  return rg::testing::computed_again(report);
}
bool is_only(const std::vector<std::string_view>& again, std::string_view op) {
  return again.size() == 1 && again[0] == op;
}

}  // namespace

TEST_CASE("an estimator decides what is computed again") {
  auto plain = rg::compile(read_both_twice, {.budget = MemoryBudget::fraction(1)});
  plain(inputs());
  const MemoryBudget budget = MemoryBudget::bytes(plain.memory().ordered_bytes - 64 * 64 * 4);
  CHECK(is_only(again_with(budget), "mm"));
  CHECK(is_only(again_with(budget.with_estimator("roofline")), "mm"));
  CHECK(is_only(again_with(budget.with_estimator("flops")), "tanh"));
  const auto dear = [](std::string_view op) {
    return [op](const EstimatedOp& e) { return e.name == op ? 2.0 : 1.0; };
  };
  CHECK(is_only(again_with(budget.with_estimator(dear("mm"))), "tanh"));
  CHECK(is_only(again_with(budget.with_estimator(dear("tanh"))), "mm"));
  CHECK(again_with(budget.with_estimator("measured")).size() == 1);
  // The last one that was named counts.
  CHECK(is_only(again_with(budget.with_estimator(dear("tanh")).with_estimator("flops")), "tanh"));
}

TEST_CASE("an estimator sees ops with their types and work, and no views") {
  std::map<std::string, EstimatedOp> seen;
  std::map<std::string, std::vector<rg::TensorType>> operands;
  auto f = rg::compile(read_both_twice,
                       {.budget = MemoryBudget::fraction(1).with_estimator([&](const EstimatedOp& op) {
                         seen.try_emplace(std::string(op.name), op);
                         operands.try_emplace(std::string(op.name), op.operands.begin(), op.operands.end());
                         CHECK(op.results.size() == 1);
                         return 1.0;
                       })});
  f(inputs());
  CHECK(!seen.contains("select"));
  REQUIRE(seen.contains("tanh"));
  CHECK(seen.at("tanh").work.bytes == 2 * 64 * 64 * 4);
  CHECK(seen.at("tanh").work.flops == 0);
  REQUIRE(seen.contains("mm"));
  CHECK(seen.at("mm").work.flops == 2 * 64 * 64 * 8);
  REQUIRE(operands.at("mm").size() == 2);
  CHECK(operands.at("mm")[1].shape == rg::Shape({8, 64}));
}

TEST_CASE("absurd costs change no promise") {
  const std::map<std::string, rg::CostEstimator> absurd{
      {"zero", [](const EstimatedOp&) { return 0.0; }},
      {"huge", [](const EstimatedOp&) { return 1e100; }},
      {"uneven", [](const EstimatedOp& op) { return op.name == "tanh" ? 1e100 : 0; }},
      {"tiny", [](const EstimatedOp&) { return std::numeric_limits<double>::denorm_min(); }}};
  const Net net = chain(12, 64, 32);
  const Tensor x = input_of(net);
  for (Form form : kForms)
    for (const auto& [name, estimator] : absurd) {
      INFO(name << ", " << (form == Form::step ? "step" : "function"));
      Training plain(net), training(net);
      const Tensor expected = plain.step(x);
      auto step = training.compiled(form, MemoryBudget::fraction(0.65).with_estimator(estimator));
      CHECK(rg::testing::same_bits(step(x), expected));
      CHECK(same(training.weights, plain.weights));
      const rg::MemoryReport report = step.memory();
      CHECK(report.planned_bytes <= report.budget_bytes);
      CHECK(report.ordered_bytes > report.budget_bytes);
      CHECK(std::isfinite(report.recomputed_share));
      CHECK(added_by([&] { step(x); }) == report.planned_bytes);
    }
}

TEST_CASE("what is no cost is an error that names the op") {
  const Net net = chain(4, 16, 16);
  const Tensor x = input_of(net);
  for (double cost : {-1.0, std::nan(""), std::numeric_limits<double>::infinity(), 2e100}) {
    Training training(net), untouched(net);
    const auto estimator = [cost](const EstimatedOp& op) { return op.name == "tanh" ? cost : 1.0; };
    auto step = training.compiled(Form::step, MemoryBudget::fraction(0.9).with_estimator(estimator));
    std::string text;
    CHECK(rg::category_of([&] { step(x); }, &text) == rg::Category::bad_argument);
    CHECK(text.find("for tanh. Hint: a cost is a number from 0 to 1e100") != std::string::npos);
    CHECK(text.find("budgeted.h") != std::string::npos);
    CHECK(same(training.weights, untouched.weights));
  }
}

TEST_CASE("what is no estimator is refused") {
  std::string text;
  CHECK(rg::category_of([] { MemoryBudget::bytes(1).with_estimator("profile"); }, &text) ==
        rg::Category::bad_argument);
  CHECK(text.find("there is no estimator \"profile\"; there are roofline measured flops") !=
        std::string::npos);
  CHECK(rg::category_of([] { MemoryBudget::bytes(1).with_estimator(rg::CostEstimator()); }) ==
        rg::Category::bad_argument);
}
