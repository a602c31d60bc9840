// A user's hook or function that throws, at every single call of a training step; eager, in the first traced call and
// in a replay.
//
// Fuse counts the calls (hooks of all kinds, functions, forward and backward) and throws in the k-th. After each fault:
// the exception is the one that was thrown, memory is as before, the thread has no open scope, and the next step gives
// the same bits as usual. Not tested here: a lack of memory (memory_fault_test.cc).
#include <map>
#include <stdexcept>

#include "tests/tracer/fault.h"

using namespace faults;

namespace {

struct Fault {
  int tick;
};

class Fuse {
 public:
  /// Throws in the k-th call from now; 0: never. `raise` is called with k.
  void set(
      int k, std::function<void(int)> raise = [](int tick) { throw Fault{tick}; }) {
    at_ = k;
    ticks_ = 0;
    raise_ = std::move(raise);
    calls.clear();
  }
  void tick(const char* kind) {
    ++calls[kind];
    if (++ticks_ == at_) raise_(ticks_);
  }
  int ticks() const { return ticks_; }
  std::map<std::string, int> calls;

 private:
  int at_ = 0, ticks_ = 0;
  std::function<void(int)> raise_;
};
Fuse fuse;

struct Opaque : rg::Function<Opaque> {
  static Tensor forward(rg::AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    fuse.tick("forward");
    return x * x;
  }
  static Tensors backward(rg::AutogradContext* context, const Tensors& grads) {
    fuse.tick("backward");
    return {grads[0] * context->get_saved_variables()[0] * 2.0};
  }
};

struct Step {
  Tensor x = parameter({5, 4}, 0.5), w = parameter({4, 4}, 0.7), b = parameter({4}, 0.3),
         v = parameter({4, 3}, 0.9), h, loss;

  void forward() {
    rg::SavedTensorHooksGuard guard([](const Tensor& t) { return fuse.tick("pack"), t.clone(); },
                                    [](const Tensor& t) { return fuse.tick("unpack"), t.clone(); });
    h = rg::tanh(rg::mm(x, w) + b);
    const Tensor o = Opaque::apply(h), p = rg::sigmoid(o * h), q = rg::mm(p, v), s = rg::softmax(q, 1);
    const Tensor r = rg::exp(rg::sum(s * q, {1}) * 0.1), t = rg::log(r + 2.0) / (r * r + 1.0);
    h.retain_grad();
    for (const Tensor& y : {h, o, q, r}) add_hooks(y);
    for (const Tensor& leaf : {x, w, v}) {
      leaf.register_hook([](const Tensor& g) { return fuse.tick("tensor"), g * 0.75; });
      leaf.register_post_accumulate_grad_hook([](const Tensor&) { fuse.tick("post_accumulate"); });
    }
    const auto multi = [](const Tensors&) { fuse.tick("multi"); };
    rg::autograd::register_multi_grad_hook({h, q, w}, multi);
    rg::autograd::register_multi_grad_hook({h, q, w}, multi, rg::autograd::MultiGradMode::any);
    loss = rg::sum(t * rg::mean(rg::square(q), {1})) + rg::sum(rg::sin(h.narrow(0, 1, 3)));
  }
  static void add_hooks(const Tensor& y) {
    y.register_hook([](const Tensor& g) { return fuse.tick("tensor"), g * 1.25; });
    y.grad_fn().register_prehook(
        [](const Tensors& grads) { return fuse.tick("pre"), Tensors{grads[0] * 0.5}; });
    y.grad_fn().register_hook([](const Tensors& grads, const Tensors&) {
      fuse.tick("post");
      Tensors changed;
      for (const Tensor& g : grads) changed.push_back(g.defined() ? g + g : g);
      return changed;
    });
  }
  Bits gradients() const {
    return {bits_of(x.grad()), bits_of(w.grad()), bits_of(b.grad()), bits_of(v.grad()), bits_of(h.grad())};
  }
};

Bits run(const Backward& backward) {
  Step step;
  step.forward();
  backward(step.loss, false);
  return step.gradients();
}

}  // namespace

