// What users of activation memory budgets of PyTorch's partitioner meet, restated for a peak. There, a budget is a part
// of the bytes that are saved between forward and backward. Here it is the most bytes that are live at a time, so each
// figure of saved bytes is one of a peak: saved bytes and what the operation at the peak needs besides.
//
// Where a case is about choices alone, it is a plain problem of memory budgets (ir/budget/problem.h): values that are
// made first and read last, and in between a task that holds a block of its own, the *gap*. Its peak is the gap and
// what is kept over it. Costs are given in units of the case. The rest are compiled functions.
#include <cmath>
#include <numeric>

#include "ir/budget/exact.h"
#include "ir/budget/solve.h"
#include "tests/ir/budget/brute_force.h"
#include "tests/ir/budget/random_problem.h"
#include "tests/scenarios/computed_again.h"
#include "tests/scenarios/scenario.h"

namespace budget = retrograd::ir::budget;
using namespace scenario;
using budget::Task;
using rg::MemoryBudget;

namespace {

constexpr int64_t kGap = 100;

struct Item {
  int64_t bytes;
  double cost;
};

// Each item is a value that a task makes; each is read again behind the gap, by a task of its own.
budget::Problem across_a_gap(const std::vector<Item>& items) {
  budget::Problem problem;
  const auto end = static_cast<int32_t>(2 * items.size() + 1);
  for (const Item& item : items) {
    problem.tasks.push_back(
        {.results = {static_cast<int32_t>(problem.blocks.size())}, .cost = item.cost, .until = end});
    problem.blocks.push_back({item.bytes});
  }
  problem.tasks.push_back({.scratch = kGap, .cost = 1});
  for (int32_t i = 0; i < std::ssize(items); ++i) problem.tasks.push_back({.operands = {i}, .cost = 1});
  return problem;
}

// What is kept, and what the rest costs, within the gap and so many bytes.
struct Choice {
  int64_t bytes;
  double cost;
  bool operator==(const Choice&) const = default;
};
Choice choice_within(const budget::Curve& curve, int64_t bytes) {
  const budget::Measure& found = curve[budget::plan_within(curve, kGap + bytes)].measure;
  return {found.peak - kGap, found.cost};
}

// The items that the plan of the solver does not make again.
std::vector<size_t> kept_within(const budget::Problem& problem, int64_t bytes) {
  const auto plan = budget::exact_plan(problem, kGap + bytes, budget::kChoices);
  REQUIRE(plan.has_value());
  std::vector<int> runs(problem.tasks.size());
  for (const budget::Run& run : plan->runs) ++runs[budget::at(run.task)];
  std::vector<size_t> kept;
  for (size_t i = 0; i < problem.blocks.size(); ++i)
    if (runs[i] == 1) kept.push_back(i);
  return kept;
}

// Layers of a product of cost 1000 and an elementwise op of cost 1, a block of 1 each, behind an op on an input; the
// loss; and their backward: the derivative of the op reads what went into it, that of the product what did.
budget::Problem products_and_cosines(int layers) {
  budget::Problem problem;
  const auto task = [&](std::vector<int32_t> operands, double cost, bool in_place = false) {
    problem.tasks.push_back({.operands = std::move(operands),
                             .results = {static_cast<int32_t>(problem.blocks.size())},
                             .cost = cost,
                             .until = 100});
    if (in_place) problem.tasks.back().overlays = {{0, 0}};
    problem.blocks.push_back({1});
    return problem.tasks.back().results[0];
  };
  std::vector<int32_t> products{-1}, cosines{task({}, 1)};
  for (int i = 1; i <= layers; ++i) {
    products.push_back(task({cosines.back()}, 1000));
    cosines.push_back(task({products.back()}, 1));
  }
  int32_t gradient = task({cosines.back()}, 1, true);
  for (int i = layers; i > 0; --i) {
    gradient = task({gradient, products[static_cast<size_t>(i)]}, 1, true);
    problem.tasks.push_back(
        {.operands = {gradient, cosines[static_cast<size_t>(i) - 1]}, .cost = 1000});  // updates
    gradient = task({gradient}, 1000);
  }
  problem.blocks[budget::at(gradient)].to_end = true;
  return problem;
}
// What a plan computes again beyond elementwise ops.
int products_within(const budget::Curve& curve, int64_t peak) {
  const budget::Measure& found = curve[budget::plan_within(curve, peak)].measure;
  REQUIRE(found.peak <= peak);
  return static_cast<int>(found.cost / 1000);
}

// Reads two values before and behind a product that is larger than both. `in`: two factors of that product, the first
// with rows of 8.
Tensor read_twice(const Tensor& a, const Tensor& b, const Tensors& in) {
  const auto corner = [](const Tensor& t) { return rg::select(rg::select(t, 0, 0), 0, 0); };
  const Tensor large = rg::mm(in[0] * (corner(a) + corner(b)), in[1]);
  const Tensor k = rg::sum(rg::square(large));
  return a * k + b * (k + 1);
}
Tensors gap_factors(int64_t side) { return {spread({side, 8}, 8), spread({8, 8 * side}, 9)}; }

// The op of each value that `f` computes again where it has room for all but `bytes` of what it holds.
template <class F>
std::vector<std::string_view> again_without(const F& f, const Tensors& in, int64_t bytes) {
  auto plain = rg::compile(f, {.budget = MemoryBudget::bytes(int64_t{1} << 30)});
  const Tensor expected = plain(in)[0];
  CHECK(rg::testing::computed_again(plain.memory()).empty());
  const MemoryBudget less = MemoryBudget::bytes(plain.memory().ordered_bytes - bytes).with_estimator("flops");
  auto fitted = rg::compile(f, {.budget = less});
  CHECK(same_bits(fitted(in)[0], expected));
  CHECK(fitted.memory().planned_bytes <= fitted.memory().budget_bytes);
  return rg::testing::computed_again(fitted.memory());
}

}  // namespace

