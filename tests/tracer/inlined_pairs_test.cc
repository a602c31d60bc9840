// Traceable pairs in compiled functions and steps, beside the same pairs called: the graph before inlining in the log,
// and check_pairs. What is inlined, and its bits: traceable_pairs_test.cc.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "ir/graph.h"
#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/hooks/pairs.h"

namespace rg = retrograd;
using rg::SavedTensorHooksGuard;
using rg::Tensor;
using rg::Tensors;
using rg::testing::same_bits;
using rg::testing::shifted_wave;
using Pair = rg::RefPtr<rg::SavedTensorHooks>;

namespace {

const rg::CompileOptions kChecked{.check_pairs = true};

// The messages of `trace` while it lives.
struct TraceLog {
  std::vector<std::string> graphs;
  TraceLog() {
    rg::logging::set_sink([this](rg::logging::Topic, std::string_view text) { graphs.emplace_back(text); });
    rg::logging::set_topics("trace");
  }
  ~TraceLog() {
    rg::logging::set_topics("");
    rg::logging::set_sink({});
  }
  TraceLog(const TraceLog&) = delete;
};

auto is_before() {
  return Catch::StartsWith("before the packs and unpacks of traceable pairs are inlined:\n");
}

Tensor loss_of(const Tensor& x, const Tensor& w) { return rg::sum(rg::tanh(rg::sin(x * w) * w)); }

// A step with an optimizer and draws, of which each run reads numbers.
struct Training {
  Tensor w = shifted_wave(300, 0.5).requires_grad_();
  rg::optim::AdamW optimizer{{w}, {.lr = 0.01}};
  int calls = 0;

  Tensor operator()(const Tensor& x) {
    ++calls;
    const Tensor loss = loss_of(rg::dropout(x, 0.5), w);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  }
};

// Unpacks by a number that the test changes, which a recording does not see.
Pair drifting(const double& by, std::string key = "") {
  Pair pair = rg::saved_tensor_hooks([](const Tensor& t) { return t; },
                                     [&by](const Tensor& t) { return t * by; }, true);
  pair->cache_key = std::move(key);
  return pair;
}

}  // namespace

TEST_CASE("the log shows a compiled function and its backward before and after inlining") {
  const Tensor w = shifted_wave(300, 0.5).requires_grad_();
  int calls = 0;
  const auto f = rg::compile([&](const Tensor& x) {
    ++calls;
    return loss_of(x, w);
  });
  const Tensor x = shifted_wave(300);
  TraceLog log;
  const SavedTensorHooksGuard guard(rg::save_as_half());
  f(x);
  REQUIRE(log.graphs.size() == 4);
  CHECK_THAT(log.graphs[0], is_before() && Catch::Contains("= pack") && !Catch::Contains("= to "));
  CHECK_THAT(log.graphs[1], is_before() && Catch::Contains("= unpack") && !Catch::Contains("= to "));
  CHECK_THAT(log.graphs[2], !Catch::Contains("pack") && Catch::Contains("= to "));
  CHECK_THAT(log.graphs[3], !Catch::Contains("pack") && Catch::Contains("= to "));
  CHECK(log.graphs[2] == f.graph()->print());
  CHECK(log.graphs[3] == f.backward_graph()->print());
  CHECK(calls == 2);
  f(x);
  CHECK(log.graphs.size() == 4);
  CHECK(calls == 2);
  // Sizes as symbols.
  const auto by_row = rg::compile([](const Tensor& rows) { return rg::sum(rg::sin(rows)); });
  for (int64_t n : {300, 600, 900}) by_row(shifted_wave(n).requires_grad_());
  CHECK(by_row.stats().captures == 2);
  REQUIRE(log.graphs.size() == 12);
  CHECK_THAT(log.graphs[8], is_before() && Catch::Contains("= pack"));
  CHECK_THAT(log.graphs[9], is_before() && Catch::Contains("= unpack"));
}

TEST_CASE("nothing is recorded for the log when it is off, or without traceable pairs") {
  const Tensor w = shifted_wave(300, 0.5).requires_grad_();
  int calls = 0;
  const auto loss = [&](const Tensor& x) {
    ++calls;
    return loss_of(x, w);
  };
  {
    const SavedTensorHooksGuard guard(rg::save_as_half());
    rg::compile(loss)(shifted_wave(300));
  }
  CHECK(calls == 1);
  TraceLog log;
  rg::compile(loss)(shifted_wave(300));
  CHECK(calls == 2);
  CHECK(log.graphs.size() == 2);
  const SavedTensorHooksGuard guard(rg::save_on_cpu());
  rg::compile(loss)(shifted_wave(300));
  CHECK(calls == 3);
  CHECK(log.graphs.size() == 4);
}

