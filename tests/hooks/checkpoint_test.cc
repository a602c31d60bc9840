// checkpoint: what is dropped, recomputed, and kept, in eager and captured backwards.
// Counts of op calls, and values against PyTorch: conformance suite checkpoint. Numbers are those of the scenarios in
// checkpoint_scenarios_test.cc.
#include "hooks/checkpoint.h"

#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/hooks/pairs.h"
#include "tests/hooks/regions.h"

namespace rg = retrograd;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;
using rg::testing::Calls;
using rg::testing::in_modes;
using rg::testing::live;
using rg::testing::same_bits;
using rg::testing::shifted_wave;
using rg::testing::there_and_back;

namespace {

Tensor layer(const Tensor& x, const Tensor& w) { return rg::tanh(rg::mm(rg::gelu(x), w)); }

}  // namespace

TEST_CASE("a region keeps its inputs, and nothing of what it computes") {
  in_modes([](const auto& backward) {
    const Tensor w = shifted_wave(10000).view({100, 100}).requires_grad_();
    const Tensor x = shifted_wave(10000, 0.3).view({100, 100}).requires_grad_();
    rg::sum(layer(layer(x, w), w)).backward();
    const Tensor want_x = x.grad(), want_w = w.grad();
    for (int step = 0; step < 3; ++step) {
      x.set_grad({});
      w.set_grad({});
      Calls calls;
      const int64_t before = live();
      const Tensor y = rg::checkpoint([&](const Tensor& in) { return layer(layer(in, w), w); }, x);
      CHECK(live() == before + y.nbytes());
      CHECK(calls.recomputations == 0);
      backward(rg::sum(y));
      CHECK(calls.recomputations == 1);
      CHECK(same_bits(x.grad(), want_x));
      CHECK(same_bits(w.grad(), want_w));
    }
  });
}

TEST_CASE("a backward through half of the records, and a second one, recompute again") {
  in_modes([](const auto& backward) {
    const Tensor x = shifted_wave(50).requires_grad_();
    Calls calls;
    Tensor a, b;
    rg::checkpoint([&] {
      a = rg::exp(rg::sin(x));
      b = rg::cos(a);
    });
    const Tensors only = rg::autograd::grad({rg::sum(a)}, {x}, {}, true);
    CHECK(calls.recomputations == 1);
    const int64_t before = live();
    const Tensors again = rg::autograd::grad({rg::sum(a)}, {x}, {}, true);
    CHECK(calls.recomputations == 2);
    CHECK(live() == before + again[0].nbytes());  // no recomputed value is left
    CHECK(same_bits(only[0], again[0]));
    backward(rg::sum(a) + rg::sum(b));
    CHECK(calls.recomputations == 3);
    CHECK(category_of([&] { rg::sum(b).backward(); }) == rg::Category::backward_twice_freed);
    const Tensor plain = x.detach().requires_grad_();
    const Tensor pa = rg::exp(rg::sin(plain));
    (rg::sum(pa) + rg::sum(rg::cos(pa))).backward();
    CHECK(same_bits(x.grad(), plain.grad()));
  });
}

TEST_CASE("inputs go with the last record of the region") {
  in_modes([](const auto& backward) {
    const Tensor x = shifted_wave(1000).requires_grad_();
    const int64_t before = live();
    Tensor h = rg::sin(x);
    const int64_t bytes = h.nbytes();
    Tensor y = rg::sum(rg::checkpoint([&] { return rg::exp(rg::cos(h)); }));
    h.reset();
    CHECK(live() >= before + bytes);  // h is an input
    backward(y);
    y.reset();
    CHECK(live() == before + x.grad().nbytes());

    h = rg::sin(x);
    y = rg::sum(rg::checkpoint([&] { return rg::exp(rg::cos(h)); }));
    h.reset();
    y.reset();  // no backward
    CHECK(live() == before + x.grad().nbytes());
  });
}

TEST_CASE("41, 68: writes in place, views and draws of a region are recomputed") {
  in_modes([](const auto& backward) {
    const auto function = [](const Tensor& x) {
      Tensor h = rg::sin(x);
      h.mul_(2.0);
      h.select(0, 1).add_(rg::cos(x.select(0, 2)));
      Tensor buffer = rg::zeros({4, 5});
      buffer.narrow(0, 1, 2).copy_(h.narrow(0, 0, 2));
      h.t().select(0, 3).mul_(rg::rand({4}));
      return rg::sum(rg::exp(h) * buffer) + rg::sum(rg::dropout(h * h, 0.5, true));
    };
    for (int step = 0; step < 2; ++step) {
      const Tensor x = shifted_wave(20).view({4, 5}).requires_grad_(), plain = x.detach().requires_grad_();
      rg::manual_seed(7);
      const Tensor want = function(plain);
      const Tensor next = rg::rand({3});
      rg::manual_seed(7);
      const Tensor got = rg::checkpoint(function, x);
      CHECK(same_bits(rg::rand({3}), next));
      want.backward();
      backward(got);
      CHECK(same_bits(got, want));
      CHECK(same_bits(x.grad(), plain.grad()));
    }
  });
}