// There: b MiB saved for b of 10 parts of the budget, at 5 - b products more for b <= 5, and none above 5. Here a peak
// is what is saved and one more: the gradient. With less than 4 the products of several layers are made one from
// another, more than once.
TEST_CASE("budget 85 five products and cosines: elementwise values go first, then products one by one") {
  const budget::Problem problem = products_and_cosines(5);
  const budget::Curve curve = budget::default_curve(problem);
  CHECK(curve[0].measure.peak == 11);
  for (int64_t peak : {11, 10, 9, 8, 7, 6}) CHECK(products_within(curve, peak) == 0);
  CHECK(products_within(curve, 5) == 1);
  CHECK(products_within(curve, 4) == 2);
  CHECK(products_within(curve, 3) > 3);
  CHECK(budget::plan_within(curve, 10) > 0);
}

TEST_CASE("budget 86 a cosine before a product goes without another product") {
  const auto f = [](const Tensors& in) {
    return Tensors{read_twice(rg::cos(in[0]), rg::mm(rg::cos(in[0]), in[1]), {in[2], in[3]})};
  };
  const Tensors factors = gap_factors(64);
  const std::vector<std::string_view> again =
      again_without(f, {spread({64, 64}), spread({64, 64}, 1), factors[0], factors[1]}, 64 * 64 * 4);
  REQUIRE(again.size() == 1);
  CHECK(again[0] == "cos");
}

TEST_CASE("budget 87 products that fan out: every sum of some of their sizes is reached exactly") {
  const std::pair<std::vector<int64_t>, std::vector<int64_t>> fans[] = {
      {{11, 3, 4, 2}, {18, 17, 16, 15, 14, 13, 11, 7, 6, 5}}, {{3, 5, 11, 17, 14}, {42, 30, 19, 8, 3}}};
  for (const auto& [sizes, budgets] : fans) {
    std::vector<Item> items;
    for (int64_t size : sizes) items.push_back({size, static_cast<double>(size)});
    const budget::Curve curve = budget::default_curve(across_a_gap(items));
    const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    CHECK(choice_within(curve, all) == Choice{all, 0});
    for (int64_t bytes : budgets) {
      INFO(bytes << " of " << all);
      CHECK(choice_within(curve, bytes) == Choice{bytes, static_cast<double>(all - bytes)});
    }
  }
}

