// Memory budgets of compiled steps: what a run adds is what was planned, to the byte, and never more than the budget;
// the bits are those without a budget; peaks and costs are monotone in the budget. With "[.figures]" a table.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

using Loss = std::function<Tensor(const Tensor& x, const Tensors& w)>;

struct Net {
  std::string name;
  rg::IntArray input;
  std::vector<rg::IntArray> weights;
  Loss loss;

  Tensors leaves() const {
    rg::manual_seed(3);
    Tensors all;
    for (const rg::IntArray& sizes : weights) all.push_back((rg::randn(sizes) * 0.1).requires_grad_());
    return all;
  }
};

Net chain(int layers, int64_t rows, int64_t width) {
  return {"chain",
          {rows, width},
          std::vector<rg::IntArray>(static_cast<size_t>(layers), {width, width}),
          [](const Tensor& x, const Tensors& w) {
            Tensor h = x;
            for (const Tensor& weight : w) h = rg::tanh(rg::mm(h, weight));
            return rg::mean(rg::square(h));
          }};
}

// Blocks of a transformer: attention with dropout, and a gated MLP.
Net transformer(int layers, int64_t batch, int64_t length, int64_t dim, int64_t hidden,
                double dropout = 0.1) {
  std::vector<rg::IntArray> weights;
  for (int i = 0; i < layers; ++i)
    for (const rg::IntArray& sizes : std::initializer_list<rg::IntArray>{
             {dim}, {3 * dim, dim}, {dim, dim}, {dim}, {hidden, dim}, {hidden, dim}, {dim, hidden}})
      weights.push_back(sizes);
  weights.push_back({dim});
  weights.push_back({dim, dim});
  return {"transformer", {batch, length, dim}, weights, [=](const Tensor& x, const Tensors& w) {
            Tensor h = x;
            for (size_t i = 0; i + 7 < w.size(); i += 7) {
              Tensors parts = rg::chunk(rg::linear(rg::rms_norm(h, {dim}, w[i]), w[i + 1]), 3, -1);
              for (Tensor& t : parts) t = rg::transpose(rg::view(t, {batch, length, 4, dim / 4}), 1, 2);
              const Tensor attended =
                  rg::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, true);
              const Tensor joined = rg::reshape(rg::transpose(attended, 1, 2), {batch, length, dim});
              const Tensor out = rg::linear(joined, w[i + 2]);
              h = h + (dropout > 0 ? rg::dropout(out, dropout) : out);
              const Tensor n = rg::rms_norm(h, {dim}, w[i + 3]);
              h = h + rg::linear(rg::silu(rg::linear(n, w[i + 4])) * rg::linear(n, w[i + 5]), w[i + 6]);
            }
            const Tensor logits = rg::linear(rg::rms_norm(h, {dim}, w[w.size() - 2]), w.back());
            return rg::mean(rg::square(logits) * rg::sigmoid(logits));
          }};
}

// Steps of SGD, and what they leave.
struct Training {
  explicit Training(const Net& net) : net(net), weights(net.leaves()), optimizer(weights, {.lr = 0.1}) {}

  Tensor step(const Tensor& x) {
    const Tensor loss = net.loss(x, weights);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss.detach();
  }
  auto compiled(rg::MemoryBudget budget) {
    return rg::compile_step([this](const Tensor& x) { return step(x); }, {.budget = budget});
  }

  const Net& net;
  Tensors weights;
  rg::optim::SGD optimizer;
};

Tensor input_of(const Net& net) {
  rg::manual_seed(4);
  return rg::randn(net.input);
}

// The most bytes that a call adds.
template <class F>
int64_t added_by(const F& f) {
  const int64_t before = rg::memory::stats().live_bytes;
  rg::memory::reset_peak();
  f();
  return rg::memory::stats().peak_bytes - before;
}

// What three steps leave: losses and weights.
template <class Step>
Tensors results(Training& training, const Step& step, const Tensor& x) {
  rg::manual_seed(5);
  Tensors all;
  for (int i = 0; i < 3; ++i) all.push_back(step(x));
  for (const Tensor& w : training.weights) all.push_back(w.detach());
  return all;
}

bool same(const Tensors& a, const Tensors& b) { return std::ranges::equal(a, b, rg::testing::same_bits); }

std::vector<Net> nets() {
  return {chain(12, 64, 32), transformer(4, 2, 16, 32, 88), transformer(3, 1, 24, 16, 40, 0)};
}

}  // namespace

