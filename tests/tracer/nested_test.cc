// Backwards inside backwards, and hooks that change the hooks that are still to run: single cases. Random
// ones are in reentry_test.cc.
#include <pthread.h>

#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

// A graph whose hook runs the backward of the next one, `depth` times; returns the gradients added up.
double nest(int depth, rg::CompiledBackward* compiled) {
  const rg::EnableGradGuard gradients_on;
  const Tensor x = rg::tensor({1.0 + depth % 3, 2}).requires_grad_(), y = x * x;
  double below = 0;
  if (depth > 0) y.register_hook([&](const Tensor&) { return below = nest(depth - 1, compiled), Tensor(); });
  if (compiled)
    (*compiled)(rg::sum(y));
  else
    rg::sum(y).backward();
  return below + x.grad().to_vector()[0];
}

struct Nesting : rg::Function<Nesting> {
  static inline rg::CompiledBackward* compiled = nullptr;
  static Tensor forward(rg::AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    return x * x;
  }
  static Tensors backward(rg::AutogradContext* context, const Tensors& grads) {
    const rg::EnableGradGuard gradients_on;
    const Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    const Tensor y = rg::sum(x * x);
    if (compiled)
      (*compiled)(y);
    else
      y.backward();
    return {grads[0] * x.grad()};
  }
};

}  // namespace

TEST_CASE("backwards nest: hundreds of hooks deep, each inside the last") {
  rg::CompiledBackward compiled;
  const double expected = nest(300, nullptr);
  for (int run = 0; run < 2; ++run) CHECK(nest(300, &compiled) == expected);
  CHECK(compiled.stats().captures == 2);  // with a hook and without
}

TEST_CASE("a backward inside the backward of a user's function, through the same object") {
  rg::CompiledBackward compiled;
  std::vector<double> expected;
  for (rg::CompiledBackward* c : {static_cast<rg::CompiledBackward*>(nullptr), &compiled, &compiled}) {
    Nesting::compiled = c;
    const Tensor x = rg::tensor({1.0, -2, 3}).requires_grad_();
    const Tensor loss = rg::sum(rg::sin(Nesting::apply(Nesting::apply(x))));
    if (c)
      (*c)(loss);
    else
      loss.backward();
    if (!c) expected = x.grad().to_vector();
    CHECK(x.grad().to_vector() == expected);
  }
}

namespace {

/// The gradient of x, eagerly and in two traced runs, of sum(y) with y = x * x, x all ones: 2 times what the
/// hooks do. All must agree.
double agreed(const std::function<void(const Tensor& x, const Tensor& y)>& add_hooks) {
  rg::CompiledBackward compiled;
  std::vector<double> found;
  for (rg::CompiledBackward* c : {static_cast<rg::CompiledBackward*>(nullptr), &compiled, &compiled}) {
    const Tensor x = rg::ones({3}).requires_grad_(), y = x * x;
    add_hooks(x, y);
    if (c)
      (*c)(rg::sum(y));
    else
      rg::sum(y).backward();
    found.push_back(x.grad().to_vector()[0]);
  }
  CHECK(found[1] == found[0]);
  CHECK(found[2] == found[0]);
  return found[0];
}

std::function<Tensor(const Tensor&)> times(double factor) {
  return [factor](const Tensor& g) { return g * factor; };
}

}  // namespace

TEST_CASE("a hook replaces the next one of its tensor: the old one is gone, the new one waits") {
  rg::HookHandle second;  // the only handle: afterwards only the list holds the hook
  for (const bool of_leaf : {false, true}) {
    CHECK(agreed([&](const Tensor& x, const Tensor& y) {
            const Tensor& t = of_leaf ? x : y;
            t.register_hook([&](const Tensor& g) {
              second.remove();
              second = {};
              t.register_hook(times(7));
              return g * 2.0;
            });
            second = t.register_hook(times(5));
          }) == 4);
  }
}

TEST_CASE("a hook replaces one that is still to come by another: the new one runs") {
  rg::HookHandle later;
  CHECK(agreed([&](const Tensor& x, const Tensor& y) {
          later = x.register_hook(times(5));
          y.register_hook([&](const Tensor&) {
            later.remove();
            later = x.register_hook(times(3));
            return Tensor();
          });
        }) == 6);
  CHECK(agreed([&](const Tensor&, const Tensor& y) {
          later = y.grad_fn().register_hook([](const Tensors&, const Tensors&) { return Tensors{}; });
          y.register_hook([&](const Tensor&) {
            later.remove();
            later = y.grad_fn().register_hook([](const Tensors& g, const Tensors&) {
              return Tensors{g[0] * 3.0, {}};
            });
            return Tensor();
          });
        }) == 4);
}

