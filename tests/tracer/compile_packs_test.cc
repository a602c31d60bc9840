// Saved-tensor hooks and compiled functions: each save is a node of the forward, each unpack one of the backward.
// Bodies run eagerly and compiled: the same events in the same order, the same bits.
#include <catch2/catch.hpp>

#include "ir/graph.h"
#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using Events = std::vector<std::string>;
using rg::Category;

// Packs a copy scaled by `factor`, and says so.
rg::RefPtr<rg::SavedTensorHooks> logging_pair(Events& events, double factor = 1) {
  return rg::saved_tensor_hooks(
      [&events, factor](const Tensor& t) {
        events.push_back("pack " + rg::to_string(t.impl().type()) + " " +
                         std::to_string(t.to_vector().at(0)));
        return t * factor;
      },
      [&events, factor](const Tensor& t) {
        events.push_back("unpack " + rg::to_string(t.impl().type()));
        return t / factor;
      });
}

struct Run {
  Events events;
  Tensors tensors;
};

void check_equal(const Run& eager, const Run& compiled) {
  CHECK(eager.events == compiled.events);
  check_same(eager.tensors, compiled.tensors);
}

Tensor model(const Tensor& x, const Tensor& w) {
  const Tensor h = rg::tanh(rg::mm(x, w));
  return rg::sum(rg::exp(h) * h) + rg::sum(x * x);
}

// Value and gradients of f(x), under a pair of its own.
template <class F>
Run run_with_pair(F&& f, const Tensor& w, int step, double factor = 1) {
  Run run;
  const Tensor x = spread({2, 3}, step).requires_grad_();
  w.set_grad({});
  Tensor y;
  {
    rg::SavedTensorHooksGuard guard(logging_pair(run.events, factor));
    y = f(x);
  }
  run.events.push_back("backward");
  y.backward();
  run.tensors = {y.detach(), x.grad(), w.grad()};
  return run;
}

}  // namespace

TEST_CASE("a compiled function packs and unpacks as the function does, and new pairs need no new capture") {
  const Tensor w = parameter({3, 4}, 7);
  const auto body = [&](const Tensor& x) { return model(x, w); };
  auto compiled = rg::compile(body);
  for (int i = 0; i < 3; ++i) {
    INFO("step " << i);
    const Run eager = run_with_pair(body, w, i, 1 + i);
    REQUIRE(eager.events.size() > 8);
    check_equal(eager, run_with_pair(compiled, w, i, 1 + i));
  }
  CHECK(compiled.stats().captures == 1);
  CHECK(compiled.stats().hits == 2);
  CHECK(compiled.stats().eager == 0);
  INFO(compiled.graph()->print() << compiled.backward_graph()->print());
  const int packs = count_nodes(*compiled.graph(), "pack");
  CHECK(packs == 8);
  CHECK(count_nodes(*compiled.backward_graph(), "unpack") == packs);
}

TEST_CASE("a pair that comes or goes is another recording, and so is another traceable one") {
  const Tensor w = parameter({3, 4}, 7);
  auto compiled = rg::compile([&](const Tensor& x) { return model(x, w); });
  const Tensor x = parameter({2, 3}, 1);
  compiled(x).backward();
  CHECK(count_nodes(*compiled.graph(), "pack") == 0);
  Events events;
  {
    rg::SavedTensorHooksGuard guard(logging_pair(events));
    compiled(x).backward();
  }
  CHECK(compiled.last_capture_reason() == "there is a default pair of saved-tensor hooks");
  compiled(x).backward();
  CHECK(compiled.stats().captures == 2);
  const auto half = [](double factor) {
    return rg::saved_tensor_hooks([factor](const Tensor& t) { return (t * factor).to(rg::kFloat16); },
                                  [factor](const Tensor& t) { return t.to(rg::kFloat32) / factor; }, true);
  };
  for (const auto& pair : {half(1), half(2)}) {
    rg::SavedTensorHooksGuard guard(pair);
    for (int i = 0; i < 2; ++i) compiled(x).backward();
  }
  CHECK(compiled.last_capture_reason().find("traceable pair") != std::string::npos);
  CHECK(compiled.stats().captures == 4);
  CHECK(compiled.stats().hits == 3);
}

