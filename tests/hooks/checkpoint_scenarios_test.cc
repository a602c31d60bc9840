// Known scenarios of checkpoints and of selective recomputation, by number. Others are in checkpoint_test.cc and
// recompute_policy_test.cc.
#include <catch2/catch.hpp>
#include <fstream>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/hooks/pairs.h"
#include "tests/hooks/regions.h"

namespace rg = retrograd;
namespace ag = retrograd::autograd;
using rg::category_of;
using rg::checkpoint;
using rg::CheckpointPolicy;
using rg::RecomputeScope;
using rg::Tensor;
using rg::Tensors;
using rg::testing::Calls;
using rg::testing::live;
using rg::testing::same_bits;
using rg::testing::shifted_wave;

namespace {

Tensor leaf(int64_t n) { return shifted_wave(n).requires_grad_(); }

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

template <class F>
Tensor gradient(const F& f, const Tensor& x, bool create_graph = false) {
  return ag::grad({rg::sum(f(x))}, {x}, {}, std::nullopt, create_graph)[0];
}

// Saves its argument five times, and reads all of them twice.
struct ReadsTwice : rg::Function<ReadsTwice> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x, x, x, x, x});
    return x * x;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    const Tensors first = ctx->get_saved_variables(), second = ctx->get_saved_variables();
    for (size_t i = 0; i < first.size(); ++i) CHECK(same_bits(first[i], second[i]));
    return {g[0] * first[4] * 2.0};
  }
};

// Saves a tensor that needs no gradient.
struct SavesConstant : rg::Function<SavesConstant> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x, const Tensor& c) {
    ctx->save_for_backward({c});
    return x * c;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    const Tensor c = ctx->get_saved_variables()[0];
    CHECK(!c.requires_grad());
    return {g[0] * c, Tensor()};
  }
};

}  // namespace

TEST_CASE("29: backward and grad through a checkpoint") {
  const Tensor x = leaf(5);
  const auto f = [](const Tensor& t) { return rg::exp(t); };
  const auto c = [&](const Tensor& t) { return checkpoint(f, t); };
  CHECK(same_bits(gradient(c, x), gradient(f, x)));
  rg::sum(c(x)).backward();
  CHECK(same_bits(x.grad(), gradient(f, x)));
}

TEST_CASE("30: each read of a slot outside of a backward recomputes; then the backward does once") {
  const Tensor x = leaf(5);
  const Tensor y = checkpoint([](const Tensor& t) { return rg::cos(rg::exp(t)); }, x);
  Calls calls;
  rg::Record& record = *y.grad_fn().record();
  for (size_t read = 1; read <= 2; ++read) {
    CHECK(same_bits(rg::unpack(record, record.slot(0)), rg::exp(x.detach())));
    CHECK(calls.count("exp") == read);
  }
  rg::sum(y).backward();
  CHECK(calls.count("exp") == 3);
  CHECK_THROWS_AS(rg::unpack(record, record.slot(0)), rg::Error);
}

TEST_CASE("31: a function that reads what it saved twice is served once") {
  const Tensor x = leaf(5);
  const auto f = [](const Tensor& t) { return ReadsTwice::apply(rg::sin(t)); };
  const Tensor want = gradient(f, x);
  Calls calls;
  CHECK(same_bits(gradient([&](const Tensor& t) { return checkpoint(f, t); }, x), want));
  CHECK(calls.recomputations == 1);
}

TEST_CASE("34, 35: what saves its operand is not run again, what saves nothing is not recomputed") {
  const Tensor x = leaf(5);
  const auto runs = [&](const auto& f, bool early_stop) {
    const Tensor y = checkpoint(f, x, {.early_stop = early_stop});
    Calls calls;
    rg::sum(y).backward();
    return calls.names.size();
  };
  const auto sine = [](const Tensor& t) { return rg::sin(t); };
  const auto copy = [](const Tensor& t) { return rg::clone(t); };
  CHECK(runs(sine, true) == 0);
  CHECK(runs(sine, false) == 1);
  CHECK(runs(copy, true) == 0);
  CHECK(runs(copy, false) == 0);
}

