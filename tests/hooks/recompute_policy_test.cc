// RecomputeScope: what policies keep, in which order calls run again, and what is live meanwhile.
#include "hooks/recompute_policy.h"

#include <catch2/catch.hpp>
#include <thread>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/hooks/pairs.h"
#include "tests/hooks/regions.h"

namespace rg = retrograd;
using rg::CheckpointPolicy;
using rg::RecomputeScope;
using rg::Tensor;
using rg::Tensors;
using rg::testing::Calls;
using rg::testing::in_modes;
using rg::testing::live;
using rg::testing::same_bits;
using rg::testing::shifted_wave;

namespace {

std::string error_of(const std::function<void()>& f) {
  std::string text;
  rg::category_of(f, &text);
  return text;
}

rg::RecomputePolicy only(std::string op, CheckpointPolicy policy) {
  return [op = std::move(op), policy](const rg::PolicyCall& call) {
    return call.op == op ? policy : CheckpointPolicy::prefer_recompute;
  };
}

// The gradients of loss(x) with policies, from outermost to innermost, and without.
template <class F>
void check_gradients(const F& f, const Tensor& at, std::vector<rg::RecomputePolicy> list) {
  const Tensor plain = at.detach().requires_grad_(), x = at.detach().requires_grad_();
  rg::manual_seed(3);
  f(plain).backward();
  Tensor loss;
  {
    rg::manual_seed(3);
    std::vector<std::unique_ptr<RecomputeScope>> scopes;
    for (auto& policy : list) scopes.push_back(std::make_unique<RecomputeScope>(policy));
    loss = f(x);
  }
  loss.backward();
  CHECK(same_bits(x.grad(), plain.grad()));
}

}  // namespace

TEST_CASE("70, 71: the example of the seed: four saves of seven calls") {
  const auto f = [](const Tensor& x) {
    Tensor y = rg::cos(rg::sin(x));
    for (int i = 0; i < 4; ++i) y = y * 10.0;
    return rg::cos(rg::sin(y));
  };
  in_modes([&](const auto& backward) {
    const Tensor x = shifted_wave(1000).requires_grad_(), plain = x.detach().requires_grad_();
    rg::sum(f(plain)).backward();
    const int64_t bytes = x.nbytes();
    for (int step = 0; step < 2; ++step) {
      x.set_grad({});
      const int64_t before = live();
      Tensor y;
      {
        RecomputeScope scope(rg::policies::recompute_all());
        y = f(x);
      }
      CHECK(live() == before + bytes);  // y
      Tensor loss = rg::sum(y);
      y.reset();
      backward(loss);
      loss.reset();
      CHECK(live() == before + bytes);  // .grad
      CHECK(same_bits(x.grad(), plain.grad()));
    }
  });
  const Tensor x = shifted_wave(1000).requires_grad_();
  Tensor y;
  {
    RecomputeScope scope(rg::policies::recompute_all());
    y = f(x);
  }
  Calls calls;
  rg::sum(y).backward();
  CHECK(calls.names == std::vector<std::string>{"sin", "cos", "mul", "mul", "mul", "mul", "sin"});

  {
    RecomputeScope scope(rg::policies::recompute_all());
    RecomputeScope inner(rg::policies::must_save_all());
    y = f(x);
  }
  calls.names.clear();
  rg::sum(y).backward();
  CHECK(calls.names.empty());
}

TEST_CASE("products are saved, and the calls between them run again") {
  const Tensor x = shifted_wave(4096).view({64, 64}).requires_grad_(),
               w = shifted_wave(4096, 0.1).view({64, 64});
  const auto f = [&] { return rg::sin(rg::mm(rg::cos(x), w)); };
  const auto backward_of = [&](const rg::RecomputePolicy& policy) {
    Tensor y;
    const int64_t before = live();
    {
      RecomputeScope scope(policy);
      y = rg::sum(f());
    }
    const int64_t kept = live() - before;
    Calls calls;
    y.backward();
    return std::pair(kept / (64 * 64 * 4), calls.names);
  };
  CHECK(backward_of(rg::policies::recompute_all()) ==
        std::pair(int64_t{0}, std::vector<std::string>{"cos", "mm"}));
  for (const rg::RecomputePolicy& saves_mm :
       {rg::policies::save_matrix_products(), only("mm", CheckpointPolicy::must_save),
        rg::RecomputePolicy([](const rg::PolicyCall& c) { return c.op == "mm"; })})  // bools are policies
    CHECK(backward_of(saves_mm) == std::pair(int64_t{1}, std::vector<std::string>{}));
}

