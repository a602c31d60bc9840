// User code that runs inside recorded functions: hooks, callbacks and opaque functions. Whatever it may call in an
// eager backward, it may call while a plan runs; whatever it writes to, and keeps, has the same effect as eagerly.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
namespace ag = rg::autograd;
using rg::Category;
using Strings = std::vector<std::string>;

// Runs `body(log)` eagerly, in a compile_step, and in a compiled function whose own backward it is; three times each.
// Everything that it gives or notes must agree.
using Body = std::function<Tensors(Strings& log)>;
void in_all_modes(const Body& body) {
  Strings expected_log, log;
  const Tensors expected = body(expected_log);
  const auto check = [&](const char* mode, auto&& run) {
    for (int i = 0; i < 3; ++i) {
      INFO(mode << ", call " << i);
      log.clear();
      check_same(expected, run());
      CHECK(log == expected_log);
    }
  };
  auto step = rg::compile_step([&] { return body(log); });
  check("step", step);
  INFO("reason: " << step.last_eager_reason());
  auto function = rg::compile([&] { return body(log); });
  check("function", function);
}

}  // namespace

TEST_CASE("multi-grad hooks, callbacks and their like find a backward while a plan runs hooks") {
  const Tensor w = leaf({1, 2}), x = leaf({3, 4}), v = leaf({5, 6});
  Strings* noted = nullptr;
  const auto note = [&](std::string text) { noted->push_back(std::move(text)); };
  const auto in_a_backward = [&](const std::function<void()>& prepare) {
    in_all_modes([&](Strings& log) {
      noted = &log;
      for (const Tensor& t : {w, x, v}) t.set_grad({});
      prepare();
      rg::sum(x * w * 2.0).backward();
      return Tensors{w.grad().detach(), x.grad().detach()};
    });
  };
  const auto nothing = [] {};

  SECTION("a multi-grad hook on leaves, all") {
    const auto hook = [&](const Tensors& g) {
      note("all " + std::to_string(g.size()) + " " + std::to_string(g[0].to_vector()[1]));
    };
    rg::HookHandle h = ag::register_multi_grad_hook({w, x}, hook);
    in_a_backward(nothing);
    h.remove();
  }
  SECTION("a multi-grad hook on leaves one of which is not reached") {
    const auto hook = [&](const Tensors& g) { note(g[1].defined() ? "reached" : "not reached"); };
    rg::HookHandle h = ag::register_multi_grad_hook({w, v}, hook);
    in_a_backward(nothing);
    h.remove();
  }
  SECTION("a multi-grad hook, any") {
    const auto hook = [&](const Tensors& g) { note("any " + std::to_string(g[0].to_vector()[0])); };
    rg::HookHandle h = ag::register_multi_grad_hook({w, x}, hook, ag::MultiGradMode::any);
    in_a_backward(nothing);
    h.remove();
  }
  SECTION("callbacks, which may queue more, run when the backward is over and see its gradients") {
    rg::HookHandle h = x.register_hook([&](const Tensor& g) {
      note("hook");
      ag::queue_callback([&] {
        note("callback " + std::to_string(w.grad().to_vector()[0]));
        ag::queue_callback([&] { note("second callback"); });
      });
      return g;
    });
    in_a_backward(nothing);
    h.remove();
  }
  SECTION("a callback that changes gradients in place") {
    rg::HookHandle h = x.register_hook([&](const Tensor& g) {
      ag::queue_callback([&] {
        rg::NoGradGuard no_grad;
        w.grad().mul_(10.0);
      });
      return g;
    });
    in_a_backward(nothing);
    h.remove();
  }
  SECTION("a callback of a hook of an inner tensor") {
    in_all_modes([&](Strings& log) {
      noted = &log;
      x.set_grad({});
      const Tensor y = rg::exp(x);
      y.register_hook([&](const Tensor& g) {
        ag::queue_callback([&] { note("callback " + std::to_string(x.grad().to_vector()[0])); });
        return g;
      });
      rg::sum(y).backward();
      return Tensors{x.grad().detach()};
    });
  }
  SECTION("a multi-grad hook on inner tensors") {
    in_all_modes([&](Strings& log) {
      noted = &log;
      x.set_grad({});
      const Tensor a = rg::exp(x), b = rg::sin(x), c = rg::cos(x);
      ag::register_multi_grad_hook({a, b, c}, [&](const Tensors& g) {
        note("multi " + std::to_string(g[0].defined()) + std::to_string(g[1].defined()) +
             std::to_string(g[2].defined()));
      });
      rg::sum(a * b).backward();
      return Tensors{x.grad().detach()};
    });
  }
  SECTION("a backward in a hook") {
    rg::HookHandle h = x.register_hook([&](const Tensor& g) {
      rg::EnableGradGuard on;
      const Tensor z = leaf({2});
      z.register_hook([&](const Tensor& q) {
        ag::queue_callback([&] { note("inner callback"); });
        return q;
      });
      ag::register_multi_grad_hook({z}, [&](const Tensors&) { note("inner multi"); });
      rg::sum(z * z).backward();
      note("inner " + std::to_string(z.grad().to_vector()[0]));
      ag::queue_callback([&] { note("outer callback"); });
      return g;
    });
    in_a_backward(nothing);
    h.remove();
  }
  SECTION("grad, jacobian and forward mode in a hook") {
    rg::HookHandle h = x.register_hook([&](const Tensor& g) {
      rg::EnableGradGuard on;
      const Tensor z = leaf({2});
      note(std::to_string(ag::grad({z * z * z}, {z})[0].to_vector()[0]));
      const auto cube = [](const Tensors& t) { return Tensors{t[0] * t[0] * t[0]}; };
      note(std::to_string(ag::jacobian(cube, {z})[0][0].to_vector()[0]));
      note(std::to_string(ag::jvp(cube, {z}, {rg::ones({1})}).tangents[0].to_vector()[0]));
      return g;
    });
    in_a_backward(nothing);
    h.remove();
  }
  SECTION("a callback that an unpack hook queues") {
    const auto same = [](const Tensor& t) { return t; };
    const auto pair = rg::saved_tensor_hooks(same, [&](const Tensor& t) {
      note("unpack");
      ag::queue_callback([&] { note("callback " + std::to_string(x.grad().to_vector()[0])); });
      return t;
    });
    in_all_modes([&](Strings& log) {
      noted = &log;
      x.set_grad({});
      rg::SavedTensorHooksGuard guard(pair);
      rg::sum(rg::exp(x)).backward();
      return Tensors{x.grad().detach()};
    });
  }
  SECTION("two backwards of one step, each with its own callbacks") {
    rg::HookHandle h = x.register_hook([&](const Tensor& g) {
      ag::queue_callback([&] { note("after " + std::to_string(x.grad().to_vector()[0])); });
      return g;
    });
    in_all_modes([&](Strings& log) {
      noted = &log;
      x.set_grad({});
      rg::sum(x * x).backward();
      rg::sum(rg::exp(x)).backward();
      return Tensors{x.grad().detach()};
    });
    h.remove();
  }
}