TEST_CASE("36: arguments and results of any types") {
  const Tensor a = leaf(5), b = leaf(5);
  const auto f = [](int k, const Tensor& x, const std::optional<Tensor>& y,
                    const std::function<Tensor(const Tensor&)>& g) {
    return std::tuple(g(x) * *y * static_cast<double>(k), 1, std::string("abcd"));
  };
  const std::function<Tensor(const Tensor&)> g = [](const Tensor& t) { return rg::exp(rg::sin(t)); };
  const auto [y, one, text] = checkpoint(f, std::tuple(3, a, std::optional(b), g));
  CHECK(one == 1);
  CHECK(text == "abcd");
  rg::sum(y).backward();
  const Tensor want = ag::grad({rg::sum(std::get<0>(f(3, a, b, g)))}, {a})[0];
  CHECK(same_bits(a.grad(), want));
}

TEST_CASE("37, 42: hooks run once, on the original graph") {
  const Tensor x = leaf(5), w = leaf(5);
  int of_leaf = 0, of_node = 0;
  w.register_hook([&](const Tensor& g) { return ++of_leaf, Tensor(g); });
  const Tensor y = checkpoint(
      [&](const Tensor& t) {
        const Tensor h = rg::exp(t * w);
        h.grad_fn().register_hook([&](const Tensors& g, const Tensors&) { return ++of_node, Tensors(g); });
        return rg::sin(h);
      },
      x * w);
  rg::sum(y).backward();
  CHECK(of_leaf == 1);
  CHECK(of_node == 1);
}

TEST_CASE("38: a region without gradients just runs, three times") {
  const Tensor a = leaf(5), x = leaf(5);
  for (int round = 0; round < 3; ++round) {
    Tensor out;
    {
      rg::NoGradGuard no_grad;
      out = checkpoint([](const Tensor& t) { return rg::exp(t); }, x);
    }
    CHECK(!out.requires_grad());
    out.add_(a);
    rg::sum(out * out).backward();
  }
  CHECK(a.grad().defined());
}

TEST_CASE("40: a saved tensor that needs no gradient") {
  const Tensor x = leaf(5), c = shifted_wave(5, 0.3);
  rg::sum(checkpoint([&](const Tensor& t) { return SavesConstant::apply(t, c); }, x)).backward();
  CHECK(same_bits(x.grad(), c));
}

TEST_CASE("43: a hook that runs a backward through the region") {
  const Tensor x = leaf(5);
  const Tensor y = checkpoint([](const Tensor& t) { return rg::exp(rg::sin(t)); }, x);
  const Tensor loss = rg::sum(y);
  int depth = 0;
  y.register_hook([&](const Tensor& g) {
    if (depth++ == 0) ag::grad({loss}, {x}, {}, true);
    return Tensor(g);
  });
  loss.backward();
  CHECK(depth == 2);
  CHECK(same_bits(x.grad(), gradient([](const Tensor& t) { return rg::exp(rg::sin(t)); }, x)));
}

TEST_CASE("44: grad inside of a region") {
  const Tensor x = leaf(5);
  for (const bool retain : {false, true}) {
    const auto f = [&](const Tensor& t) {
      const Tensor y = rg::exp(rg::sin(t));
      const Tensor g = ag::grad({rg::sum(y * y)}, {t}, {}, retain, retain)[0];
      return rg::cos(g) * (retain ? y : t);
    };
    const Tensor want = gradient(f, x);
    CHECK(same_bits(gradient([&](const Tensor& t) { return checkpoint(f, t); }, x), want));
  }
}