TEST_CASE("a traceable pair is part of both graphs") {
  const Tensor w = parameter({3, 4}, 7);
  int calls = 0;
  const auto pair = rg::saved_tensor_hooks(
      [&](const Tensor& t) {
        ++calls;
        return t.to(rg::kFloat16);
      },
      [&](const Tensor& t) {
        ++calls;
        return t.to(rg::kFloat32);
      },
      true);
  const auto body = [&](const Tensor& x) { return model(x, w); };
  auto compiled = rg::compile(body);
  const auto run = [&](auto&& f, int step) {
    const Tensor x = spread({2, 3}, step).requires_grad_();
    w.set_grad({});
    rg::SavedTensorHooksGuard guard(pair);
    f(x).backward();
    return Tensors{x.grad(), w.grad()};
  };
  for (int i = 0; i < 3; ++i) check_same(run(body, i), run(compiled, i));
  CHECK(calls == 3 * 16 + 16);  // the compiled function calls it once only
  CHECK(compiled.stats().captures == 1);
  CHECK(count_nodes(*compiled.graph(), "pack") == 0);
  CHECK(count_nodes(*compiled.graph(), "to") > 0);
  CHECK(count_nodes(*compiled.backward_graph(), "to") > 0);
}

TEST_CASE("a traceable pair that looks at data is an error that names the line") {
  auto compiled = rg::compile([](const Tensor& x) { return rg::sum(x * x); });
  rg::SavedTensorHooksGuard guard(
      rg::saved_tensor_hooks([](const Tensor& t) { return rg::sum(t).item<double>() > 0 ? t : t * 1.0; },
                             [](const Tensor& t) { return t; }, true));
  CHECK_THROWS_WITH(compiled(leaf({1, 2})), Catch::Contains("compile_packs_test.cc"));
}