TEST_CASE("a callback that throws ends the step, and the next step is as the first") {
  const Tensor x = leaf({3, 4});
  bool throws = false;
  x.register_hook([&](const Tensor& g) {
    ag::queue_callback([&] {
      if (throws) throw std::out_of_range("in a callback");
    });
    return g;
  });
  auto step = rg::compile_step([&] {
    x.set_grad({});
    rg::sum(x * x).backward();
  });
  step();
  throws = true;
  CHECK_THROWS_AS(step(), std::out_of_range);
  CHECK_THROWS_AS(ag::queue_callback([] {}), rg::Error);  // no backward is left open
  throws = false;
  step();
  CHECK(values(x.grad()) == std::vector<double>{6, 8});
}

TEST_CASE("multi-grad hooks of arguments of a step") {
  Strings log;
  const auto body = [&](const Tensor& a, const Tensor& b) {
    rg::sum(a * b).backward();
    return a.grad().detach();
  };
  auto step = rg::compile_step(body);
  const auto run = [&](auto&& f) {
    log.clear();
    const Tensor a = leaf({1, 2}), b = leaf({3, 4});
    ag::register_multi_grad_hook({a, b}, [&](const Tensors& g) {
      log.push_back(std::to_string(g[0].to_vector()[0]) + " " + std::to_string(g[1].to_vector()[0]));
    });
    return values(f(a, b));
  };
  const auto expected = run(body);
  const Strings expected_log = log;
  CHECK(expected_log.size() == 1);
  for (int i = 0; i < 3; ++i) {
    CHECK(run(step) == expected);
    CHECK(log == expected_log);
  }
}

