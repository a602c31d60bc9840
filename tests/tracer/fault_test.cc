// Faults: a hook that throws, memory that runs out, at every single place of a training step; eager, in the first traced call and in a
// replay.
//
// Fuse counts the calls of user code (hooks of all kinds, functions of the user's, forward and backward) and throws in the k-th. The
// allocators count down likewise: of tensor data (memory::fail_allocation_after), and of everything else that goes through operator new,
// which this program replaces. After each fault: the exception is the one that was thrown, memory is back to what it was, the thread has
// no open scope, and the next step gives the same bits as ever.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <new>

#include "engine/driver.h"
#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

// ---- what fails ---------------------------------------------------------------------------------------------------------------------

thread_local int64_t news_left = 0;  // 0: none fails

struct Fault {
  int tick;
};

class Fuse {
 public:
  /// Throws in the k-th call from now; 0: never. `raise` is called with k.
  void set(int k, std::function<void(int)> raise = [](int tick) { throw Fault{tick}; }) {
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

// ---- a step -------------------------------------------------------------------------------------------------------------------------

using Bits = std::vector<std::string>;

std::string bits_of(const Tensor& t) {
  if (!t.defined()) return "undefined";
  const Tensor dense = t.detach().contiguous();
  return {static_cast<const char*>(dense.raw_data()), static_cast<size_t>(dense.nbytes())};
}

Tensor parameter(const rg::IntArray& size, double scale) {
  const Tensor t = rg::empty(size);
  float* data = t.data_ptr<float>();
  for (int64_t i = 0; i < t.numel(); ++i) data[i] = static_cast<float>(scale * ((i * 37 + 11) % 23 - 11.0) / 11);
  return t.requires_grad_();
}

using Backward = std::function<void(const Tensor&, bool retain_graph)>;
const Backward eagerly = [](const Tensor& loss, bool retain) { loss.backward({}, retain); };
Backward through(rg::CompiledBackward& compiled) {
  return [&compiled](const Tensor& loss, bool retain) { compiled.backward({loss}, {}, retain); };
}

struct Step {
  Tensor x = parameter({5, 4}, 0.5), w = parameter({4, 4}, 0.7), b = parameter({4}, 0.3), v = parameter({4, 3}, 0.9), h, loss;

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
    y.grad_fn().register_prehook([](const Tensors& grads) { return fuse.tick("pre"), Tensors{grads[0] * 0.5}; });
    y.grad_fn().register_hook([](const Tensors& grads, const Tensors&) {
      fuse.tick("post");
      Tensors changed;
      for (const Tensor& g : grads) changed.push_back(g.defined() ? g + g : g);
      return changed;
    });
  }
  Bits gradients() const { return {bits_of(x.grad()), bits_of(w.grad()), bits_of(b.grad()), bits_of(v.grad()), bits_of(h.grad())}; }
};

Bits run(const Backward& backward) {
  Step step;
  step.forward();
  backward(step.loss, false);
  return step.gradients();
}

// Three layers, their backward and a step of AdamW, twice, so that there is state.
Bits train(const Backward& backward) {
  Tensors parameters;
  for (int i = 0; i < 3; ++i) {
    parameters.push_back(parameter({4, 4}, 0.5 + 0.1 * i));
    parameters.push_back(parameter({4}, 0.2));
  }
  rg::optim::AdamW optimizer(parameters, {});
  const Tensor x = parameter({6, 4}, 1).detach();
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    Tensor h = x;
    for (size_t i = 0; i < 3; ++i) h = rg::gelu(rg::mm(h, parameters[2 * i]) + parameters[2 * i + 1]);
    backward(rg::mean(rg::square(h - 0.5)), false);
    optimizer.step();
  }
  Bits bits;
  for (const Tensor& p : parameters) bits.push_back(bits_of(p));
  return bits;
}

// ---- what must hold afterwards --------------------------------------------------------------------------------------------------------

struct Memory {
  int64_t bytes, tensors;
  static Memory now() {
    const rg::memory::Stats stats = rg::memory::stats();
    return {stats.live_bytes, stats.live_tensors};
  }
};