TEST_CASE("budget 88 of two products of one size the cheap one is made again") {
  // (1 x 1) (1 x 4) is 4 multiplications for 4 elements, (2 x 2) (2 x 2) is 8.
  const budget::Problem problem = across_a_gap({{4, 4}, {4, 8}});
  CHECK(choice_within(budget::default_curve(problem), 4) == Choice{4, 4});
  CHECK(kept_within(problem, 4) == std::vector<size_t>{1});
}

TEST_CASE("budget 89 of products of several sizes the best set is kept, not the fullest") {
  // (4 x 4) (4 x 4), (6 x 2) (2 x 2), (2 x 6) (6 x 6): 16, 12 and 12 elements with 64, 24 and 72 multiplications.
  const budget::Problem problem = across_a_gap({{16, 64}, {12, 24}, {12, 72}});
  const budget::Curve curve = budget::default_curve(problem);
  CHECK(choice_within(curve, 40) == Choice{40, 0});
  CHECK(choice_within(curve, 28) == Choice{28, 24});
  CHECK(choice_within(curve, 16) == Choice{12, 64 + 24});
}

// Multiplications of the attention: 4 S S D; of the product: 2 S D D.
TEST_CASE("budget 90 of an attention and a product of one size the cheaper one is made again") {
  const auto f = [](const Tensors& in) {
    const int64_t length = in[0].size(2), width = in[0].size(3);
    const Tensor attended = rg::scaled_dot_product_attention(in[0], in[1], in[2]);
    return Tensors{read_twice(rg::view(attended, {length, width}), rg::mm(in[3], in[4]), {in[5], in[6]})};
  };
  const std::tuple<int64_t, int64_t, std::string> cases[] = {{1, 1, "mm"}, {1, 3, "attention"},
                                                             {2, 2, "mm"}, {2, 5, "attention"},
                                                             {4, 7, "mm"}, {4, 9, "attention"}};
  for (const auto& [s, d, op] : cases) {
    INFO(s << ", " << d);
    const int64_t length = 16 * s, width = 16 * d;
    Tensors in;
    for (int i = 0; i < 3; ++i) in.push_back(spread({1, 1, length, width}, i));
    in.push_back(spread({length, width}, 3));
    in.push_back(spread({width, width}, 4));
    in.push_back(spread({length, 8}, 8));
    in.push_back(spread({8, 8 * width}, 9));
    const std::vector<std::string_view> again = again_without(f, in, length * width * 4);
    REQUIRE(again.size() == 1);
    CHECK(again[0] == op);
  }
}

TEST_CASE("budget 91 regions that the user marks stay as marked, in the same memory") {
  Tensors weights;
  for (int i = 0; i < 6; ++i) weights.push_back(parameter({32, 32}, i));
  const auto layer = [](const Tensor& x, const Tensor& w) { return rg::tanh(rg::mm(x, w)); };
  const auto step = [&](const Tensor& in, bool is_marked) {
    Tensor x = in;
    for (size_t i = 0; i < weights.size(); i += 2) {
      const auto pair = [&, i](const Tensor& t) { return layer(layer(t, weights[i]), weights[i + 1]); };
      x = is_marked ? rg::checkpoint(pair, x) : pair(x);
    }
    const Tensor loss = rg::mean(rg::square(x));
    for (const Tensor& w : weights) w.set_grad(Tensor());
    loss.backward();
    return loss.detach();
  };
  const Tensor in = spread({128, 32});
  const auto marked = [&](MemoryBudget budget) {
    return rg::compile_step([&](const Tensor& x) { return step(x, true); }, {.budget = budget});
  };
  auto unmarked = rg::compile_step([&](const Tensor& x) { return step(x, false); },
                                   {.budget = MemoryBudget::fraction(1)});
  auto loose = marked(MemoryBudget::fraction(1));
  const Tensor expected = unmarked(in);
  CHECK(same_bits(loose(in), expected));
  const rg::MemoryReport report = loose.memory();
  CHECK(report.ordered_bytes < unmarked.memory().ordered_bytes);
  // A budget of what the regions leave computes nothing else again.
  auto tight = marked(MemoryBudget::bytes(report.ordered_bytes));
  CHECK(same_bits(tight(in), expected));
  CHECK(rg::testing::computed_again(tight.memory()).empty());
  CHECK(tight.memory().recomputed_share == 0);
  CHECK(tight.memory().planned_bytes <= report.ordered_bytes);
  CHECK(count_nodes(*tight.graph(), "mm") == count_nodes(*loose.graph(), "mm"));
  CHECK(count_nodes(*tight.graph(), "mm") > count_nodes(*unmarked.graph(), "mm"));
}