TEST_CASE("72: only what leads to the asked value runs, and waits for its last use") {
  // A <- B <- C <- D (saved), B <- E (saved)
  const Tensor x = shifted_wave(1000).requires_grad_();
  Tensor d, e;
  {
    RecomputeScope scope(rg::policies::recompute_all());
    const Tensor a = x * 2.0, b = a + 1.0, c = b * 3.0;
    d = rg::exp(c);
    e = rg::tanh(b);
  }
  const Tensor sd = rg::sum(d), se = rg::sum(e);
  d.reset(), e.reset();
  Calls calls;
  rg::autograd::grad({sd}, {x}, {}, true);
  CHECK(calls.names == std::vector<std::string>{"mul", "add", "mul", "exp"});
  calls.names.clear();
  rg::autograd::grad({se}, {x}, {}, true);
  CHECK(calls.names == std::vector<std::string>{"mul", "add", "tanh"});
  calls.names.clear();
  (sd + se).backward();  // tanh was made last: its value is asked for first
  CHECK(calls.names == std::vector<std::string>{"mul", "add", "tanh", "mul", "exp"});
}

TEST_CASE("73: policies from outermost to innermost") {
  const Tensor x = shifted_wave(8).requires_grad_();
  using P = CheckpointPolicy;
  const auto recomputes_sin = [&](std::vector<P> list) {
    Tensor y;
    {
      std::vector<std::unique_ptr<RecomputeScope>> scopes;
      for (const P policy : list)
        scopes.push_back(
            std::make_unique<RecomputeScope>([policy](const rg::PolicyCall&) { return policy; }));
      y = rg::sum(rg::exp(rg::sin(x)));
    }
    Calls calls;
    y.backward();
    return calls.count("sin") == 1;
  };
  CHECK(recomputes_sin({P::prefer_recompute}));
  CHECK(!recomputes_sin({P::prefer_save}));
  CHECK(!recomputes_sin({P::prefer_recompute, P::prefer_save}));
  CHECK(recomputes_sin({P::prefer_save, P::prefer_recompute}));
  CHECK(!recomputes_sin({P::must_save, P::prefer_recompute}));
  CHECK(recomputes_sin({P::must_recompute, P::prefer_save}));
  const std::string text = error_of([&] { recomputes_sin({P::must_recompute, P::must_save}); });
  CHECK(text.find("conflicting policies") != std::string::npos);
  CHECK(text.find("sin") != std::string::npos);
  CHECK(text.find("recompute_policy_test.cc") != std::string::npos);
  CHECK(!rg::RegionLog::is_open());
}

TEST_CASE("75: attributes, several results, writes in place and draws survive") {
  const Tensor x = shifted_wave(60).view({3, 4, 5});
  const auto f = [](const Tensor& in) {
    const Tensor h = rg::softmax(in * 2.0, 1);
    const Tensors parts = rg::split(h, 2, 1);
    Tensor sorted = rg::sort(parts[0], 2, true).values;
    Tensor v = rg::clone(rg::exp(parts[1]));
    v.mul_(3.0);
    v.select(0, 1).copy_(rg::sin(sorted.select(0, 2)));
    return rg::sum(rg::tanh(v) * rg::dropout(sorted, 0.4, true)) + rg::sum(rg::log_softmax(v, 0) * v);
  };
  check_gradients(f, x, {rg::policies::recompute_all()});
  check_gradients(f, x, {rg::policies::save_matrix_products()});
  check_gradients(f, x, {only("softmax", CheckpointPolicy::must_save)});
  check_gradients(f, x, {only("sort", CheckpointPolicy::must_save)});
  check_gradients(f, x, {only("exp", CheckpointPolicy::must_save)});
  check_gradients(f, x, {rg::policies::recompute_all(), only("mul", CheckpointPolicy::must_save)});
}

TEST_CASE("77: a second backward, second derivatives, and threads of their own") {
  const auto f = [](const Tensor& x) { return rg::sum(rg::exp(rg::sin(rg::exp(x)))); };
  const Tensor x = shifted_wave(9).requires_grad_();
  const Tensor want = rg::autograd::grad({f(x)}, {x})[0];
  Tensor loss;
  {
    RecomputeScope scope(rg::policies::recompute_all());
    loss = f(x);
  }
  for (int i = 0; i < 3; ++i) CHECK(same_bits(rg::autograd::grad({loss}, {x}, {}, true)[0], want));
  const auto second = [&](const Tensor& y) {
    const Tensor g = rg::autograd::grad({y}, {x}, {}, std::nullopt, true)[0];
    return rg::autograd::grad({rg::sum(g * g)}, {x})[0];
  };
  CHECK(same_bits(second(loss), second(f(x))));
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const Tensor own = x.detach().requires_grad_();
      for (int i = 0; i < 20; ++i) {
        Tensor y;
        {
          RecomputeScope scope(rg::policies::recompute_all());
          y = f(own);
        }
        right += same_bits(rg::autograd::grad({y}, {own})[0], want);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 80);
}

