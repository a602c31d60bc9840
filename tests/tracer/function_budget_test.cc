// Memory budgets of compiled functions, where they are more than those of steps: backwards that retain the graph, from
// some of the results, that are differentiated again, or throw; what is written to between a call and its backward;
// hooks and pairs; functions without a backward. Gradients always have the bits of a function without a budget.
#include <catch2/catch.hpp>

#include "tests/errors.h"
#include "tests/tracer/budgeted.h"

namespace rg = retrograd;
using namespace budgeted;
using rg::MemoryBudget;

namespace {

using Function = std::function<Tensor(const Tensor&)>;

// With the least plan of a function, so that as much as possible is computed again. `call`: calls it.
template <class F, class Call>
auto tight(const F& f, const Call& call) {
  auto loose = rg::compile(f, {.budget = MemoryBudget::fraction(1)});
  call(loose);
  const int64_t least = loose.memory().pareto.back().bytes + 4096;  // temporary memory that only a plan knows
  auto compiled = rg::compile(f, {.budget = MemoryBudget::bytes(least)});
  call(compiled);
  CHECK(compiled.memory().planned_bytes <= least);
  CHECK(compiled.memory().recomputed_share > 0);
  return compiled;
}

Tensors gradients_of(const Tensors& leaves) {
  Tensors all;
  for (const Tensor& leaf : leaves) {
    all.push_back(leaf.grad().defined() ? leaf.grad().clone() : Tensor());
    leaf.set_grad({});
  }
  return all;
}

struct Layers {
  Net net = chain(8, 64, 32);
  Tensors weights = net.leaves();
  Tensor x = input_of(net).requires_grad_();
  Function loss = [this](const Tensor& in) { return net.loss(in, weights); };

  Tensors leaves() const {
    Tensors all = weights;
    all.push_back(x);
    return all;
  }
  Tensors gradients() const { return gradients_of(leaves()); }
};

// Two results of one trunk.
std::pair<Tensor, Tensor> two_results(const Tensor& x, const Tensors& w) {
  Tensor h = x;
  for (size_t i = 0; i < 4; ++i) h = rg::tanh(rg::mm(h, w[i]));
  const Tensor left = rg::exp(rg::sin(rg::mm(h, w[4])) * 2), right = rg::sigmoid(rg::mm(rg::tanh(h), w[5]));
  return {rg::mean(rg::square(left)), rg::sum(rg::cos(right))};
}

}  // namespace

TEST_CASE("a retained graph has the same gradients again") {
  Layers plain, budgeted;
  auto expected = rg::compile(plain.loss);
  auto f = tight(budgeted.loss, [&](auto& g) { g(budgeted.x); });
  const Tensor a = expected(plain.x), b = f(budgeted.x);
  for (bool retain : {true, true, false}) {
    a.backward({}, retain);
    b.backward({}, retain);
    CHECK(same(budgeted.gradients(), plain.gradients()));
  }
  CHECK(rg::category_of([&] { b.backward(); }) == rg::Category::backward_twice_freed);
}

TEST_CASE("gradients of gradients") {
  Layers plain, budgeted;
  const auto second = [](const Layers& of, auto& f) {
    const Tensor loss = f(of.x);
    const Tensor first = rg::autograd::grad({loss}, {of.x}, {}, true, /*create_graph=*/true)[0];
    rg::sum(rg::square(first)).backward();
    Tensors all = of.gradients();
    all.push_back(first.detach());
    return all;
  };
  auto expected = rg::compile(plain.loss);
  auto f = tight(budgeted.loss, [&](auto& g) { g(budgeted.x); });
  CHECK(same(second(budgeted, f), second(plain, expected)));
}

TEST_CASE("backwards from one of two results, from both one by one, and from both at once") {
  const auto run = [](const Layers& of, auto& f, int which) {
    const auto [left, right] = f(of.x);
    if (which == 0) left.backward();
    if (which == 1) right.backward();
    if (which == 2) left.backward({}, true), right.backward();
    if (which == 3) rg::autograd::backward({left, right});
    return of.gradients();
  };
  Layers plain, budgeted;
  auto expected = rg::compile([&](const Tensor& x) { return two_results(x, plain.weights); });
  auto f = tight([&](const Tensor& x) { return two_results(x, budgeted.weights); },
                 [&](auto& g) { g(budgeted.x); });
  for (int which : {3, 0, 1, 2, 3}) {
    INFO(which);
    CHECK(same(run(budgeted, f, which), run(plain, expected, which)));
  }
}