TEST_CASE("an exception in any call of user code keeps its type, and leaves no state") {
  in_all_ways([](const std::function<Backward()>& make, const std::string& way) {
    fuse.set(0);
    const Bits expected = run(make());
    run(make());
    const int ticks = fuse.ticks() / 2;
    for (const char* kind :
         {"forward", "backward", "pack", "unpack", "tensor", "pre", "post", "post_accumulate", "multi"})
      CHECK(fuse.calls[kind] > 0);
    fuse.set(0);
    make();  // the object of the last round is destroyed
    const Memory baseline = Memory::now();
    for (int k = 1; k <= ticks; ++k) {
      INFO(way << ", call " << k << " of " << ticks);
      const Backward backward = make();
      fuse.set(k);
      int caught = 0;
      try {
        run(backward);
      } catch (const Fault& fault) {
        caught = fault.tick;
      }
      fuse.set(0);
      REQUIRE(caught == k);
      const bool has_cache = way == "first traced call";
      if (!has_cache) check_clean(baseline);
      REQUIRE(run(backward) == expected);
      if (!has_cache) check_clean(baseline);
      if (has_cache) {
        make();
        check_clean(baseline);
      }
    }
  });
}

TEST_CASE("what was accumulated before the exception stays, and is the same eager and traced") {
  rg::CompiledBackward compiled;
  fuse.set(0);
  run(through(compiled));
  const int ticks = fuse.ticks();
  const auto left = [](const Backward& backward, int k) {
    Step step;
    step.forward();
    const int forward = fuse.ticks();
    fuse.set(k - forward);
    try {
      if (k > forward) backward(step.loss, false);
    } catch (const Fault&) {
    }
    fuse.set(0);
    return step.gradients();
  };
  bool some = false;
  for (int k = 1; k <= ticks; ++k) {
    INFO("call " << k);
    fuse.set(0);
    const Bits eager = left(eagerly, k);
    fuse.set(0);
    REQUIRE(left(through(compiled), k) == eager);
    some |= eager[1] == "undefined" && eager[3] != "undefined";
  }
  CHECK(some);  // v has its gradient, w has none yet
}

TEST_CASE("a retained graph runs again after an exception in any of its hooks") {
  rg::CompiledBackward compiled;
  for (const Backward& backward : {eagerly, through(compiled)}) {
    fuse.set(0);
    const Bits expected = run(backward);
    Step step;
    step.forward();
    fuse.set(0);
    backward(step.loss, true);
    const int ticks = fuse.ticks();
    const auto clear = [&] {
      for (const Tensor& t : {step.x, step.w, step.b, step.v, step.h}) t.set_grad({});
    };
    clear();
    const Memory baseline = Memory::now();
    for (int k = 1; k <= ticks; ++k) {
      INFO("call " << k << " of " << ticks);
      fuse.set(k);
      REQUIRE_THROWS_AS(backward(step.loss, true), Fault);
      clear();
      fuse.set(0);
      backward(step.loss, true);
      REQUIRE(step.gradients() == expected);
      clear();
      check_clean(baseline);
    }
  }
}

TEST_CASE("exceptions keep their type; the library's own gain a line on where they passed") {
  in_all_ways([](const std::function<Backward()>& make, const std::string& way) {
    fuse.set(0);
    run(make());
    fuse.set(0);
    run(make());
    const int ticks = fuse.ticks();
    for (int k = 1; k <= ticks; ++k) {
      INFO(way << ", call " << k);
      fuse.set(k, [](int) { throw std::string("text"); });
      REQUIRE_THROWS_AS(run(make()), std::string);
      fuse.set(k, [](int) { throw std::out_of_range("out of it"); });
      REQUIRE_THROWS_AS(run(make()), std::out_of_range);
      fuse.set(k, [](int) { throw rg::Error(rg::Category::bad_dim, "mine"); });
      std::string text;
      try {
        run(make());
      } catch (const rg::Error& e) {
        REQUIRE(e.category() == rg::Category::bad_dim);
        text = e.what();
      }
      REQUIRE(text.starts_with("mine"));
    }
  });
}

TEST_CASE("an exception of a traceable hook leaves the recording, which begins again with the next call") {
  rg::CompiledBackward compiled;
  const auto step = [&](rg::CompiledBackward* through) {
    const Tensor x = parameter({4, 3}, 1), y = rg::tanh(x) * x, z = rg::exp(y);
    y.register_hook([](const Tensor& g) { return fuse.tick("traceable"), g * 0.5; }).set_traceable();
    z.grad_fn()
        .register_hook(
            [](const Tensors& g, const Tensors&) { return fuse.tick("traceable"), Tensors{g[0] + g[0]}; })
        .set_traceable();
    if (through)
      (*through)(rg::sum(z));
    else
      rg::sum(z).backward();
    return bits_of(x.grad());
  };
  fuse.set(0);
  const std::string expected = step(nullptr);
  const Memory baseline = Memory::now();
  for (int k = 1; k <= 2; ++k) {
    fuse.set(k);
    REQUIRE_THROWS_AS(step(&compiled), Fault);
    check_clean(baseline);
    REQUIRE(step(&compiled) == expected);
    compiled.reset();
    check_clean(baseline);
  }
}