TEST_CASE("69: an input that was written to is named, unless no saved value needs it") {
  in_modes([](const auto& backward) {
    const Tensor x = shifted_wave(20).requires_grad_();
    const Tensor scale = shifted_wave(20, 0.2), running = rg::zeros({20});
    const auto region = [&] {
      return rg::checkpoint([&] {
        const Tensor h = rg::sin(x * scale);
        {
          rg::NoGradGuard no_grad;
          running.mul_(0.9).add_(h);  // as the statistics of a batch norm
        }
        return rg::exp(rg::cos(h));
      });
    };
    backward(rg::sum(region()));
    const Tensor plain = x.detach().requires_grad_();
    rg::sum(rg::exp(rg::cos(rg::sin(plain * scale)))).backward();
    CHECK(same_bits(x.grad(), plain.grad()));
    CHECK(same_bits(running, rg::sin(plain.detach() * scale)));  // written to once

    const Tensor loss = rg::sum(region());
    scale.mul_(2.0);
    std::string text;
    CHECK(category_of([&] { backward(loss); }, &text) == rg::Category::version_mismatch);
    CHECK(text.find("read by mul at ") != std::string::npos);
    CHECK(text.find("checkpoint_test.cc") != std::string::npos);
  });
}

TEST_CASE("second derivatives and forward mode through regions") {
  const auto f = [](const Tensor& x) { return rg::sin(rg::exp(rg::sin(x))); };
  const auto c = [&](const Tensor& x) { return rg::checkpoint(f, x); };
  const auto cc = [&](const Tensor& x) { return rg::checkpoint(c, x); };
  const auto grad = [](const auto& g, const Tensor& x) {
    return rg::autograd::grad({rg::sum(g(x))}, {x}, {}, std::nullopt, true)[0];
  };
  const Tensor x = shifted_wave(7).requires_grad_();
  const Tensor want1 = grad(f, x), want2 = grad([&](const Tensor&y) { return grad(f, y); }, x);
  for (const auto& g : {std::function<Tensor(const Tensor&)>(c), std::function<Tensor(const Tensor&)>(cc)}) {
    CHECK(same_bits(grad(g, x), want1));
    CHECK(same_bits(grad([&](const Tensor& y) { return grad(g, y); }, x), want2));
    const auto cg = [&](const Tensor& y) {
      return rg::checkpoint([&](const Tensor& z) { return grad(g, z); }, y);
    };
    CHECK(same_bits(grad(cg, x), want2));
  }
  const Tensor v = shifted_wave(7, 0.4);
  const auto tangent = [&](const auto& g) {
    return rg::autograd::jvp([&](const Tensors& in) { return Tensors{g(in[0])}; }, {x}, {v}).tangents[0];
  };
  CHECK(same_bits(tangent(c), tangent(f)));
}

TEST_CASE("pairs around a region pack its inputs, pairs inside take what is saved in their scope") {
  in_modes([](const auto& backward) {
    const Tensor x = shifted_wave(20).requires_grad_();
    int outside = 0, inside = 0;
    const auto counting = [](int& count) {
      return rg::saved_tensor_hooks([&count](const Tensor& t) { return ++count, t; },
                                    [](const Tensor& t) { return t; });
    };
    Calls calls;
    Tensor y;
    {
      const rg::SavedTensorHooksGuard around(counting(outside));
      const Tensor h = rg::exp(x);  // packs its result
      y = rg::checkpoint(
          [&](const Tensor& in) {
            const Tensor a = rg::cos(in) * x;  // x is captured
            const rg::SavedTensorHooksGuard within(counting(inside));
            return rg::sin(a);
          },
          h);
    }
    CHECK(outside == 2);
    CHECK(inside == 1);
    backward(rg::sum(y));
    CHECK(calls.recomputations == 1);
    const Tensor plain = x.detach().requires_grad_();
    rg::sum(rg::sin(rg::cos(rg::exp(plain)) * plain)).backward();
    CHECK(same_bits(x.grad(), plain.grad()));
  });
}