TEST_CASE("draws are those of the forward") {
  const Net net = transformer(2, 2, 16, 32, 88, 0.3);
  const Tensor x = input_of(net);
  const Tensors weights = net.leaves();
  const auto loss = [&](const Tensor& in) { return net.loss(in, weights); };
  auto expected = rg::compile(loss);
  auto f = tight(loss, [&](auto& g) { g(x); });
  for (int call = 0; call < 3; ++call) {
    const auto gradients = [&](auto& of) {
      rg::manual_seed(7 + static_cast<uint64_t>(call));
      of(x).backward();
      return gradients_of(weights);
    };
    CHECK(same(gradients(f), gradients(expected)));
  }
}

TEST_CASE("hooks on values of the function are called once, with the gradients of no budget") {
  const auto run = [](MemoryBudget budget) {
    Layers layers;
    std::vector<double> seen;
    const auto loss = [&](const Tensor& in) {
      Tensor h = in;
      for (const Tensor& w : layers.weights) {
        h = rg::tanh(rg::mm(h, w));
        h.register_hook([&seen](const Tensor& g) {
          seen.push_back(rg::sum(g).item<double>());
          return Tensor();
        });
      }
      return rg::mean(rg::square(h));
    };
    auto f = rg::compile(loss, {.budget = budget});
    for (int i = 0; i < 2; ++i) f(layers.x).backward();
    CHECK(seen.size() == 16);
    for (double s : seen) CHECK(std::isfinite(s));
    return std::pair(seen, layers.gradients());
  };
  const auto [expected_seen, expected] = run({});
  const auto [seen, gradients] = run(MemoryBudget::fraction(1));
  CHECK(seen == expected_seen);
  CHECK(same(gradients, expected));
}

TEST_CASE("opaque pairs pack and unpack as without a budget") {
  const auto run = [](MemoryBudget budget) {
    Layers layers;
    int packs = 0, unpacks = 0;
    const auto loss = [&](const Tensor& in) {
      Tensor h = in;
      for (size_t i = 0; i < layers.weights.size(); ++i) {
        std::optional<rg::SavedTensorHooksGuard> guard;
        if (i % 2)
          guard.emplace([&](const Tensor& t) { return ++packs, t * 2; },
                        [&](const Tensor& t) { return ++unpacks, t * 0.5; });
        h = rg::tanh(rg::mm(h, layers.weights[i]));
      }
      return rg::mean(rg::square(h));
    };
    auto f = rg::compile(loss, {.budget = budget});
    for (int i = 0; i < 2; ++i) f(layers.x).backward();
    Tensors all = layers.gradients();
    all.push_back(rg::scalar_tensor(packs));
    all.push_back(rg::scalar_tensor(unpacks));
    return all;
  };
  CHECK(same(run(MemoryBudget::fraction(1)), run({})));
}

TEST_CASE("a backward that throws half-way can run again") {
  Layers plain, budgeted;
  bool throws = false;
  const auto with_hook = [&](Layers& of) {
    return [&](const Tensor& in) {
      Tensor h = in;
      for (size_t i = 0; i < of.weights.size(); ++i) {
        h = rg::tanh(rg::mm(h, of.weights[i]));
        if (i == 3)
          h.register_hook([&throws](const Tensor&) {
            if (throws) throw std::runtime_error("half-way");
            return Tensor();
          });
      }
      return rg::mean(rg::square(h));
    };
  };
  auto expected = rg::compile(with_hook(plain));
  expected(plain.x).backward();
  auto f = tight(with_hook(budgeted), [&](auto& g) { g(budgeted.x); });
  const Tensor loss = f(budgeted.x);
  throws = true;
  CHECK_THROWS(loss.backward());
  throws = false;
  loss.backward();
  CHECK(same(budgeted.gradients(), plain.gradients()));
}

TEST_CASE("a weight that is written to before the backward is an error") {
  Layers layers;
  auto f = tight(layers.loss, [&](auto& g) { g(layers.x); });
  const Tensor loss = f(layers.x);
  {
    rg::NoGradGuard no_grad;
    layers.weights[2].add_(1);
  }
  CHECK(rg::category_of([&] { loss.backward(); }) == rg::Category::version_mismatch);
}

TEST_CASE("results that are written to are computed again") {
  const auto run = [](MemoryBudget budget) {
    Layers layers;
    const auto f = rg::compile(
        [&](const Tensor& in) {
          const Tensor h = rg::mm(in, layers.weights[0]) * 2;
          return std::pair(h, rg::sum(rg::sin(h) * rg::cos(h)));
        },
        {.budget = budget});
    for (int call = 0; call < 2; ++call) {
      const auto [h, loss] = f(layers.x);
      rg::sum(h.mul_(3)).backward({}, true);
      if (budget.is_set()) loss.backward();
    }
    return layers.gradients();
  };
  Layers eager;
  for (int call = 0; call < 2; ++call) {
    const Tensor h = rg::mm(eager.x, eager.weights[0]) * 2;
    const Tensor loss = rg::sum(rg::sin(h.clone()) * rg::cos(h.clone()));
    rg::sum(h.mul_(3)).backward({}, true);
    loss.backward();
  }
  const Tensors found = run(MemoryBudget::fraction(1)), expected = eager.gradients();
  for (size_t i = 0; i < found.size(); ++i) {
    REQUIRE(found[i].defined() == expected[i].defined());
    if (found[i].defined()) CHECK(rg::allclose(found[i], expected[i], 1e-5, 1e-5));
  }
}

