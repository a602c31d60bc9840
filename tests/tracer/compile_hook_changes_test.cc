// Hooks that are added or removed while a recorded step runs: a change to a leaf whose gradient is still to come cannot
// be followed, and is an error; everything else is as in eager mode.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using Calls = std::vector<std::string>;
using rg::Category;

// The gradient of `first` is computed before that of `later`; each step clears both.
struct Side {
  Tensor first = parameter({4}, 1), later = parameter({4}, 2);
  Calls calls;
  std::function<void()> change;  // done once, by the hook of `first`

  Side() {
    first.register_post_accumulate_grad_hook([this](const Tensor&) {
      calls.push_back("first");
      if (change) std::exchange(change, {})();
    });
  }
  rg::HookHandle double_later(std::string name = "later") {
    return later.register_hook([this, name](const Tensor& g) {
      calls.push_back(name);
      return g * 2.0;
    });
  }
  Tensor body(const Tensor& x) {
    first.set_grad({});
    later.set_grad({});
    const Tensor loss = rg::sum(rg::exp(later * x) * first);
    loss.backward();
    return loss;
  }
  Tensors grads() const { return {first.grad().clone(), later.grad().clone()}; }
};

// One side that runs eagerly and one that is compiled, with the same hooks.
class Both {
 public:
  Both() = default;
  template <class F>
  void each(const F& f) {
    for (Side* side : {&plain_, &recorded_}) f(*side);
  }
  // A step of both that agrees.
  void step() {
    const Tensor x = spread(rg::Shape{4}, ++steps_);
    check_same({plain_.body(x).detach()}, {step_(x)});
    check_same(plain_.grads(), recorded_.grads());
    CHECK(plain_.calls == recorded_.calls);
  }
  // A step that is refused where it is compiled, with the next one.
  void refused(std::string_view calls) {
    const Tensor x = spread(rg::Shape{4}, ++steps_);
    plain_.body(x);
    Calls before = recorded_.calls;
    CHECK(category_of([&] { step_(x); }) == Category::unsupported);
    before.emplace_back(calls);
    CHECK(recorded_.calls == before);
    recorded_.calls = plain_.calls;
  }
  rg::FunctionCache::Stats stats() const { return step_.stats(); }

 private:
  Side plain_, recorded_;
  rg::Compiled<std::function<Tensor(const Tensor&)>> step_ = rg::compile_step(
      std::function<Tensor(const Tensor&)>([this](const Tensor& x) { return recorded_.body(x); }));
  int steps_ = 0;
};

}  // namespace

TEST_CASE("a hook that another one adds to a leaf to come is an error, and is called from the next run on") {
  const auto add = [](int kind) {
    return [kind](Side& s) {
      s.change = [&s, kind] {
        if (kind == 0) s.double_later();
        if (kind == 1)
          s.later.register_post_accumulate_grad_hook([&s](const Tensor&) { s.calls.push_back("has it"); });
        if (kind == 2) s.double_later().set_traceable();
      };
    };
  };
  for (int kind : {0, 1, 2}) {
    Both both;
    both.step();
    both.each(add(kind));
    both.refused("first");
    if (kind == 2) continue;  // is called at the recording
    both.step();
    both.step();
    CHECK(both.stats().captures == 2);
  }
}

TEST_CASE("a traceable hook that another one removes from a leaf to come is an error") {
  for (bool stays : {false, true}) {
    Both both;
    std::vector<rg::HookHandle> handles;
    both.each([&](Side& s) {
      handles.push_back(s.later.register_hook([](const Tensor& g) { return g * 2.0; }).set_traceable());
      if (stays) s.double_later();
    });
    both.step();
    size_t next = 0;
    both.each([&](Side& s) { s.change = [h = handles[next++]]() mutable { h.remove(); }; });
    both.refused("first");
    both.step();
  }
}

TEST_CASE("an opaque hook that another one removes is passed over in the same run") {
  Both both;
  std::vector<rg::HookHandle> handles;
  both.each([&](Side& s) { handles.push_back(s.double_later()), s.double_later("other"); });
  both.step();
  size_t next = 0;
  both.each([&](Side& s) { s.change = [h = handles[next++]]() mutable { h.remove(); }; });
  both.step();
  both.step();
}

TEST_CASE("hooks that a leaf gets while or after its gradient comes are called from the next run on") {
  const auto of_first = [](Side& s) {
    s.change = [&s] {
      s.first.register_hook([&s](const Tensor& g) {
        s.calls.push_back("own");
        return g * 3.0;
      });
      rg::ones({2}).requires_grad_().register_hook([](const Tensor& g) { return g; });
    };
  };
  Both both;
  both.step();
  both.each(of_first);
  both.step();
  both.step();
  CHECK(both.stats().captures == 2);
  both.each([](Side& s) {
    s.later.register_post_accumulate_grad_hook([&s](const Tensor&) {
      if (s.calls.size() < 100)
        s.first.register_hook([&s](const Tensor& g) { return s.calls.emplace_back("late"), g; });
    });
  });
  for (int i = 0; i < 4; ++i) both.step();
}

TEST_CASE("hooks are those that a leaf has when its gradient comes, not when the function is over") {
  Both both;
  struct State {
    Tensor p = parameter({3}, 1);
    int calls = 0;
    void body(const Tensor& x) {
      p.set_grad({});
      rg::sum(p * x).backward();
      p.register_hook([this](const Tensor& g) { return ++calls, g * 2.0; });
    }
  } plain, recorded;
  auto step = rg::compile_step([&](const Tensor& x) { recorded.body(x); });
  for (int i = 0; i < 4; ++i) {
    const Tensor x = spread(rg::Shape{3}, i);
    plain.body(x);
    step(x);
    check_same({plain.p.grad()}, {recorded.p.grad()});
    CHECK(plain.calls == recorded.calls);
  }
}

TEST_CASE("two backwards in a step: a hook added between them") {
  const Tensor p = parameter({3}, 1), q = parameter({3}, 2);
  bool adds = false;
  q.register_post_accumulate_grad_hook([&](const Tensor&) {
    if (std::exchange(adds, false)) p.register_hook([](const Tensor& g) { return g * 2.0; });
  });
  auto step = rg::compile_step([&](const Tensor& x) {
    rg::sum(p * x).backward();
    rg::sum(q * x).backward();
    rg::sum(p * x).backward();
  });
  const Tensor x = spread(rg::Shape{3}, 3);
  step(x);
  step(x);
  adds = true;
  CHECK(category_of([&] { step(x); }) == Category::unsupported);
}
