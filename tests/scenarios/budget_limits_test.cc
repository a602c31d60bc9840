// Where memory budgets and offload end, as scenarios by number: what can only be held, budgets inside each other,
// values that a policy offloads, and offload without memory for the copy. The other cases of 93 and 97 to 100 are in
// tests/tracer/memory_budget_test.cc and prefetch_*_test.cc, tests/hooks/offload_test.cc and stock_test.cc, and
// tests/cuda/offload_test.cc.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/errors.h"
#include "tests/hooks/pairs.h"
#include "tests/hooks/regions.h"
#include "tests/own_folder.h"

namespace rg = retrograd;
using rg::MemoryBudget;
using rg::Tensor;
using rg::Tensors;
using rg::testing::live;
using rg::testing::same_bits;
using rg::testing::wave;

namespace {

constexpr int64_t kRows = 64, kWidth = 32, kValue = kRows * kWidth * 4;
constexpr size_t kLayers = 8;

// Layers that add a state. `writes`: each state is written to once it has been read.
struct Layers {
  explicit Layers(bool writes) : writes(writes) {
    for (size_t i = 0; i < kLayers; ++i) {
      const double scale = 0.2 + 0.01 * static_cast<double>(i);
      weights.push_back(wave(kWidth * kWidth, scale).view({kWidth, kWidth}).requires_grad_());
      states.push_back(wave(kWidth, scale));
    }
  }
  Tensor loss(const Tensor& x) const {
    Tensor h = x;
    for (size_t i = 0; i < kLayers; ++i) {
      h = rg::tanh(rg::mm(h, weights[i]) + states[i]);
      if (!writes) continue;
      rg::NoGradGuard no_grad;
      states[i].mul_(0.5);
    }
    return rg::mean(rg::square(h));
  }
  Tensor step(const Tensor& x) const {
    const Tensor l = loss(x);
    l.backward();
    return l.detach();
  }
  auto compiled(MemoryBudget budget) const {
    return rg::compile_step([this](const Tensor& x) { return step(x); }, {.budget = budget});
  }
  // Gradients, which go, and states.
  Tensors take() const {
    Tensors all;
    for (const Tensor& w : weights) {
      all.push_back(w.grad());
      w.set_grad({});
    }
    for (const Tensor& s : states) all.push_back(s.clone());
    return all;
  }

  bool writes;
  Tensors weights, states;
  Tensor x = wave(kRows * kWidth).view({kRows, kWidth});
};

bool same(const Tensors& a, const Tensors& b) { return std::ranges::equal(a, b, same_bits); }

struct Folder : rg::testing::OwnFolder {
  std::vector<uintmax_t> file_sizes() const {
    std::vector<uintmax_t> sizes;
    for (const auto& file : std::filesystem::directory_iterator(path)) sizes.push_back(file.file_size());
    return sizes;
  }
};

// While it lives, so many bytes more are all that there is.
struct Limit {
  explicit Limit(int64_t bytes) { rg::memory::set_limit(live() + bytes); }
  ~Limit() { rg::memory::set_limit(0); }
};

}  // namespace

TEST_CASE("93: inside another recorded function the budget of a function has no meaning") {
  const Layers layers(false);
  auto inner =
      rg::compile([&](const Tensor& x) { return layers.loss(x); }, {.budget = MemoryBudget::bytes(1)});
  auto outer = rg::compile_step(
      [&](const Tensor& x) {
        const Tensor l = inner(x);
        l.backward();
        return l.detach();
      },
      {.budget = MemoryBudget::fraction(1)});
  const auto alone = [&] { return rg::category_of([&] { inner(layers.x); }); };
  CHECK(alone() == rg::Category::bad_argument);
  const Tensor loss = outer(layers.x);
  const Tensors found = layers.take();
  CHECK(same_bits(loss, layers.step(layers.x)));
  CHECK(same(found, layers.take()));
  CHECK(outer.memory().planned_bytes <= outer.memory().budget_bytes);
  CHECK(inner.memory().planned_bytes == 0);
  CHECK(alone() == rg::Category::bad_argument);
}