TEST_CASE("budget 92 knapsacks") {
  struct Case {
    std::vector<Item> items;
    int64_t room;
    double best;  // the cost of what is kept
    std::vector<size_t> kept;
  };
  const Case cases[] = {
      {{{2, 1}, {3, 2}, {2, 1}, {4, 3}, {1, 2}}, 5, 5, {3, 4}},
      {{{100, 1000}, {200, 2000}, {300, 3000}}, 500, 5000, {1, 2}},
      {{{0, 1}, {3, 2}, {0, 5}}, 0, 6, {0, 2}},  // what has no bytes is always kept
      {{{2, 1}, {4, 3}}, 0, 0, {}},
      {{}, 0, 0, {}},
  };
  for (const Case& c : cases) {
    const budget::Problem problem = across_a_gap(c.items);
    CHECK(kept_within(problem, c.room) == c.kept);
    double all = 0;
    for (const Item& item : c.items) all += item.cost;
    CHECK(budget::exact_plan(problem, kGap + c.room, budget::kChoices)->is_optimal);
    CHECK(choice_within(budget::exact_curve(problem), c.room).cost == all - c.best);
  }
  // [0.5, 1.5, 2] of 2, in halves: two sets are worth 3.
  CHECK(choice_within(budget::exact_curve(across_a_gap({{1, 1}, {3, 2}, {4, 3}})), 4) == Choice{4, 6 - 3});
}

TEST_CASE("budget 94 a smaller budget never has a higher peak, nor a lower cost") {
  const auto forward = [](const Tensor& in, const Tensors& w) {
    Tensor x = in;
    for (const Tensor& weight : w) x = x + rg::silu(rg::mm(rg::rms_norm(x, {32}), weight));
    return rg::mean(rg::square(x));
  };
  Tensors weights;
  for (int i = 0; i < 8; ++i) weights.push_back(parameter({32, 32}, i));
  const Tensor in = spread({128, 32});
  std::optional<rg::MemoryReport> before;
  for (int part = 100; part >= 35; part -= 5) {
    auto f = rg::compile([&](const Tensor& x) { return forward(x, weights); },
                         {.budget = MemoryBudget::fraction(part / 100.0)});
    f(in).backward();
    const rg::MemoryReport now = f.memory();
    INFO(part << " %");
    CHECK(now.planned_bytes <= now.budget_bytes);
    if (before) CHECK(now.planned_bytes <= before->planned_bytes);
    if (before) CHECK(now.recomputed_share >= before->recomputed_share);
    before = now;
  }
  CHECK(before->recomputed_share > 0);
}

TEST_CASE("budget 95 the exact solver is brute force on graphs of up to 14 tasks, and greedy is close") {
  int compared = 0, missed = 0;
  double by_exact = 0, by_greedy = 0;
  for (uint32_t seed = 7001; seed <= 7400; ++seed) {
    const budget::Problem problem = random_problem::make(seed, 8 + static_cast<int>(seed % 7));
    const budget::Curve greedy = budget::greedy_curve(problem);
    const int64_t peak = greedy[0].measure.peak;
    for (int part : {95, 85, 75}) {
      const int64_t cap = peak * part / 100;
      const std::optional<double> least = brute_force::least_cost(problem, cap);
      const std::optional<budget::ExactPlan> exact = budget::exact_plan(problem, cap, budget::kChoices);
      INFO("seed " << seed << ", " << part << " %");
      REQUIRE(exact.has_value() == least.has_value());
      if (!least) continue;
      REQUIRE(exact->is_optimal);
      REQUIRE(budget::measure(problem, exact->runs).cost == *least);
      const budget::Measure found = greedy[budget::plan_within(greedy, cap)].measure;
      ++compared;
      missed += found.peak > cap;
      if (found.peak > cap) continue;
      by_exact += *least;
      by_greedy += found.cost;
    }
  }
  CHECK(compared > 300);
  CHECK(missed * 10 < compared * 4);
  CHECK(by_greedy < 1.5 * by_exact);
}