TEST_CASE("the log of a step changes neither its numbers nor its draws") {
  Training plain, logged;
  const auto run = [](Training& training) {
    rg::manual_seed(7);
    const auto step = rg::compile_step([&](const Tensor& x) { return training(x); });
    const SavedTensorHooksGuard guard(rg::save_as_int8());
    Tensors losses;
    for (int i = 0; i < 3; ++i) losses.push_back(step(shifted_wave(300)));
    CHECK(step.stats().captures == 1);
    return losses;
  };
  const Tensors want = run(plain);
  Tensors got;
  TraceLog log;
  got = run(logged);
  for (size_t i = 0; i < want.size(); ++i) CHECK(same_bits(got[i], want[i]));
  CHECK(same_bits(plain.w, logged.w));
  CHECK(plain.calls == 1);
  CHECK(logged.calls == 2);
  REQUIRE(log.graphs.size() == 2);
  CHECK_THAT(log.graphs[0], is_before() && Catch::Contains("= pack") && Catch::Contains("= unpack"));
  CHECK_THAT(log.graphs[1], !Catch::Contains("pack"));
}

TEST_CASE("the log says why a function cannot be shown before inlining") {
  const Tensor w = shifted_wave(300, 0.5).requires_grad_();
  const auto f = rg::compile([&](const Tensor& x) {
    const Tensor h = rg::tanh(x);
    const SavedTensorHooksGuard guard(rg::saved_tensor_hooks([h](const Tensor& t) { return t - h; },
                                                             [h](const Tensor& t) { return t + h; }, true));
    return rg::sum(rg::sin(h * w));
  });
  TraceLog log;
  f(shifted_wave(300)).backward();
  CHECK(f.stats().eager == 0);
  REQUIRE(log.graphs.size() == 3);
  CHECK_THAT(log.graphs[0],
             is_before() && Catch::Contains("not shown") && Catch::Contains("user code keeps"));
}

TEST_CASE("check_pairs: a pair that does the same in the graph passes, with eager's bits") {
  const Tensor w = shifted_wave(300, 0.5).requires_grad_();
  int packs = 0, unpacks = 0;
  const auto counted = rg::saved_tensor_hooks(
      [&](const Tensor& t) {
        ++packs;
        return std::pair(t.to(rg::kFloat16), 2);
      },
      [&](const std::pair<Tensor, int>& p) {
        ++unpacks;
        return p.first.to(rg::kFloat32);
      },
      true);
  for (const Pair& pair : {rg::save_as_half(), rg::save_as_fp8(), rg::save_as_int8({w}), counted}) {
    const auto f = rg::compile([&](const Tensor& x) { return loss_of(x, w); }, kChecked);
    const auto step = rg::compile_step([&](const Tensor& x) { loss_of(x, w).backward(); }, kChecked);
    const SavedTensorHooksGuard guard(pair);
    for (const auto& [n, is_recorded] : {std::pair(2, true), {2, false}, {5, true}, {9, false}}) {
      const Tensor x = shifted_wave(n * 300).view({n, 300});
      const auto gradient_by = [&](const auto& backward) {
        w.set_grad({});
        backward();
        return w.grad();
      };
      packs = unpacks = 0;
      const Tensor want = gradient_by([&] { loss_of(x, w).backward(); });
      CHECK((packs > 0) == (pair == counted));
      const int eager_packs = packs, eager_unpacks = unpacks;
      CHECK(same_bits(gradient_by([&] { f(x).backward(); }), want));
      CHECK(same_bits(gradient_by([&] { step(x); }), want));
      if (is_recorded) continue;
      CHECK(packs == 3 * eager_packs);
      CHECK(unpacks == 3 * eager_unpacks);
    }
    CHECK(f.stats().eager == 0);
    CHECK(step.stats().eager == 0);
    CHECK(f.stats().captures == 2);
  }
}