TEST_CASE("96: what cannot be made again is held, and a budget without room for it is an error") {
  const auto least = [](const Layers& layers) {
    auto loose = layers.compiled(MemoryBudget::fraction(1));
    loose(layers.x);
    layers.take();
    return loose.memory().pareto.back().bytes;
  };
  // The gradients of the weights are held to the end either way.
  const int64_t gradients = kLayers * kWidth * kWidth * 4;
  CHECK(least(Layers(false)) < gradients + 4 * kValue);
  // No layer can run again once its state has been written to, and the backward reads the results of all of them.
  const int64_t held = kLayers * kValue;
  const Layers eager(true), layers(true);
  const int64_t bytes = least(Layers(true));
  CHECK(bytes >= held);
  auto step = layers.compiled(MemoryBudget::bytes(bytes));
  for (int i = 0; i < 3; ++i) {
    CHECK(same_bits(step(layers.x), eager.step(eager.x)));
    CHECK(same(layers.take(), eager.take()));
  }
  std::string text;
  auto none = layers.compiled(MemoryBudget::bytes(held - 1));
  CHECK(rg::category_of([&] { none(layers.x); }, &text) == rg::Category::bad_argument);
  CHECK_THAT(text, Catch::Contains("adds at most 65535 bytes: the least is ") &&
                       Catch::Contains("budget_limits_test.cc:") && Catch::Contains("Hint: "));
  CHECK(same(layers.take(), eager.take()));  // nothing has run
}

TEST_CASE(
    "99: a value that a policy offloads leaves memory, and comes back instead of being computed again") {
  const Folder folder;
  const auto loss_of = [](const Tensor& x) {
    return rg::sum(rg::cos(rg::checkpoint_name(rg::exp(rg::sin(x)), "e")));
  };
  const Tensor plain = wave(4096).requires_grad_(), x = wave(4096).requires_grad_();
  loss_of(plain).backward();
  rg::testing::in_modes([&](const auto& backward) {
    const int64_t before = live();
    Tensor loss;
    {
      rg::RecomputeScope scope(rg::policies::offload_names({"e"}, rg::save_to_file(folder.path)));
      loss = loss_of(x);
    }
    CHECK(live() - before < x.nbytes());
    CHECK(folder.file_sizes() == std::vector<uintmax_t>{static_cast<uintmax_t>(x.nbytes())});
    const rg::testing::Calls calls;
    backward(loss);
    CHECK(calls.count("sin") + calls.count("exp") == 0);
    CHECK(same_bits(x.grad(), plain.grad()));
    loss = {};
    CHECK(folder.file_sizes().empty());
  });
}

TEST_CASE("100: without memory for the copy a value stays where it is, eagerly and in recorded functions") {
  const Tensor x = wave(4096).requires_grad_();
  const auto f = [](const Tensor& in) {
    rg::SavedTensorHooksGuard guard(rg::save_on_cpu(true));
    return rg::exp(in);  // saves its result
  };
  const auto gradient = [&](const auto& function, int64_t room, int64_t stayed) {
    rg::reset_offload_stats();
    Tensor y;
    {
      const Limit limit(room);
      y = function(x);
    }
    CHECK(rg::offload_stats().stayed == stayed);
    CHECK((rg::offload_stats().bytes_to_host == 0) == (stayed > 0));
    rg::sum(y).backward();
    const Tensor found = x.grad();
    x.set_grad({});
    return found;
  };
  const int64_t value = x.nbytes();
  const Tensor want = rg::exp(x).detach();
  auto compiled = rg::compile(f);
  compiled(x);
  for (const auto& [room, stayed] : {std::pair(4 * value, 0), std::pair(value + value / 2, 1)}) {
    CHECK(same_bits(gradient(f, room, stayed), want));
    CHECK(same_bits(gradient(compiled, room, stayed), want));
  }
  CHECK(compiled.stats().captures == 1);
  // A value that stayed is the caller's: a write to it is found out.
  Tensor y;
  {
    const Limit limit(value + value / 2);
    y = f(x);
  }
  y.detach().zero_();
  CHECK(rg::category_of([&] { rg::sum(y).backward(); }) == rg::Category::version_mismatch);
}