TEST_CASE("46: a group of two backwards shares a recomputation") {
  const Tensor x = shifted_wave(20).requires_grad_();
  Tensor y, z;
  const auto run = [&] {
    rg::checkpoint([&] {
      y = rg::exp(rg::sin(x));
      z = rg::cos(y);
    });
  };
  const auto halves = [&] {
    const Tensor gy = rg::autograd::grad({rg::sum(z)}, {y})[0];
    return rg::autograd::grad({y}, {x}, {gy})[0];
  };
  run();
  Calls apart;
  const Tensor want = halves();
  CHECK(apart.recomputations == 2);
  run();
  const int64_t before = live();
  {
    Calls together;
    const rg::GraphExecGroup group;
    const Tensor got = halves();
    CHECK(together.recomputations == 1);
    CHECK(same_bits(got, want));
    CHECK(category_of([] { const rg::GraphExecGroup inner; }) == rg::Category::bad_argument);
  }
  CHECK(live() <= before);
  run();
  {
    // Both need all values: the second recomputes them again.
    const rg::GraphExecGroup group;
    for (int i = 0; i < 2; ++i) CHECK(same_bits(rg::autograd::grad({rg::sum(z)}, {x}, {}, true)[0], want));
  }
  const rg::GraphExecGroup left_unused;
}

TEST_CASE("47: offload around and inside of a region") {
  const Tensor x = leaf(5);
  const auto power = [](const Tensor& t) { return rg::pow(t, 3.0); };
  const auto f = [&](const Tensor& t, bool around, bool inside) {
    std::optional<rg::SavedTensorHooksGuard> outer;
    if (around) outer.emplace(rg::save_on_cpu());
    return power(checkpoint(
        [&](const Tensor& u) {
          std::optional<rg::SavedTensorHooksGuard> inner;
          if (inside) inner.emplace(rg::save_on_cpu());
          return power(power(u));
        },
        power(t)));
  };
  const Tensor want = gradient([&](const Tensor& t) { return power(power(power(power(t)))); }, x);
  for (const bool around : {false, true})
    for (const bool inside : {false, true})
      CHECK(same_bits(gradient([&](const Tensor& t) { return f(t, around, inside); }, x), want));
}

TEST_CASE("49, 50: derivatives up to the third through nested regions; all is dropped") {
  using F = std::function<Tensor(const Tensor&)>;
  const F f = [](const Tensor& t) { return rg::sin(rg::exp(rg::sin(t))); };
  const Tensor x = leaf(5);
  const int64_t before = live();
  for (const bool early_stop : {true, false}) {
    const auto c = [&](const F& g) -> F {
      return [g, early_stop](const Tensor& t) { return checkpoint(g, t, {.early_stop = early_stop}); };
    };
    const auto d = [](const F& g) -> F { return [g](const Tensor& t) { return gradient(g, t, true); }; };
    const Tensor first = d(f)(x).detach(), second = d(d(f))(x).detach(), third = d(d(d(f)))(x).detach();
    for (const F& g : {c(f), c(c(f))}) {
      CHECK(same_bits(d(g)(x), first));
      CHECK(same_bits(d(d(g))(x), second));
      CHECK(same_bits(d(d(d(g)))(x), third));
    }
    CHECK(same_bits(d(d(c(d(f))))(x), third));
    CHECK(same_bits(d(c(d(c(f))))(x), second));
    CHECK(same_bits(c(d(d(c(f))))(x), second));
    const F cc = c([&](const Tensor& t) { return c(f)(c(f)(t)); });
    CHECK(same_bits(d(d(cc))(x), d(d([&](const Tensor& t) { return f(f(t)); }))(x)));
  }
  CHECK(live() == before);
}