TEST_CASE("a pair that the function opens, inside another one") {
  Events outer, inner;
  const auto pair = logging_pair(inner, 2);
  const auto body = [&](const Tensor& x) {
    const Tensor a = rg::exp(x);
    rg::SavedTensorHooksGuard guard(pair);
    return rg::sum(rg::sin(a) * x);
  };
  auto compiled = rg::compile(body);
  const auto run = [&](auto&& f, int step) {
    outer.clear(), inner.clear();
    const Tensor x = parameter({rg::Dim(3)}, step);
    rg::SavedTensorHooksGuard guard(logging_pair(outer, 4));
    f(x).backward();
    Run made{outer, {x.grad()}};
    made.events.insert(made.events.end(), inner.begin(), inner.end());
    return made;
  };
  for (int i = 0; i < 3; ++i) check_equal(run(body, i), run(compiled, i));
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("payloads of any type, kept as long as the results live") {
  auto table = std::make_shared<std::map<int, Tensor>>();
  int next = 0, dropped = 0;
  struct Key {
    std::shared_ptr<int> number;
  };
  const auto pair = rg::saved_tensor_hooks(
      [&, table](const Tensor& t) {
        (*table)[next] = t;
        return Key{std::shared_ptr<int>(new int(next++), [&](int* p) {
          ++dropped;
          delete p;
        })};
      },
      [table](const Key& k) { return table->at(*k.number); });
  auto compiled = rg::compile([](const Tensor& x) { return rg::sum(rg::exp(x) * x); });
  for (int i = 0; i < 2; ++i) {
    const Tensor x = parameter({rg::Dim(4)}, i);
    next = dropped = 0;
    table->clear();
    Tensor y;
    {
      rg::SavedTensorHooksGuard guard(pair);
      y = compiled(x);
    }
    CHECK(next == 3);
    CHECK(dropped == 0);
    y.backward({}, true);
    const std::vector<double> once = values(x.grad());
    y.backward();
    CHECK(dropped == 3);
    const Tensor again = x.detach().clone().requires_grad_();
    rg::sum(rg::exp(again) * again).backward();
    CHECK(once == values(again.grad()));
    CHECK(category_of([&] { y.backward(); }) == Category::backward_twice_freed);
  }
}

TEST_CASE("errors of pack and unpack hooks come out, and what was done before stays") {
  const auto body = [](const Tensor& buffer, const Tensor& x) {
    {
      rg::NoGradGuard off;
      buffer.add_(x.detach());
    }
    return rg::sum(rg::exp(x) * x);
  };
  auto compiled = rg::compile(body);
  const auto run = [&](auto&& f, int fail_at, bool in_unpack) {
    const Tensor x = leaf({1, 2}), buffer = rg::zeros({2});
    int calls = 0;
    Events events;
    const auto count = [&, fail_at](bool fails) {
      if (fails && ++calls == fail_at) throw std::out_of_range("no room");
    };
    rg::SavedTensorHooksGuard guard(
        [&](const Tensor& t) {
          count(!in_unpack);
          events.push_back("pack");
          return t;
        },
        [&](const Tensor& t) {
          count(in_unpack);
          events.push_back("unpack");
          return t;
        });
    CHECK_THROWS_WITH(f(buffer, x).backward(), Catch::Contains("no room"));
    return Run{events, {buffer, x.grad()}};
  };
  for (int i = 0; i < 2; ++i)
    for (const bool in_unpack : {false, true})
      for (int at : {1, 2, 3}) {
        INFO("in unpack " << in_unpack << " at " << at);
        check_equal(run(body, at, in_unpack), run(compiled, at, in_unpack));
      }
}

TEST_CASE("after an unpack hook has thrown, a backward finds what it would find eagerly") {
  const Tensor w = parameter({3, 4}, 7);
  const auto body = [&](const Tensor& x) { return model(x, w); };
  auto compiled = rg::compile(body);
  int unpacks = 0;
  // What two backwards give, of which the first fails at unpack number `at`.
  const auto attempts = [&](auto f, int at) {
    const Tensor x = spread({2, 3}).requires_grad_();
    w.set_grad({});
    unpacks = 0;
    Tensor y;
    {
      rg::SavedTensorHooksGuard guard(rg::saved_tensor_hooks([](const Tensor& t) { return t; },
                                                             [&unpacks, at](const Tensor& t) {
                                                               if (unpacks++ == at)
                                                                 throw std::runtime_error("no");
                                                               return t;
                                                             }));
      y = f(x);
    }
    Run run;
    for (int i = 0; i < 2; ++i) try {
        y.backward();
        run.events.push_back("done");
        run.tensors = {x.grad(), w.grad()};
      } catch (const rg::Error& e) {
        run.events.emplace_back(rg::to_string(e.category()));
      } catch (const std::runtime_error& e) {
        run.events.push_back(e.what());
      }
    return run;
  };
  attempts(body, -1), attempts(compiled, -1);
  const int all = unpacks;
  REQUIRE(all > 5);
  for (int at = 0; at < all; ++at) {
    INFO("unpack " << at);
    const Run eager = attempts(body, at), found = attempts(compiled, at);
    CHECK(eager.events == found.events);
    if (at == 0) check_same(eager.tensors, found.tensors);
  }
}

TEST_CASE("a backward that runs out of memory can be repeated, or says what is gone") {
  const Tensor w = rg::randn({8, 8}).requires_grad_(), x = rg::randn({8, 8}).requires_grad_();
  auto compiled = rg::compile([&](const Tensor& a) {
    Tensor y = a;
    for (int i = 0; i < 5; ++i) y = rg::tanh(rg::mm(y, w));
    return rg::sum(y);
  });
  const auto gradients = [&](const Tensor& y) {
    for (const Tensor& leaf : {w, x}) leaf.set_grad({});
    y.backward();
    return Tensors{w.grad(), x.grad()};
  };
  const Tensors expected = gradients(compiled(x));
  int repeated = 0, gone = 0;
  for (bool failed = true; failed;) {
    const Tensor y = compiled(x);
    rg::memory::fail_allocation_after(repeated + gone + 1);
    failed = false;
    try {
      gradients(y);
    } catch (const rg::OutOfMemory&) {
      failed = true;
    }
    rg::memory::fail_allocation_after(0);
    if (failed) try {
        check_same(gradients(y), expected);
        ++repeated;
      } catch (const rg::Error& e) {
        CHECK(e.category() == Category::backward_twice_freed);
        ++gone;
      }
  }
  CHECK(repeated > 0);
  CHECK(gone > 0);
}

TEST_CASE("a compiled function frees saved values at their last use, also where user code unpacks them") {
  const int64_t kBytes = 4 << 14;
  const Tensor w = rg::randn({1 << 14}).requires_grad_();
  const auto body = [&](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 8; ++i) y = rg::tanh(y * w);
    return rg::sum(y);
  };
  auto compiled = rg::compile(body);
  const auto peak_of = [&](auto f) {
    w.set_grad(rg::zeros_like(w));
    const Tensor x = rg::randn({1 << 14}).requires_grad_();
    rg::SavedTensorHooksGuard guard(rg::saved_tensor_hooks([](const Tensor& t) { return t * 2.0; },
                                                           [](const Tensor& t) { return t / 2.0; }));
    const Tensor y = f(x);
    rg::memory::reset_peak();
    const int64_t before = rg::memory::stats().live_bytes;
    y.backward();
    return rg::memory::stats().peak_bytes - before;
  };
  peak_of(compiled);
  CHECK(peak_of(compiled) <= peak_of(body));
  CHECK(peak_of(compiled) <= 6 * kBytes);
}