TEST_CASE("51: a region that throws leaves nothing behind") {
  const Tensor x = shifted_wave(1000).requires_grad_();
  const int64_t before = live();
  for (int i = 0; i < 3; ++i)
    CHECK_THROWS_AS(rg::checkpoint([&]() -> Tensor {
                      const Tensor h = rg::exp(rg::sin(x));
                      throw std::runtime_error("stop");
                    }),
                    std::runtime_error);
  CHECK(live() == before);
  CHECK(!rg::RegionLog::is_open());
  CHECK(rg::default_saved_tensor_hooks().get() == nullptr);
}

TEST_CASE("33: the setting of early stop") {
  const Tensor x = shifted_wave(10).requires_grad_();
  const auto started = [&](bool argument) {
    const Tensor y = rg::checkpoint([&] { return rg::clone(rg::cos(rg::sin(x))); }, {.early_stop = argument});
    Calls seen;
    rg::sum(y).backward();
    return seen.started;
  };
  CHECK(started(true) == 2);
  CHECK(started(false) == 3);
  {
    const rg::CheckpointEarlyStopGuard off(false);
    CHECK(started(true) == 3);
    const rg::CheckpointEarlyStopGuard on(true);
    CHECK(started(false) == 2);
  }
}

TEST_CASE("checkpoint_sequential: regions but for the last segment") {
  const Tensor x = shifted_wave(10).requires_grad_();
  std::vector<std::function<Tensor(const Tensor&)>> functions(7, [](const Tensor& t) { return rg::sin(t); });
  Calls calls;
  rg::sum(rg::checkpoint_sequential(functions, 3, x)).backward();
  CHECK(calls.recomputations == 2);
  const Tensor plain = x.detach().requires_grad_();
  Tensor y = plain;
  for (const auto& f : functions) y = f(y);
  rg::sum(y).backward();
  CHECK(same_bits(x.grad(), plain.grad()));
  CHECK(category_of([&] { rg::checkpoint_sequential(functions, 8, x); }) == rg::Category::bad_argument);
  CHECK(category_of([&] { rg::checkpoint_sequential(functions, 0, x); }) == rg::Category::bad_argument);
}

TEST_CASE("39: a recomputation has the casts of the forward, whatever autocast is on around the backward") {
  const Tensor x = shifted_wave(64).view({8, 8}).requires_grad_(),
               w = shifted_wave(64, 0.4).view({8, 8}).requires_grad_();
  const auto f = [&](const Tensor& t) { return rg::mm(rg::tanh(rg::mm(t, w)), w); };
  Tensors of_setting;
  for (const bool is_on : {false, true}) {
    const auto loss = [&](const Tensor& in, bool recomputes) {
      const rg::autocast scope(rg::kBFloat16, {.enabled = is_on});
      return rg::sum(rg::sin(recomputes ? rg::checkpoint(f, in) : f(in)));
    };
    const auto gradients = [&](const auto& run) {
      for (const Tensor& t : {x, w}) t.set_grad({});
      run();
      return Tensors{x.grad(), w.grad()};
    };
    const Tensors want = gradients([&] { loss(x, false).backward(); });
    rg::CompiledBackward backward = rg::compile_backward();
    const auto compiled = rg::compile([&](const Tensor& in) { return loss(in, true); });
    const auto step = rg::compile_step([&](const Tensor& in) { loss(in, true).backward(); });
    const std::function<void()> modes[] = {[&] { loss(x, true).backward(); },
                                           [&] { backward(loss(x, true)); }, [&] { compiled(x).backward(); },
                                           [&] { step(x); }};
    for (int run = 0; run < 2; ++run)
      for (const auto& mode : modes) {
        INFO("mode " << &mode - modes << ", autocast " << is_on << ", run " << run);
        const rg::autocast around(rg::kFloat16, {.enabled = !is_on});
        Calls calls;
        const Tensors got = gradients(mode);
        CHECK(same_bits(got[0], want[0]));
        CHECK(same_bits(got[1], want[1]));
        if (&mode != modes) continue;
        CHECK(calls.count("mm") == 1);
        CHECK((calls.count("to") > 0) == is_on);
      }
    for (const auto& graph : {backward.graph(), compiled.backward_graph(), step.graph()}) {
      int products = 0;
      for (const rg::ir::Node& node : graph->nodes()) {
        if (node.op->name != "mm") continue;
        ++products;
        CHECK(graph->type(node.first_result).dtype == (is_on ? rg::kBFloat16 : rg::kFloat32));
      }
      // Four of derivatives, and one of the recomputation, which a step merges with its forward's: two.
      CHECK(products == (graph == step.graph() ? 6 : 5));
    }
    CHECK(backward.stats().captures == 1);
    CHECK(compiled.stats().captures == 1);
    CHECK(step.stats().captures == 1);
    of_setting.push_back(want[0]);
  }
  CHECK_FALSE(same_bits(of_setting[0], of_setting[1]));  // casts change bits
}