TEST_CASE("52, 54: eight blocks of three layers; sequential segments") {
  std::vector<std::function<Tensor(const Tensor&)>> blocks;
  Tensors weights;
  for (int i = 0; i < 8; ++i) {
    std::vector<Tensor> own;
    for (int k = 0; k < 3; ++k)
      own.push_back(shifted_wave(256 * 256, 0.06 + 0.001 * k).view({256, 256}).requires_grad_());
    weights.insert(weights.end(), own.begin(), own.end());
    blocks.emplace_back([own](Tensor t) {
      for (const Tensor& w : own) t = rg::relu(rg::mm(t, w));
      return t;
    });
  }
  for (const Tensor& w : weights) w.set_grad(rg::zeros_like(w));
  const Tensor x = shifted_wave(100 * 256).view({100, 256});
  const auto peak = [&](const auto& f) {
    rg::memory::reset_peak();
    const int64_t before = live();
    rg::sum(f()).backward();
    return rg::memory::stats().peak_bytes - before;
  };
  const int64_t plain = peak([&] {
    Tensor t = x;
    for (const auto& block : blocks) t = block(t);
    return t;
  });
  const int64_t with = peak([&] {
    Tensor t = x;
    for (const auto& block : blocks) t = checkpoint(block, t);
    return t;
  });
  CHECK(with < plain * 2 / 3);
  Calls calls;
  rg::sum(rg::checkpoint_sequential({blocks.begin(), blocks.begin() + 3}, 3, x)).backward();
  CHECK(calls.recomputations == 2);
}

TEST_CASE("53: what is read behind the last saved value only is not kept") {
  const Tensor x = leaf(1000);
  const int64_t before = live();
  Tensor y;
  {
    Tensor h = rg::sin(x);  // saves x
    y = checkpoint([&] {
      const Tensor c = rg::cos(x);  // the last that saves
      return c + h * 2.0;
    });
  }
  CHECK(live() == before + y.nbytes());
}

TEST_CASE("55, 56: matrix products saved or not") {
  const Tensor x = shifted_wave(64 * 64).view({64, 64}).requires_grad_(),
               w = shifted_wave(64 * 64, 0.1).view({64, 64}).requires_grad_();
  const auto f = [&] { return rg::sigmoid(rg::mm(rg::mm(x, w), w)) * w; };
  const auto products = [&](const rg::RecomputePolicy& policy) {
    Tensor y;
    {
      RecomputeScope scope(policy);
      y = rg::sum(f());
    }
    Calls calls;
    y.backward();
    return calls.count("mm");
  };
  CHECK(products(rg::policies::save_matrix_products()) == 0);
  CHECK(products(rg::policies::recompute_all()) == 2);
  // "All but the second", and rules that insist.
  int seen = 0;
  CHECK(products([&](const rg::PolicyCall& c) { return c.op == "mm" && ++seen != 2; }) == 1);
  CHECK(products([](const rg::PolicyCall& c) {
          return c.op == "mm" ? rg::CheckpointPolicy::must_recompute : rg::CheckpointPolicy::prefer_save;
        }) == 1);  // the operand of the second
}

TEST_CASE("59: a kept result that is overwritten afterwards stays as it was") {
  const Tensor x = leaf(50);
  const auto f = [](const Tensor& t) {
    const Tensor s = rg::sin(t);
    const Tensor y = s * 3.0 + 0.5;
    s.mul_(2.0);
    return rg::exp(y) * s;
  };
  const Tensor want = gradient(f, x);
  for (const bool saves : {false, true}) {
    Tensor y;
    {
      RecomputeScope scope([&](const rg::PolicyCall& c) { return saves && c.op == "sin"; });
      y = f(x);
    }
    CHECK(same_bits(ag::grad({rg::sum(y)}, {x})[0], want));
  }
}