TEST_CASE("kept tensors that were written to are named") {
  const Tensor x = shifted_wave(9).requires_grad_(), scale = shifted_wave(9);
  Tensor y;
  {
    RecomputeScope scope(rg::policies::recompute_all());
    y = rg::sum(rg::exp(x * scale));
  }
  scale.mul_(2.0);
  const std::string text = error_of([&] { y.backward(); });
  CHECK(text.find("modified in place") != std::string::npos);
  CHECK(text.find("read by mul") != std::string::npos);
}

TEST_CASE("names and pairs") {
  in_modes([](const auto& backward) {
    const Tensor w = shifted_wave(4096, 0.05).view({64, 64}).requires_grad_();
    const Tensor x = shifted_wave(4096).view({64, 64}).requires_grad_();
    const auto f = [&] {
      const Tensor h = rg::checkpoint_name(rg::mm(x, w), "ffn_in");
      return rg::sum(rg::mm(rg::gelu(h), w));
    };
    f().backward();
    const Tensor want = x.grad();
    x.set_grad({});
    int packs = 0, unpacks = 0;
    const auto pair = rg::saved_tensor_hooks([&packs](const Tensor& t) { return ++packs, rg::clone(t); },
                                             [&unpacks](const Tensor& t) { return ++unpacks, t; });
    for (const rg::RecomputePolicy& policy :
         {rg::policies::save_names({"ffn_in"}), rg::policies::offload_names({"ffn_in"}, pair)}) {
      x.set_grad({});
      Tensor loss;
      {
        RecomputeScope scope(policy);
        loss = f();
      }
      backward(loss);
      CHECK(same_bits(x.grad(), want));
    }
    CHECK(packs == 1);
    CHECK(unpacks >= 1);
    {
      RecomputeScope scope(rg::policies::save_names({"ffn_in"}));
      const Tensor loss = f();
      Calls calls;
      loss.backward();
      CHECK(calls.count("mm") == 0);
      CHECK(calls.count("gelu") == 1);
    }
  });
}

TEST_CASE("a long scope takes boundaries by itself") {
  constexpr int64_t kLength = 400;
  in_modes([](const auto& backward) {
    const Tensor x = shifted_wave(1000).requires_grad_();
    const int64_t unit = x.nbytes();
    Tensor y = x;
    const int64_t before = live();
    {
      RecomputeScope scope(rg::policies::recompute_all());
      for (int64_t i = 0; i < kLength; ++i) y = rg::sin(y);
    }
    const int64_t kept = (live() - before) / unit;
    CHECK(kept < 32);
    Tensor loss = rg::sum(y);
    y.reset();
    rg::memory::reset_peak();
    backward(loss);
    CHECK((rg::memory::stats().peak_bytes - before) / unit < 66);
    const Tensor plain = x.detach().requires_grad_();
    Tensor z = plain;
    for (int64_t i = 0; i < kLength; ++i) z = rg::sin(z);
    rg::sum(z).backward();
    CHECK(same_bits(x.grad(), plain.grad()));
  });
}

TEST_CASE("a scope that is not used, or ends by an exception, leaves nothing behind") {
  const Tensor x = shifted_wave(1000).requires_grad_();
  const int64_t before = live();
  {
    RecomputeScope scope(rg::policies::save_matrix_products());
    const Tensor y = rg::exp(rg::sin(x));
  }
  CHECK(live() == before);
  const auto thrower = [&] {
    RecomputeScope scope(
        [](const rg::PolicyCall&) -> rg::PolicyAnswer { throw std::runtime_error("policy"); });
    rg::exp(rg::sin(x));
  };
  CHECK_THROWS_AS(thrower(), std::runtime_error);
  CHECK(live() == before);
  CHECK(!rg::RegionLog::is_open());
  auto first = std::make_unique<RecomputeScope>(rg::policies::recompute_all());
  auto second = std::make_unique<RecomputeScope>(rg::policies::must_save_all());
  first.reset();  // in the order in which they were opened
  Tensor y = rg::sum(rg::exp(rg::sin(x)));
  second.reset();
  CHECK(!rg::RegionLog::is_open());
  Calls calls;
  y.backward();
  CHECK(calls.names.empty());
}