TEST_CASE("a hook in a compiled function whose backward runs outside") {
  Strings log;
  const auto body = [&](const Tensor& x) {
    const Tensor h = rg::exp(x), k = rg::sin(x);
    ag::register_multi_grad_hook(
        {h, k}, [&](const Tensors& g) { log.push_back("multi " + std::to_string(g[0].to_vector()[0])); });
    h.register_hook([&](const Tensor& g) {
      log.push_back("hook");
      ag::queue_callback([&] { log.push_back("callback"); });
      return g;
    });
    return rg::sum(h * k);
  };
  const auto run = [&](auto&& f) {
    log.clear();
    const Tensor x = leaf({1, 2});
    f(x).backward();
    return values(x.grad());
  };
  const auto expected = run(body);
  const Strings expected_log = log;
  auto f = rg::compile(body);
  for (int i = 0; i < 3; ++i) {
    INFO("call " << i);
    CHECK(run(f) == expected);
    CHECK(log == expected_log);
  }
}

TEST_CASE(
    "a hook that the function adds to a tensor from outside stays there, and the next call adds another") {
  double calls = 0;
  const auto add = [&](const Tensor& to, int kind) {
    const auto twice = [](const Tensors& g) { return Tensors{g[0] * 2.0}; };
    if (kind == 0) to.register_hook([](const Tensor& g) { return g * 2.0; });
    if (kind == 1) to.register_accumulate_grad_prehook(twice);
    if (kind == 2)
      to.register_post_accumulate_grad_hook([](const Tensor& t) {
        rg::NoGradGuard no_grad;
        t.grad().mul_(2.0);
      });
    if (kind == 3) to.register_accumulate_grad_posthook([&](const Tensors&, const Tensors&) { ++calls; });
  };
  for (int kind = 0; kind < 4; ++kind)
    for (const bool of_argument : {false, true})
      for (const bool step : {true, false}) {
        INFO("kind " << kind << (of_argument ? ", argument" : ", from outside")
                     << (step ? ", step" : ", function"));
        const auto body_with = [&](const Tensor& w) {
          return [&, w](const Tensor& x, const Tensor& given) {
            const Tensor& to = of_argument ? given : w;
            add(to, kind);
            const Tensor loss = rg::sum(x * to);
            if (step) loss.backward();
            return loss;
          };
        };
        // Each call has its own backward; then a backward outside runs the hooks of all.
        const auto run = [&](const Tensor& w, auto&& f) {
          std::vector<std::vector<double>> all;
          calls = 0;
          for (int i = 0; i < 3; ++i) {
            w.set_grad({});
            const Tensor loss = f(leaf({3, 4}), w);
            if (!step) loss.backward();
            all.push_back(values(w.grad().detach()));
            all.push_back({std::exchange(calls, 0)});
          }
          w.set_grad({});
          rg::sum(w).backward();
          all.push_back(values(w.grad().detach()));
          return all;
        };
        const Tensor w = leaf({1, 2});
        const auto expected = run(w, body_with(w));
        const Tensor u = leaf({1, 2});
        if (step)
          CHECK(run(u, rg::compile_step(body_with(u))) == expected);
        else
          CHECK(run(u, rg::compile(body_with(u))) == expected);
      }
}

TEST_CASE("a hook that the function adds to an argument with a history, or to its record") {
  for (const int kind : {0, 1, 2}) {
    INFO("kind " << kind);
    const auto body = [&](const Tensor& h) {
      const auto twice = [](const Tensors& g) { return Tensors{g[0] * 2.0}; };
      if (kind == 0) h.register_hook([](const Tensor& g) { return g * 2.0; });
      if (kind == 1) h.grad_fn().register_prehook(twice);
      if (kind == 2)
        h.grad_fn().register_hook([](const Tensors& in, const Tensors&) { return Tensors{in[0] * 2.0}; });
      return rg::sum(h * h);
    };
    const auto run = [&](auto&& f) {
      std::vector<std::vector<double>> all;
      for (int i = 0; i < 3; ++i) {
        const Tensor x = leaf({3, 4});
        f(rg::exp(x)).backward();
        all.push_back(values(x.grad().detach()));
      }
      return all;
    };
    CHECK(run(rg::compile(body)) == run(body));
  }
}