TEST_CASE("60, 74: an op with several results runs once, and gives those that are needed") {
  const Tensor x = leaf(60);
  Tensor y;
  {
    RecomputeScope scope(rg::policies::recompute_all());
    const Tensors parts = rg::split(rg::exp(x), 20);
    y = rg::sum(rg::sin(parts[0])) + rg::sum(rg::cos(parts[2]));
  }
  Calls calls;
  y.backward();
  CHECK(calls.count("exp") == 1);
  const Tensor plain = x.detach().requires_grad_();
  const Tensors parts = rg::split(rg::exp(plain), 20);
  (rg::sum(rg::sin(parts[0])) + rg::sum(rg::cos(parts[2]))).backward();
  CHECK(same_bits(x.grad(), plain.grad()));
}

TEST_CASE("61, 63, 76: what a policy keeps goes with the graph, and is what a backward needs") {
  const Tensor x = leaf(1000);
  const auto f = [&] { return rg::sum(rg::exp(rg::sin(x) + 1.0)); };
  const int64_t before = live();
  Tensor y = f();
  const int64_t plain = live() - before;
  y.reset();
  {
    RecomputeScope scope(rg::policies::must_save_all());
    y = f();
  }
  CHECK(live() - before == plain);
  y.reset();
  CHECK(live() == before);
  {
    RecomputeScope scope(rg::policies::must_save_all());
    y = f();
  }
  ag::grad({y}, {x}, {}, true);
  CHECK(live() - before == plain);
  y.backward();
  y.reset();
  CHECK(live() == before + x.grad().nbytes());
}

TEST_CASE("67: of two regions one after the other, each is recomputed alone") {
  const Tensor x = leaf(5);
  const auto f = [](const Tensor& t) { return rg::exp(rg::sin(t)); };
  const Tensor first = checkpoint(f, x), second = checkpoint(f, first);
  Calls calls;
  ag::grad({rg::sum(second)}, {first}, {}, true);
  CHECK(calls.recomputations == 1);
}

TEST_CASE("100,000 steps with regions that change leave no memory behind") {
  const Tensor x = leaf(16);
  const auto f = [](const Tensor& t) { return rg::exp(rg::sin(t)) * t; };
  const auto step = [&](int i) {
    Tensor y = x;
    {
      std::optional<RecomputeScope> scope;
      if (i % 3 == 0) scope.emplace(i % 2 ? rg::policies::recompute_all() : rg::policies::save_names({"y"}));
      for (int k = 0; k <= i % 4; ++k) {
        y = i % 3 == 1 ? checkpoint(f, y) : f(y);
        if (i % 3 == 2) y = checkpoint([&](const Tensor& t) { return checkpoint(f, t) + t; }, y);
        rg::checkpoint_name(y, "y");
      }
    }
    if (i % 5) x.set_grad({}), rg::sum(y).backward();  // else the graph is dropped unused
  };
  for (int i = 0; i < 1000; ++i) step(i);
  [[maybe_unused]] const int64_t resident = resident_bytes();
  const int64_t before = live();
  for (int i = 0; i < 100000; ++i) step(i);
  CHECK(live() == before);
#if !defined(__SANITIZE_ADDRESS__)  // which keeps freed memory
  CHECK(resident_bytes() < resident + resident / 4 + (int64_t{4} << 20));
#endif
}

namespace {

// An opaque function whose forward reads data, which another call would not find again.
struct Counting : rg::Function<Counting> {
  static inline int calls = 0;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->saved_data["calls"] = static_cast<double>(++calls);
    ctx->save_for_backward({x});
    return x * static_cast<double>(calls) * (x.to_vector()[0] > 0 ? 2.0 : 3.0);
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const double sign = ctx->get_saved_variables()[0].to_vector()[0] > 0 ? 2.0 : 3.0;
    return {grads[0] * ctx->saved_data["calls"] * sign};
  }
};

}  // namespace