TEST_CASE("memory that the function writes to counts, and is written once") {
  const auto run = [](MemoryBudget budget, rg::MemoryReport* report) {
    Layers layers;
    const Tensor mean = rg::zeros({32}), var = rg::ones({32});
    const auto loss = [&](const Tensor& in) {
      Tensor h = in;
      for (const Tensor& w : layers.weights)
        h = rg::tanh(rg::batch_norm(rg::mm(h, w), {}, {}, mean, var, true, 0.1, 1e-5));
      return rg::mean(rg::square(h));
    };
    auto f = rg::compile(loss, {.budget = budget});
    for (int i = 0; i < 2; ++i) f(layers.x).backward();
    Tensors all = layers.gradients();
    const int64_t added = added_by([&] { f(layers.x).backward(); });
    if (report) {
      *report = f.memory();
      CHECK(added <= report->planned_bytes);
    }
    all.push_back(mean.clone());
    all.push_back(var.clone());
    return all;
  };
  rg::MemoryReport report;
  const Tensors expected = run({}, nullptr);
  run(MemoryBudget::fraction(1), &report);
  const Tensors found = run(MemoryBudget::bytes(report.pareto.back().bytes), &report);
  CHECK(report.recomputed_share > 0);
  CHECK(same(found, expected));
}

TEST_CASE("a function without gradients is fitted by itself") {
  const Net net = chain(6, 64, 32);
  const Tensors weights = net.leaves();
  const Tensor x = input_of(net);
  const auto products = [&](const Tensor& in) {
    Tensors sines;
    for (const Tensor& w : weights) sines.push_back(rg::sin(rg::mm(in, w)));
    Tensor sum = rg::zeros_like(sines[0]);
    for (const Tensor& s : sines) sum = rg::mm(rg::exp(sum), weights[0]) + s;
    for (const Tensor& s : sines) sum = rg::mm(sum, weights[1]) * s;
    return sum;
  };
  rg::NoGradGuard no_grad;
  auto plain = rg::compile(products);
  auto f = tight(products, [&](auto& g) { g(x); });
  Tensor found;
  CHECK(added_by([&] { found = f(x); }) == f.memory().planned_bytes);
  CHECK(rg::testing::same_bits(found, plain(x)));
}

TEST_CASE("where the forward holds the peak, the cotangent does not count") {
  Layers layers;
  const Tensor wide = rg::randn({32, 2048});
  const auto loss = [&](const Tensor& in) {
    rg::NoGradGuard no_grad;
    const Tensor scale = rg::mean(rg::mm(in, wide));  // of 512 KiB, which no backward reads
    const rg::EnableGradGuard with_grad;
    return layers.loss(in) * scale;
  };
  auto f = rg::compile(loss, {.budget = MemoryBudget::fraction(1)});
  f(layers.x).backward();
  layers.gradients();
  CHECK(added_by([&] { f(layers.x); }) == f.memory().planned_bytes);
}

TEST_CASE("an eager run counts with the temporary memory of its kernels, so no more is ever planned for it") {
  const Tensor x = rg::randn({64, 32}), wide = rg::randn({32, 2048});
  rg::NoGradGuard no_grad;
  auto product =
      rg::compile([&](const Tensor& in) { return rg::mm(in, wide); }, {.budget = MemoryBudget::fraction(1)});
  product(x);
  CHECK(product.memory().planned_bytes > 64 * 2048 * 4);  // a product packs its operands
  CHECK(product.memory().eager_bytes == product.memory().planned_bytes);
  CHECK(added_by([&] { rg::mm(x, wide); }) == product.memory().eager_bytes);
  auto nothing = rg::compile([](const Tensor& in) { return in; }, {.budget = MemoryBudget::fraction(0)});
  nothing(x);
  CHECK(nothing.memory().eager_bytes == 0);
}

TEST_CASE("gradients of arguments, and of several results, count") {
  Layers layers;
  auto f =
      tight([&](const Tensor& x) { return two_results(x, layers.weights); }, [&](auto& g) { g(layers.x); });
  const Tensors ones{rg::ones({}), rg::ones({})};
  Tensors found;
  const int64_t added = added_by([&] {
    const auto [left, right] = f(layers.x);
    found = rg::autograd::grad({left, right}, layers.leaves(), ones, {}, false, /*allow_unused=*/true);
  });
  CHECK(added == f.memory().planned_bytes);
}