TEST_CASE("an unpack hook that gives another type is refused as in an eager backward") {
  const auto body = [](const Tensor& x) { return rg::sum(x * x); };
  auto compiled = rg::compile(body);
  std::vector<std::string> texts;
  const auto run = [&](auto&& f) {
    rg::SavedTensorHooksGuard guard([](const Tensor& t) { return t; },
                                    [](const Tensor& t) { return t.to(rg::kFloat64); });
    const Tensor y = f(leaf({1, 2}));
    try {
      y.backward();
      FAIL("no error");
    } catch (const rg::Error& e) {
      CHECK(e.category() == Category::hook_bad_result);
    }
  };
  run(body);
  run(compiled);
  run(compiled);
}

TEST_CASE("writes after a save: seen where the payload is the memory itself") {
  const auto inside = [](const Tensor& x) {
    const Tensor y = rg::exp(x);
    y.mul_(2.0);
    return rg::sum(y);
  };
  const auto identity = [](const Tensor& t) { return t; };
  const auto copy = [](const Tensor& t) { return t.clone(); };
  const auto run = [&](auto&& f, const auto& pack) {
    rg::SavedTensorHooksGuard guard(pack, identity);
    const Tensor x = leaf({1, 2});
    const auto category = category_of([&] { f(x).backward(); });
    if (category) CHECK(*category == Category::version_mismatch);
    return x.grad();
  };
  auto compiled = rg::compile(inside);
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(run(inside, identity).defined());
    CHECK_FALSE(run(compiled, identity).defined());
    check_same({run(inside, copy)}, {run(compiled, copy)});
  }
  // after the function, to its result and to its argument
  auto two = rg::compile([](const Tensor& a) { return rg::exp(a); });
  rg::SavedTensorHooksGuard guard(identity, identity);
  const Tensor x = leaf({1, 2}), y = two(x);
  y.detach().add_(rg::ones({2}));
  CHECK(category_of([&] { rg::sum(y).backward(); }) == Category::version_mismatch);
  auto square = rg::compile([](const Tensor& a) { return a * a; });
  const Tensor a = leaf({1, 2}) * 1.0, s = square(a);
  a.detach().add_(rg::ones({2}));
  CHECK(category_of([&] { rg::sum(s).backward(); }) == Category::version_mismatch);
}