/// `frame_may_go`: a run that could not begin may have dropped the prepared cells of its plan.
void check_clean(const Memory& baseline, bool frame_may_go = false) {
  const Memory found = Memory::now();
  REQUIRE(found.bytes == baseline.bytes);
  if (frame_may_go) REQUIRE(found.tensors <= baseline.tensors);
  else REQUIRE(found.tensors == baseline.tensors);
  REQUIRE(rg::GradMode::is_enabled());
  REQUIRE_FALSE(rg::default_saved_tensor_hooks());
  REQUIRE(rg::CurrentBackward::innermost() == nullptr);
  REQUIRE(rg::BackwardRunner::current() == nullptr);
  REQUIRE(&rg::Emitter::current() == &rg::eager_emitter());
  REQUIRE(rg::effective_location({"here", 1}).line == 1);
}

/// Calls f(backward, name) for the three ways to run; a first traced call has a new object each time.
void in_all_ways(const std::function<void(const std::function<Backward()>&, const std::string&)>& f) {
  f([] { return eagerly; }, "eager");
  std::shared_ptr<rg::CompiledBackward> fresh;
  f(
      [&] {
        fresh = std::make_shared<rg::CompiledBackward>();
        return through(*fresh);
      },
      "first traced call");
  rg::CompiledBackward compiled;
  f([&] { return through(compiled); }, "replay");
}

}  // namespace

// Not inlined: the compiler would see malloc meet delete.
[[gnu::noinline]] void* operator new(size_t size) {
  if (news_left > 0 && --news_left == 0) throw std::bad_alloc();
  void* block = std::malloc(size ? size : 1);
  if (!block) throw std::bad_alloc();
  return block;
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { std::free(block); }

TEST_CASE("R18 an exception in any call of user code leaves with its type, and leaves nothing behind") {
  in_all_ways([](const std::function<Backward()>& make, const std::string& way) {
    fuse.set(0);
    const Bits expected = run(make());
    run(make());
    const int ticks = fuse.ticks() / 2;
    for (const char* kind : {"forward", "backward", "pack", "unpack", "tensor", "pre", "post", "post_accumulate", "multi"})
      CHECK(fuse.calls[kind] > 0);
    fuse.set(0);
    make();  // the object of the last round is gone
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

TEST_CASE("R18 what was accumulated before the exception stays, and is the same eager and traced") {
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

TEST_CASE("R18 a retained graph runs again after an exception in any of its hooks") {
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

TEST_CASE("R18 exceptions keep their type; the library's own gain a line on where they passed") {
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

namespace {

/// Lets the k-th allocation fail, for every k until none does; `arm(k)` sets it, `arm(0)` switches it off. Returns the last k.
int64_t exhaust(const std::function<Backward()>& make, const std::string& way, const std::function<void(int64_t)>& arm) {
  const bool is_fresh = way == "first traced call";
  const Bits expected = train(make());
  if (is_fresh) make();
  const Memory baseline = Memory::now();
  for (int64_t k = 1;; ++k) {
    INFO(way << ", allocation " << k);
    const Backward backward = make();
    bool failed = false;
    arm(k);
    try {
      train(backward);
    } catch (const rg::OutOfMemory&) {
      failed = true;
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    arm(0);
    if (!is_fresh) check_clean(baseline, failed);
    REQUIRE(train(backward) == expected);
    if (is_fresh) make();
    check_clean(baseline);
    if (!failed) return k;
  }
}

}  // namespace

TEST_CASE("R23 any allocation of tensor data may fail: OutOfMemory, nothing left behind, the next step as ever") {
  in_all_ways([](const std::function<Backward()>& make, const std::string& way) {
    CHECK(exhaust(make, way, rg::memory::fail_allocation_after) > 40);
  });
}

TEST_CASE("R23 any allocation of the library's own bookkeeping may fail, too") {
  in_all_ways([](const std::function<Backward()>& make, const std::string& way) {
    CHECK(exhaust(make, way, [](int64_t k) { news_left = k; }) > 40);
  });
}