TEST_CASE("a run adds what was planned, within the budget, with the bits of no budget") {
  for (const Net& net : nets()) {
    const Tensor x = input_of(net);
    Training plain(net);
    const Tensors expected = results(plain, plain.compiled({}), x);
    Training first(net);
    auto loose = first.compiled(rg::MemoryBudget::fraction(1));
    loose(x);
    const std::vector<rg::MemoryReport::Point> curve = loose.memory().pareto;
    INFO(net.name);
    REQUIRE(curve.size() > 4);
    for (size_t i = 0; i < curve.size(); i += i + 4 < curve.size() ? 3 : 1) {  // and the last ones
      const rg::MemoryReport::Point& point = curve[i];
      Training training(net);
      auto step = training.compiled(rg::MemoryBudget::bytes(point.bytes));
      CHECK(same(results(training, step, x), expected));
      const rg::MemoryReport report = step.memory();
      CHECK(report.planned_bytes <= point.bytes);
      CHECK(report.planned_bytes >= report.lower_bound_bytes);
      CHECK(added_by([&] { step(x); }) == report.planned_bytes);
    }
  }
}

TEST_CASE("a larger budget never has a higher cost, a smaller one never a higher peak") {
  const Net net = chain(16, 64, 32);
  const Tensor x = input_of(net);
  rg::MemoryReport before;
  for (int part = 20; part > 8; --part) {
    Training training(net);
    auto step = training.compiled(rg::MemoryBudget::fraction(part / 20.0));
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

TEST_CASE("a budget is for each set of sizes") {
  const Net net = chain(10, 64, 32);
  Training plain(net), training(net);
  auto expected = plain.compiled({});
  auto step = training.compiled(rg::MemoryBudget::fraction(0.5));
  for (int64_t rows : {64, 48, 80, 48}) {
    rg::manual_seed(6);
    const Tensor x = rg::randn({rows, 32});
    CHECK(rg::testing::same_bits(step(x), expected(x)));
    CHECK(step.memory().planned_bytes <= step.memory().budget_bytes);
    Tensor loss;
    CHECK(added_by([&] { loss = step(x); }) == step.memory().planned_bytes);
    CHECK(rg::testing::same_bits(loss, expected(x)));
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
  Training training(net), untouched(net);
  auto step = training.compiled(rg::MemoryBudget::bytes(1000));
  for (int call = 0; call < 2; ++call) {
    std::string text;
    CHECK(rg::category_of([&] { step(x); }, &text) == rg::Category::bad_argument);
    CHECK(text.find("no plan of the step adds at most 1000 bytes: the least is ") != std::string::npos);
    CHECK(text.find("memory_budget_test.cc") != std::string::npos);
    CHECK(text.find("one operation alone needs ") != std::string::npos);
  }
  CHECK(same(training.weights, untouched.weights));
  CHECK(step.memory().planned_bytes == 0);
}

TEST_CASE("what is no budget is refused") {
  using rg::MemoryBudget;
  const auto category = [](auto f) { return rg::category_of(f); };
  CHECK(category([] { MemoryBudget::bytes(-1); }) == rg::Category::bad_argument);
  CHECK(category([] { MemoryBudget::fraction(1.5); }) == rg::Category::bad_argument);
  CHECK(category([] { MemoryBudget::fraction(std::nan("")); }) == rg::Category::bad_argument);
  CHECK(category([] { MemoryBudget::bytes(1).with_solver("ilp"); }) == rg::Category::bad_argument);
  const auto compiled = [] {
    rg::compile([](const Tensor& x) { return x; }, {.budget = MemoryBudget::fraction(0.5)});
  };
  CHECK(category(compiled) == rg::Category::unsupported);
}

TEST_CASE("explain() lists what is computed again") {
  const Net net = chain(12, 64, 32);
  const Tensor x = input_of(net);
  Training plain(net);
  auto without = plain.compiled({});
  without(x);
  CHECK(without.explain().find("memory that a run adds") == std::string::npos);
  Training training(net);
  auto step = training.compiled(rg::MemoryBudget::fraction(0.5).with_solver("greedy"));
  step(x);
  const std::string text = step.explain();
  CHECK(text.find("memory that a run adds:\n  budget") != std::string::npos);
  CHECK(text.find("computed again, ") != std::string::npos);
  CHECK(text.find("tanh at memory_budget_test.cc:") != std::string::npos);
  CHECK(step.memory().plan_ms > 0);
}

TEST_CASE("figures of memory budgets", "[.figures]") {
  const Net net = transformer(8, 2, 512, 256, 704, 0);
  const Tensor x = input_of(net);
  Training eager(net);
  const int64_t by_eager = added_by([&] { eager.step(x); });
  Training first(net);
  auto loose = first.compiled(rg::MemoryBudget::fraction(1));
  loose(x);
  std::printf("eager measured %lld\n%s", static_cast<long long>(by_eager), loose.memory().text().c_str());
  for (const auto& p : loose.memory().pareto)
    std::printf("%12lld %6.2f%%\n", static_cast<long long>(p.bytes), 100 * p.recomputed_share);
  Training least(net);
  auto tight = least.compiled(rg::MemoryBudget::bytes(loose.memory().pareto.back().bytes));
  tight(x);
  std::printf("%s", tight.memory().text().c_str());
  std::printf("measured %lld\n", static_cast<long long>(added_by([&] { tight(x); })));
}