TEST_CASE("arguments and buffers that the function writes to: hooks find what they would eagerly") {
  const Tensor buffer = rg::zeros({3});
  std::vector<double> seen;
  const auto body = [&](const Tensor& y, const Tensor& x) {
    {
      rg::NoGradGuard off;
      buffer.add_(x.detach());
    }
    y.mul_(x);
    const Tensor z = rg::exp(y) * x;
    {
      rg::NoGradGuard off;
      buffer.mul_(2.0);
    }
    return rg::sum(z * z);
  };
  auto compiled = rg::compile(body);
  const auto run = [&](auto&& f, int step) {
    buffer.zero_();
    seen.clear();
    const Tensor x = parameter({rg::Dim(3)}, step), y = x * 1.5;
    Tensor loss;
    {
      rg::SavedTensorHooksGuard guard(
          [&](const Tensor& t) {
            for (double v : buffer.to_vector()) seen.push_back(v);
            return t.clone();
          },
          [](const Tensor& t) { return t; });
      loss = f(y, x);
    }
    loss.backward();
    std::vector<double> found = seen;
    return std::pair(found, Tensors{loss.detach(), y.detach(), buffer.clone(), x.grad()});
  };
  for (int i = 0; i < 3; ++i) {
    const auto [eager_seen, eager] = run(body, i);
    const auto [compiled_seen, found] = run(compiled, i);
    CHECK(eager_seen == compiled_seen);
    check_same(eager, found);
  }
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("gradients of gradients pass straight through a pair, opaque or traceable") {
  const auto body = [](const Tensor& x) { return rg::sum(rg::exp(x) * rg::sin(x) * x); };
  for (const bool traceable : {false, true}) {
    auto compiled = rg::compile(body);
    int packs = 0;
    const auto pair = rg::saved_tensor_hooks(
        [&](const Tensor& t) {
          ++packs;
          return t.to(rg::kFloat16);
        },
        [](const Tensor& t) { return t.to(rg::kFloat32); }, traceable);
    const auto run = [&](auto&& f, int step) {
      const Tensor x = parameter({rg::Dim(4)}, step);
      Tensor y;
      {
        rg::SavedTensorHooksGuard guard(pair);
        y = f(x);
      }
      const Tensor dx = rg::autograd::grad({y}, {x}, {}, {}, true)[0];
      return Tensors{dx.detach(), rg::autograd::grad({rg::sum(dx * dx)}, {x})[0]};
    };
    for (int i = 0; i < 2; ++i) {
      packs = 0;
      const Tensors eager = run(body, i);
      const int eager_packs = packs;
      packs = 0;
      const Tensors found = run(compiled, i);
      CHECK(same_bits(eager[0], found[0]));
      // the second derivative recomputes the forward, and has no rounded values
      for (size_t k = 0; k < 4; ++k) CHECK(values(found[1])[k] == Approx(values(eager[1])[k]).epsilon(2e-3));
      CHECK(packs == (traceable && i ? 0 : eager_packs));
    }
  }
}

TEST_CASE("stock pairs, and unpacked values that lie otherwise than what was packed") {
  const Tensor w = parameter({40, 30}, 3);
  const auto body = [&](const Tensor& x) {
    const Tensor t = rg::transpose(x, 0, 1);
    return rg::sum(rg::reshape(rg::mm(t, w), {-1}) * rg::reshape(rg::exp(rg::mm(t, w)), {-1}));
  };
  const auto run = [&](auto&& f, const rg::RefPtr<rg::SavedTensorHooks>& pair, int step) {
    const Tensor x = spread({40, 50}, step).requires_grad_();
    w.set_grad({});
    rg::SavedTensorHooksGuard guard(pair);
    const Tensor y = f(x);
    y.backward();
    return Tensors{y.detach(), x.grad(), w.grad()};
  };
  auto compiled = rg::compile(body);
  for (const auto& pair : {rg::save_on_cpu(), rg::save_as_half({w}), rg::save_as_int8({w}),
                           rg::saved_tensor_hooks([](const Tensor& t) { return t.contiguous(); },
                                                  [](const Tensor& t) { return t; })})
    for (int i = 0; i < 2; ++i) check_same(run(body, pair, i), run(compiled, pair, i));
  CHECK(compiled.stats().captures == 4);  // one for pure pairs, one for others, one for each that is traceable
}

TEST_CASE("a step with a pair around it, and one inside") {
  const Tensor w = parameter({3, 4}, 7), v = parameter({3, 4}, 7);
  rg::optim::SGD plain({w}, {.lr = 0.1}), recorded({v}, {.lr = 0.1});
  Events events;
  const auto body = [&](rg::optim::SGD& optimizer, const Tensor& parameter, const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = model(x, parameter);
    loss.backward();
    optimizer.step();
    return loss;
  };
  auto step = rg::compile_step([&](const Tensor& x) { return body(recorded, v, x); });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = spread({2, 3}, i);
    Run eager, compiled;
    {
      rg::SavedTensorHooksGuard guard(logging_pair(eager.events, 2));
      eager.tensors = {body(plain, w, x).detach()};
    }
    {
      rg::SavedTensorHooksGuard guard(logging_pair(compiled.events, 2));
      compiled.tensors = {step(x)};
    }
    eager.tensors.insert(eager.tensors.end(), {w.detach().clone(), w.grad()});
    compiled.tensors.insert(compiled.tensors.end(), {v.detach().clone(), v.grad()});
    check_equal(eager, compiled);
  }
  CHECK(step.stats().captures == 1);
  CHECK(step.stats().eager == 0);
}

TEST_CASE(
    "nothing is packed without gradients, and what forward mode or anomaly mode look at runs as it is") {
  auto compiled = rg::compile([](const Tensor& x) { return rg::sum(x * x); });
  Events events;
  rg::SavedTensorHooksGuard guard(logging_pair(events));
  {
    rg::NoGradGuard off;
    compiled(leaf({1, 2}));
  }
  CHECK(events.empty());
  CHECK(compiled.stats().captures == 1);
  {
    rg::autograd::DetectAnomalyGuard anomaly;
    compiled(leaf({1, 2})).backward();
  }
  CHECK(compiled.stats().eager == 1);
  CHECK(compiled.last_eager_reason() == "anomaly mode is on");
  CHECK(events.size() == 4);
}