TEST_CASE("hooks added at a late place, then at an earlier one: both run") {
  CHECK(agreed([](const Tensor& x, const Tensor& y) {
          y.register_hook([&](const Tensor&) { return x.register_hook(times(3)), Tensor(); });
          y.grad_fn().register_prehook([&](const Tensors&) {
            y.grad_fn().register_hook([](const Tensors& g, const Tensors&) {
              return Tensors{g[0] * 2.0, g[1] * 2.0};
            });
            return Tensors{};
          });
        }) == 12);
}

TEST_CASE("a traceable hook that is removed before its turn does not run") {
  rg::HookHandle traceable;
  CHECK(agreed([&](const Tensor& x, const Tensor& y) {
          traceable = x.register_hook(times(5)).set_traceable();
          y.register_hook([&](const Tensor& g) { return traceable.remove(), g * 3.0; });
        }) == 6);
  CHECK(agreed([&](const Tensor&, const Tensor& y) {
          y.register_hook([&](const Tensor& g) { return traceable.remove(), g * 3.0; });
          traceable = y.register_hook(times(5)).set_traceable();  // of the same tensor
        }) == 6);
}

TEST_CASE("numbers of this run reach the node after a rule that called user code") {
  rg::CompiledBackward compiled;
  const auto gradient = [&](double factor, bool traced) {
    const Tensor x = rg::ones({3}).requires_grad_();
    Tensor y;
    {
      rg::SavedTensorHooksGuard guard([](const Tensor& t) { return t; }, [](const Tensor& t) { return t; });
      y = rg::sin(x * factor);
    }
    if (traced)
      compiled(rg::sum(y));
    else
      rg::sum(y).backward();
    return x.grad().to_vector();
  };
  for (double factor : {2.0, 5.0, -0.5}) CHECK(gradient(factor, true) == gradient(factor, false));
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("backwards that nest too deep are one short error with a hint") {
  const Tensor x = rg::tensor({1.0}).requires_grad_(), loss = x * 2.0;
  int depth = 0, most = 8193;
  loss.grad_fn().register_prehook([&](const Tensors&) {
    if (++depth < most) loss.backward({}, true);
  });
  const std::string text = retrograd::error_of([&] { loss.backward({}, true); }).what();
  INFO(text);
  // Instrumented code has larger frames, and may fill the stack before.
  if (depth < 1000)
    CHECK(text.find("fills the stack of this thread") != std::string::npos);
  else
    CHECK(text.find("nest more than 1000 deep") != std::string::npos);
  CHECK(depth <= 1000);
  CHECK(text.find("Hint:") != std::string::npos);
  CHECK(text.find("further out") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') < 8);
  depth = 0, most = 500;  // and nothing is left of them
  loss.backward({}, true);
  CHECK(depth == 500);
}

TEST_CASE("a hook, or a pack hook, that calls its own compiled step ends with one error") {
  const Tensor x = rg::tensor({1.0}).requires_grad_();
  const auto ends = [](auto& step) {
    const std::string text = retrograd::error_of([&] { step(); }).what();
    INFO(text);
    CHECK(text.find("nest") != std::string::npos);
    CHECK(text.find("Hint:") != std::string::npos);
    CHECK(std::count(text.begin(), text.end(), '\n') < 8);
  };
  {
    std::function<void()> again;
    const auto body = [&] {
      const Tensor y = x * 2.0;
      y.register_hook([&](const Tensor&) { again(); });
      rg::sum(y).backward();
    };
    auto step = rg::compile_step(body);
    again = [&] {
      rg::EnableGradGuard on;
      step();
    };
    ends(step);
  }
  {
    std::function<void()> again;
    const auto body = [&] {
      rg::SavedTensorHooksGuard guard([&](const Tensor& t) { return again(), t; },
                                      [](const Tensor& t) { return t; });
      rg::sum(rg::exp(x)).backward();
    };
    auto step = rg::compile_step(body);
    again = [&] {
      rg::EnableGradGuard on;
      step();
    };
    ends(step);
  }
}

TEST_CASE("backwards that nest on a small stack") {
#ifdef __SANITIZE_THREAD__
  const size_t stack = 2 << 20;  // it keeps most of a MiB of each stack for itself
#else
  const size_t stack = 1 << 20;
#endif
  const Tensor x = rg::tensor({1.0}).requires_grad_(), loss = x * 2.0;
  int depth = 0;
  loss.grad_fn().register_prehook([&](const Tensors&) {
    if (++depth < 8193) loss.backward({}, true);
  });
  std::string text;
  const auto work = [&] { text = retrograd::error_of([&] { loss.backward({}, true); }).what(); };
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, stack) == 0);
  pthread_t thread;
  const auto run = [](void* f) -> void* { return (*static_cast<decltype(work)*>(f))(), nullptr; };
  REQUIRE(pthread_create(&thread, &attributes, run, const_cast<void*>(static_cast<const void*>(&work))) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  INFO(text);
  CHECK(text.find("nest") != std::string::npos);
  CHECK(depth > 20);
}
