// Memory budgets of compiled steps, and of compiled functions with their backwards: what a run adds is what was
// planned, to the byte, and never more than the budget; the bits are those without a budget; peaks and costs are
// monotone in the budget. What only functions have is in function_budget_test.cc. With "[.figures]" a table.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>

#include "tests/errors.h"
#include "tests/tracer/budgeted.h"

namespace rg = retrograd;
using namespace budgeted;

namespace {

// What three steps leave: losses and weights.
Tensors results(Training& training, const Step& step, const Tensor& x) {
  rg::manual_seed(5);
  Tensors all;
  for (int i = 0; i < 3; ++i) all.push_back(step(x));
  for (const Tensor& w : training.weights) all.push_back(w.detach());
  return all;
}

std::string name_of(Form form) { return form == Form::step ? "step" : "function"; }

std::vector<std::pair<Net, Form>> cases() {
  std::vector<std::pair<Net, Form>> all;
  for (const Net& net : nets())
    for (Form form : kForms) all.emplace_back(net, form);
  return all;
}

}  // namespace

TEST_CASE("a run adds what was planned, within the budget, with the bits of no budget") {
  for (const auto& [net, form] : cases()) {
    INFO(net.name << ", " << name_of(form));
    const Tensor x = input_of(net);
    Training plain(net);
    const Tensors expected = results(plain, plain.compiled(form, {}), x);
    Training first(net);
    auto loose = first.compiled(form, rg::MemoryBudget::fraction(1));
    loose(x);
    const std::vector<rg::MemoryReport::Point> curve = loose.memory().pareto;
    REQUIRE(curve.size() > 4);
    for (size_t i = 0; i < curve.size(); i += i + 4 < curve.size() ? 3 : 1) {  // and the last ones
      const rg::MemoryReport::Point& point = curve[i];
      Training training(net);
      auto step = training.compiled(form, rg::MemoryBudget::bytes(point.bytes));
      CHECK(same(results(training, step, x), expected));
      const rg::MemoryReport report = step.memory();
      CHECK(report.planned_bytes <= point.bytes);
      CHECK(report.planned_bytes >= report.lower_bound_bytes);
      CHECK(added_by([&] { step(x); }) == report.planned_bytes);
    }
  }
}

TEST_CASE("a larger budget never has a higher cost, a smaller one never a higher peak") {
  const Net net = chain(16, 128, 32);
  const Tensor x = input_of(net);
  for (Form form : kForms) {
    INFO(name_of(form));
    rg::MemoryReport before;
    for (int part = 20; part > 8; --part) {
      Training training(net);
      auto step = training.compiled(form, rg::MemoryBudget::fraction(part / 20.0));
      step(x);
      const rg::MemoryReport now = step.memory();
      CHECK(now.budget_bytes == now.eager_bytes * part / 20);
      CHECK(now.planned_bytes <= now.budget_bytes);
      CHECK(now.ordered_bytes <= now.eager_bytes);
      if (part < 20) {
        CHECK(now.planned_bytes <= before.planned_bytes);
        CHECK(now.recomputed_share >= before.recomputed_share);
      }
      before = now;
    }
    CHECK(before.recomputed_share > 0);
  }
}

TEST_CASE("a budget is for each set of sizes") {
  const Net net = chain(10, 64, 32);
  for (Form form : kForms) {
    INFO(name_of(form));
    Training plain(net), training(net);
    auto expected = plain.compiled(form, {});
    auto step = training.compiled(form, rg::MemoryBudget::fraction(0.6));
    for (int64_t rows : {128, 96, 160, 96}) {
      rg::manual_seed(6);
      const Tensor x = rg::randn({rows, 32});
      CHECK(rg::testing::same_bits(step(x), expected(x)));
      CHECK(step.memory().planned_bytes <= step.memory().budget_bytes);
      Tensor loss;
      CHECK(added_by([&] { loss = step(x); }) == step.memory().planned_bytes);
      CHECK(rg::testing::same_bits(loss, expected(x)));
    }
  }
}

TEST_CASE("gradients that are there do not count") {
  const Net net = chain(16, 64, 32);
  const Tensor x = input_of(net);
  const auto gradients = [&](rg::MemoryBudget budget, rg::MemoryReport* report) {
    const Tensors weights = net.leaves();
    for (const Tensor& w : weights) w.set_grad(rg::zeros_like(w));
    auto step = rg::compile_step(
        [&](const Tensor& in) {
          const Tensor loss = net.loss(in, weights);
          loss.backward();
          return loss.detach();
        },
        {.budget = budget});
    step(x);
    const int64_t added = added_by([&] { step(x); });
    if (report) {
      *report = step.memory();
      CHECK(added == report->planned_bytes);
    }
    Tensors all;
    for (const Tensor& w : weights) all.push_back(w.grad().clone());
    return all;
  };
  rg::MemoryReport report;
  CHECK(same(gradients(rg::MemoryBudget::fraction(0.5), &report), gradients({}, nullptr)));
  CHECK(report.planned_bytes <= report.budget_bytes);
  CHECK(report.recomputed_share > 0);
}