// Upstream calls the function of a region again and compares what it saves. Here nothing of the user runs again.
TEST_CASE("32, 48, 64: an opaque function in a region is called once, whatever it would give then") {
  for (const bool has_policy : {false, true}) {
    const Tensor x = leaf(40), plain = leaf(40);
    Counting::calls = 0;
    rg::sum(rg::sin(Counting::apply(rg::exp(plain)))).backward();
    Counting::calls = 0;
    Tensor y;
    if (has_policy) {
      const RecomputeScope scope(rg::policies::recompute_all());
      y = rg::sum(rg::sin(Counting::apply(rg::exp(x))));
    } else {
      y = checkpoint([&] { return rg::sum(rg::sin(Counting::apply(rg::exp(x)))); });
    }
    y.backward();
    CHECK(Counting::calls == 1);
    CHECK(same_bits(x.grad(), plain.grad()));
  }
}

TEST_CASE("45, 62: two backwards recompute twice, with the same gradients and no growth") {
  for (const bool has_policy : {false, true}) {
    const Tensor x = leaf(100);
    Tensor y;
    if (has_policy) {
      const RecomputeScope scope(rg::policies::recompute_all());
      y = rg::sum(rg::exp(rg::sin(x)));
    } else {
      y = rg::sum(checkpoint([&] { return rg::exp(rg::sin(x)); }));
    }
    const Tensor first = rg::autograd::grad({y}, {x}, {}, true)[0];
    const int64_t before = live();
    for (int i = 0; i < 3; ++i) CHECK(same_bits(rg::autograd::grad({y}, {x}, {}, true)[0], first));
    CHECK(live() == before);
  }
}

TEST_CASE("57: all products saved but the second") {
  const Tensor w = shifted_wave(64, 0.3).view({8, 8}).requires_grad_();
  int products = 0;
  const rg::RecomputePolicy policy = [&](const rg::PolicyCall& call) -> rg::PolicyAnswer {
    if (call.op != "mm") return false;
    return ++products != 2;
  };
  const auto f = [&] {
    Tensor h = w;
    for (int i = 0; i < 4; ++i) h = rg::mm(rg::cos(h), w);
    return rg::sum(rg::sin(h));
  };
  f().backward();
  const Tensor want = w.grad();
  w.set_grad({});
  Tensor y;
  {
    const RecomputeScope scope(policy);
    y = f();
  }
  Calls calls;
  y.backward();
  CHECK(same_bits(w.grad(), want));
  CHECK(products == 4);
  CHECK(calls.count("mm") == 1);  // cos of the second product needs it
}

TEST_CASE("65: a policy that recomputes does not repeat effects") {
  const Tensor x = leaf(20);
  int hooks = 0;
  Tensor y;
  Counting::calls = 0;
  {
    const RecomputeScope scope([](const rg::PolicyCall&) { return CheckpointPolicy::must_recompute; });
    const Tensor h = rg::exp(x);
    h.register_hook([&](const Tensor& g) {
      ++hooks;
      return g;
    });
    y = rg::sum(rg::sin(Counting::apply(h)) * rg::rand({20}));
  }
  const Tensor next = rg::rand({2});
  y.backward();
  CHECK(hooks == 1);
  CHECK(Counting::calls == 1);
  CHECK_FALSE(same_bits(rg::rand({2}), next));
}

TEST_CASE("66: what a policy keeps passes through the pair that it names, and no other") {
  const Tensor x = leaf(500);
  int packs = 0;
  const auto pair = rg::saved_tensor_hooks(
      [&](const Tensor& t) {
        ++packs;
        return t.clone();
      },
      [](const Tensor& t) { return t; });
  const auto run = [&](const rg::RecomputePolicy& policy) {
    packs = 0;
    x.set_grad({});
    Tensor y;
    {
      const RecomputeScope scope(policy);
      y = rg::sum(rg::cos(rg::checkpoint_name(rg::exp(rg::sin(x)), "e")));
    }
    y.backward();
    return packs;
  };
  CHECK(run(rg::policies::save_names({"e"})) == 0);
  const Tensor want = x.grad();
  CHECK(run(rg::policies::offload_names({"e"}, pair)) == 1);
  CHECK(same_bits(x.grad(), want));
}