TEST_CASE(
    "check_pairs names pair, op, line and tensor where an unpack gives something else when it is called") {
  for (const bool is_step : {false, true}) {
    double by = 1;
    const Tensor w = shifted_wave(300, 0.5).requires_grad_();
    int line = 0;
    const auto loss = [&](const Tensor& in) {
      line = __LINE__ + 1;
      return rg::sum(rg::sin(in * w));
    };
    const auto f = rg::compile([&](const Tensor& in) { return loss(in); }, kChecked);
    const auto step = rg::compile_step([&](const Tensor& in) { loss(in).backward(); }, kChecked);
    const auto run = [&] {
      w.set_grad({});
      if (is_step)
        step(shifted_wave(300));
      else
        f(shifted_wave(300)).backward();
    };
    const SavedTensorHooksGuard guard(drifting(by, "drifting"));
    run();
    by = 2;
    const rg::Error error = rg::error_of(run);
    CHECK(error.category() == rg::Category::bad_argument);
    CHECK_THAT(error.what(), Catch::Contains("sin") && Catch::Contains("operand 0, f32[300]") &&
                                 Catch::Contains("the traceable pair 'drifting'") &&
                                 Catch::Contains("saved at inlined_pairs_test.cc:" + std::to_string(line)));
    by = 1;
    run();
    CHECK((is_step ? step.stats() : f.stats()).captures == 1);
  }
}

TEST_CASE("check_pairs finds a pack that depends on more than its argument, also of a pair of the function") {
  double by = 1;
  const auto f = rg::compile(
      [&](const Tensor& x) {
        const SavedTensorHooksGuard guard(rg::saved_tensor_hooks([&](const Tensor& t) { return t * by; },
                                                                 [](const Tensor& t) { return t; }, true));
        return rg::sum(rg::sin(x));
      },
      kChecked);
  const Tensor x = shifted_wave(300).requires_grad_();
  f(x).backward();
  by = 3;
  CHECK_THAT(rg::error_of([&] { f(x).backward(); }).what(),
             Catch::Contains("a traceable pair that has no cache_key"));
  CHECK(f.stats().captures == 1);
}

TEST_CASE("check_pairs calls the pair of the run, not that of the recording") {
  double one = 1, two = 2;
  const auto f = rg::compile([](const Tensor& x) { return rg::sum(rg::sin(x)); }, kChecked);
  const Tensor x = shifted_wave(300).requires_grad_();
  const auto run = [&](const double& by) {
    const SavedTensorHooksGuard guard(drifting(by, "by a number"));
    f(x).backward();
  };
  run(one);
  CHECK_THAT(rg::error_of([&] { run(two); }).what(), Catch::Contains("'by a number'"));
  run(one);
  CHECK(f.stats().captures == 1);
}

TEST_CASE("without check_pairs a drifting pair is not noticed, and RETROGRAD_CHECK=pairs switches it on") {
  double by = 1;
  const Tensor x = shifted_wave(300).requires_grad_();
  const auto sine = [](const Tensor& in) { return rg::sum(rg::sin(in)); };
  const auto plain = rg::compile(sine);
  setenv("RETROGRAD_CHECK", "pairs", 1);
  const auto checked = rg::compile(sine);
  unsetenv("RETROGRAD_CHECK");
  const SavedTensorHooksGuard guard(drifting(by));
  plain(x).backward(), checked(x).backward();
  by = 2;
  plain(x).backward();
  CHECK(rg::category_of([&] { checked(x).backward(); }) == rg::Category::bad_argument);
}

TEST_CASE("check_pairs: backwards that retain the graph, and gradients of gradients") {
  const Tensor x = shifted_wave(300).requires_grad_();
  const auto f = [](const Tensor& in) { return rg::sum(rg::exp(rg::sin(in))); };
  const auto checked = rg::compile(f, kChecked);
  const SavedTensorHooksGuard guard(rg::save_as_half());
  const auto gradient = [&](const Tensor& y, bool create_graph) {
    return rg::autograd::grad({y}, {x}, {}, true, create_graph)[0];
  };
  const Tensor want = gradient(f(x), false), y = checked(x);
  for (int i = 0; i < 2; ++i) CHECK(same_bits(gradient(y, false), want));
  const auto second = [&](const auto& of) { return gradient(rg::sum(gradient(of(x), true)), false); };
  CHECK(same_bits(second(checked), second(rg::compile(f))));
}

TEST_CASE("opaque hooks beside a traceable pair with a payload of several parts are recorded") {
  const Tensor w = shifted_wave(300, 0.5).requires_grad_();
  int hooks = 0;
  w.register_hook([&](const Tensor& g) {
    ++hooks;
    return g;
  });
  const auto step = rg::compile_step([&](const Tensor& x) { loss_of(x, w).backward(); });
  const SavedTensorHooksGuard guard(rg::save_as_int8());
  for (int i = 1; i <= 2; ++i) {
    step(shifted_wave(300));
    CHECK(hooks == i);
  }
  CHECK(step.stats().eager == 0);
  CHECK(step.stats().captures <= 2);
}