TEST_CASE("hooks run once, in their places") {
  const Net net = chain(8, 64, 32);
  const Tensor x = input_of(net);
  const auto losses = [&](rg::MemoryBudget budget) {
    const Tensors weights = net.leaves();
    std::vector<double> seen;
    auto step = rg::compile_step(
        [&](const Tensor& in) {
          Tensor h = in;
          for (const Tensor& w : weights) {
            h = rg::tanh(rg::mm(h, w));
            h.register_hook([&seen](const Tensor& g) {
              seen.push_back(rg::sum(g).item<double>());
              return Tensor();
            });
          }
          const Tensor loss = rg::mean(rg::square(h));
          loss.backward();
          return loss.detach();
        },
        {.budget = budget});
    step(x);
    step(x);
    return seen;
  };
  const std::vector<double> expected = losses({});
  CHECK(expected.size() == 16);
  CHECK(losses(rg::MemoryBudget::fraction(1)) == expected);
}

TEST_CASE("a budget that no plan can meet is an error that says the least, and changes nothing") {
  const Net net = chain(6, 64, 32);
  const Tensor x = input_of(net);
  for (Form form : kForms) {
    Training training(net), untouched(net);
    auto step = training.compiled(form, rg::MemoryBudget::bytes(1000));
    for (int call = 0; call < 2; ++call) {
      std::string text;
      CHECK(rg::category_of([&] { step(x); }, &text) == rg::Category::bad_argument);
      CHECK(text.find(form == Form::step
                          ? "compile_step: no plan of the step adds at most 1000 bytes: the least is "
                          : "compile: no plan of the function and its backward adds at most 1000 "
                            "bytes: the least is ") != std::string::npos);
      CHECK(text.find("budgeted.h") != std::string::npos);
      CHECK(text.find("one operation alone needs ") != std::string::npos);
    }
    CHECK(same(training.weights, untouched.weights));
    CHECK(step.memory().planned_bytes == 0);
  }
}

TEST_CASE("93: what is no budget is refused") {
  using rg::MemoryBudget;
  const auto category = [](auto f) { return rg::category_of(f); };
  CHECK(category([] { MemoryBudget::bytes(-1); }) == rg::Category::bad_argument);
  for (const double part : {-0.25, 1.5, std::nan(""), -HUGE_VAL, HUGE_VAL})
    CHECK(category([=] { MemoryBudget::fraction(part); }) == rg::Category::bad_argument);
  CHECK_FALSE(MemoryBudget().is_set());
  CHECK(MemoryBudget::bytes(0).is_set());
  CHECK(category([] { MemoryBudget::bytes(1).with_solver("ilp"); }) == rg::Category::bad_argument);
}

TEST_CASE("explain() has the report") {
  const Net net = chain(12, 128, 32);
  const Tensor x = input_of(net);
  for (Form form : kForms) {
    Training plain(net);
    auto without = plain.compiled(form, {});
    without(x);
    CHECK(without.explain().find("memory that a run adds") == std::string::npos);
    Training training(net);
    auto step = training.compiled(form, rg::MemoryBudget::fraction(0.6).with_solver("greedy"));
    step(x);
    CHECK(step.explain().ends_with(step.memory().text()));
    CHECK(step.memory().text().find(": computed again") != std::string::npos);
    CHECK(step.memory().plan_ms > 0);
  }
}

TEST_CASE("figures of memory budgets", "[.figures]") {
  const Net net = transformer(8, 2, 512, 256, 704, 0);
  const Tensor x = input_of(net);
  Training eager(net);
  const int64_t by_eager = added_by([&] { eager.step(x); });
  std::printf("eager measured %lld\n", static_cast<long long>(by_eager));
  for (Form form : kForms) {
    Training first(net);
    auto loose = first.compiled(form, rg::MemoryBudget::fraction(1));
    loose(x);
    std::printf("%s\n%s", name_of(form).c_str(), loose.memory().text().c_str());
    for (const auto& p : loose.memory().pareto)
      std::printf("%12lld %6.2f%%\n", static_cast<long long>(p.bytes), 100 * p.recomputed_share);
    Training least(net);
    auto tight = least.compiled(form, rg::MemoryBudget::bytes(loose.memory().pareto.back().bytes));
    tight(x);
    std::printf("%s", tight.memory().text().c_str());
    std::printf("measured %lld\n", static_cast<long long>(added_by([&] { tight(x); })));
  }
}
