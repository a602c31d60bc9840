// Gradients that a compiled loss computes with its value (tracer/function/precomputed_gradients.h): the same bits as
// those of the loss run eagerly, whether a guess is right or wrong; and the counts of guesses.
#include <catch2/catch.hpp>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/same_bits.h"
#include "tracer/function/precomputed_gradients.h"

namespace rg = retrograd;
using rg::Category;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;
using rg::testing::same_bits;

namespace {

using Loss = std::function<Tensor(const Tensor& x, const Tensor& w)>;

Tensor numbers(uint64_t seed, rg::ScalarType dtype = rg::kFloat32, const rg::Shape& size = {3, 5}) {
  rg::manual_seed(seed);
  return rg::randn(size, {dtype});
}
Tensor leaf(uint64_t seed, rg::ScalarType dtype = rg::kFloat32, const rg::Shape& size = {3, 5}) {
  return numbers(seed, dtype, size).requires_grad_();
}

Tensor pointwise(const Tensor& x, const Tensor& w) {
  return rg::mean(rg::square(rg::tanh(x * w + 0.5) * rg::sigmoid(x) - rg::exp(-x * x) * 0.1));
}

// What backward() leaves in both leaves, of a loss and its value.
Tensors after(const Loss& loss, const Tensor& x, const Tensor& w,
              const std::function<void(const Tensor&)>& backward) {
  x.set_grad({});
  w.set_grad({});
  const Tensor value = loss(x, w);
  backward(value);
  return {value, x.grad(), w.grad()};
}

void check_same(const Tensors& expected, const Tensors& got) {
  REQUIRE(expected.size() == got.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("tensor " << i);
    CHECK(same_bits(expected[i], got[i]));
  }
}

void by_tape(const Tensor& loss) { loss.backward(); }

// A compiled loss that expects a plain backward, and its leaves.
struct Ready {
  Tensor x = leaf(1), w = leaf(2);
  rg::Compiled<decltype(&pointwise)> compiled = rg::compile(&pointwise);

  Ready() { after(call(), x, w, by_tape); }
  Loss call() {
    return [this](const Tensor& a, const Tensor& b) { return compiled(a, b); };
  }
  int64_t ahead() const { return compiled.stats().precomputed; }
  int64_t missed() const { return compiled.stats().precomputed_missed; }
};

}  // namespace

TEST_CASE("from the second call on, a loss of elementwise ops brings its gradients along") {
  const auto dtype = GENERATE(rg::kFloat32, rg::kFloat64);
  const std::pair<const char*, Loss> losses[] = {
      {"pointwise", pointwise},
      {"products of three",
       [](const Tensor& x, const Tensor& w) {
         return rg::sum(rg::tanh(x * w) * rg::sigmoid(x) * rg::exp(-rg::square(x + w)));
       }},
      {"one leaf without gradient",
       [](const Tensor& x, const Tensor& w) { return pointwise(x, w.detach()); }}};
  for (const auto& [name, loss] : losses) {
    INFO(name);
    auto compiled = rg::compile(loss);
    for (uint64_t i = 0; i < 4; ++i) {
      const Tensor x = leaf(10 + i, dtype), w = leaf(20 + i, dtype);
      const Tensors expected = after(loss, x, w, by_tape);
      check_same(expected,
                 after([&](const Tensor& a, const Tensor& b) { return compiled(a, b); }, x, w, by_tape));
    }
    CHECK(compiled.stats().captures == 1);
    CHECK(compiled.stats().precomputed == 3);
    CHECK(compiled.stats().precomputed_missed == 0);
  }
}

TEST_CASE("gradients that were computed ahead add up in .grad, and belong to it alone") {
  Ready r;
  Tensors once = after(pointwise, r.x, r.w, by_tape);
  r.x.set_grad({});
  r.w.set_grad({});
  r.compiled(r.x, r.w).backward();
  CHECK(same_bits(r.x.grad(), once[1]));
  r.compiled(r.x, r.w).backward();
  CHECK(same_bits(r.x.grad(), once[1] + once[1]));
  CHECK(r.ahead() == 2);
  const Tensor a = rg::autograd::grad({r.compiled(r.x, r.w)}, {r.w})[0];
  const Tensor b = rg::autograd::grad({r.compiled(r.x, r.w)}, {r.w})[0];
  CHECK(r.ahead() == 4);
  a.mul_(rg::full({}, 2.0));
  CHECK(same_bits(b, once[2]));
}

TEST_CASE("another cotangent is computed with, whatever was expected") {
  Ready r;
  const auto half = [](const Tensor& loss) { (loss * 0.5).backward(); };
  const auto given = [](const Tensor& loss) { loss.backward(rg::full({}, -3.0)); };
  check_same(after(pointwise, r.x, r.w, half), after(r.call(), r.x, r.w, half));
  CHECK(r.missed() == 1);
  check_same(after(pointwise, r.x, r.w, given), after(r.call(), r.x, r.w, given));
  CHECK(r.missed() == 1);  // it no longer expected one
  CHECK(r.ahead() == 0);
  const auto one = [](const Tensor& loss) { loss.backward(rg::full({}, 1.0)); };
  for (int i = 0; i < 2; ++i) check_same(after(pointwise, r.x, r.w, one), after(r.call(), r.x, r.w, one));
  CHECK(r.ahead() == 1);
}

TEST_CASE("a graph that is retained, and gradients of gradients, are computed with what was saved") {
  Ready r;
  const auto twice = [](const Tensor& loss) {
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
  };
  check_same(after(pointwise, r.x, r.w, twice), after(r.call(), r.x, r.w, twice));
  CHECK(r.ahead() == 1);  // by the second, the last one
  const auto second = [&](const Loss& loss) {
    const Tensors g = rg::autograd::grad({loss(r.x, r.w)}, {r.x, r.w}, {}, true, true);
    return rg::autograd::grad({rg::sum(g[0] * g[1])}, {r.x, r.w});
  };
  check_same(second(pointwise), second(r.call()));
}

TEST_CASE("a backward for the second time, and one of what was written to, are errors as ever") {
  Ready r;
  Tensor loss = r.compiled(r.x, r.w);
  loss.backward();
  CHECK(category_of([&] { loss.backward(); }) == Category::backward_twice_freed);
  loss = r.compiled(r.x, r.w);
  {
    const rg::NoGradGuard no_grad;
    r.w.mul_(rg::full({}, 2.0));
  }
  CHECK(category_of([&] { loss.backward(); }) == Category::version_mismatch);
}

TEST_CASE("hooks see and change the gradients that were computed ahead") {
  Ready r;
  r.x.register_hook([](const Tensor& g) { return g * 2.0; });
  int calls = 0;
  const auto backward = [&](const Tensor& loss) {
    loss.register_hook([&](const Tensor& g) { return ++calls, g; });
    loss.backward();
  };
  check_same(after(pointwise, r.x, r.w, backward), after(r.call(), r.x, r.w, backward));
  CHECK(calls == 2);
  CHECK(r.ahead() == 1);
  const auto doubled = [&](const Tensor& loss) {
    loss.register_hook([](const Tensor& g) { return g * 2.0; });
    loss.backward();
  };
  check_same(after(pointwise, r.x, r.w, doubled), after(r.call(), r.x, r.w, doubled));
  CHECK(r.ahead() == 1);
}

TEST_CASE("losses that nobody differentiates are guessed wrong a few times, then no more") {
  Ready r;
  for (int i = 0; i < 100; ++i) r.compiled(r.x, r.w);
  CHECK(r.missed() == 1);
  for (int i = 0; i < 100; ++i) {
    after(r.call(), r.x, r.w, by_tape);
    r.compiled(r.x, r.w);
  }
  CHECK(r.ahead() == 0);
  CHECK(r.missed() == 8);
}

TEST_CASE("losses that wait for a backward are guessed to have one, but not all of them") {
  Ready r;
  Tensors waiting;
  for (int i = 0; i < 100; ++i) waiting.push_back(r.compiled(r.x, r.w));
  CHECK(r.missed() == 0);
  const Tensors expected = after(pointwise, r.x, r.w, by_tape);
  r.x.set_grad({});
  waiting[0].backward();
  CHECK(same_bits(r.x.grad(), expected[1]));
  r.x.set_grad({});
  waiting[99].backward();
  CHECK(same_bits(r.x.grad(), expected[1]));
  CHECK(r.ahead() == 1);
  waiting.clear();
  CHECK(r.missed() == rg::GradientPrediction::kMisses - 1);
}

TEST_CASE("gradients that no backward takes go with the loss") {
  Ready r;
  const int64_t before = rg::memory::stats().live_bytes;
  r.compiled(r.x, r.w);
  CHECK(rg::memory::stats().live_bytes == before);
  CHECK(r.missed() == 1);
}

TEST_CASE("where there is no memory for gradients ahead, the loss is computed without") {
  const rg::Shape size{64, 1024};
  const Tensor x = leaf(1, rg::kFloat32, size), w = leaf(2, rg::kFloat32, size);
  auto compiled = rg::compile(&pointwise);
  compiled(x, w).backward();
  x.set_grad({});
  w.set_grad({});
  rg::memory::reset_peak();
  Tensor expected;
  {
    const rg::NoGradGuard no_grad;
    expected = compiled(x, w);
  }
  const Tensor plain = pointwise(x.detach(), w.detach());
  rg::memory::set_limit(rg::memory::stats().live_bytes + x.nbytes());
  const Tensor loss = compiled(x, w);
  rg::memory::set_limit(0);
  CHECK(same_bits(loss.detach(), plain));
  CHECK(compiled.stats().precomputed_missed == 1);
  loss.backward();
  const Tensor got = x.grad();
  x.set_grad({});
  pointwise(x, w).backward();
  CHECK(same_bits(got, x.grad()));
}

TEST_CASE("a backward in forward mode has tangents, whatever was computed ahead") {
  const auto derivative = [](const Loss& loss, const Tensor& x) {
    const Tensor value = loss(x, x);
    rg::autograd::DualLevel level;
    const Tensor cotangent = level.make_dual(rg::ones({}), rg::full({}, 2.0));
    const Tensor g = rg::autograd::grad({value}, {x}, {cotangent})[0];
    return Tensors{g, level.tangent(g)};
  };
  const Loss loss = [](const Tensor& x, const Tensor& w) { return rg::sum(rg::exp(x * w) * x); };
  auto compiled = rg::compile(loss);
  const Loss call = [&](const Tensor& x, const Tensor& w) { return compiled(x, w); };
  const Tensor x = leaf(1);
  const Tensors expected = derivative(loss, x);
  REQUIRE(expected[1].defined());
  check_same(expected, derivative(call, x));
  compiled(x, x).backward();
  check_same(expected, derivative(call, x));
  CHECK(compiled.stats().precomputed == 0);
}

TEST_CASE("gradients for some of the inputs, and after an error in a hook") {
  Ready r;
  const Tensors expected = after(pointwise, r.x, r.w, by_tape);
  check_same({expected[0], expected[1], {}}, after(r.call(), r.x, r.w, [&](const Tensor& loss) {
               rg::autograd::backward({loss}, {}, {}, false, Tensors{r.x});
             }));
  rg::HookHandle hook =
      r.x.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("not today"); });
  CHECK_THROWS_AS(r.compiled(r.x, r.w).backward(), std::runtime_error);
  hook.remove();
  check_same(expected, after(r.call(), r.x, r.w, by_tape));
}

TEST_CASE("threads guess together") {
  Ready r;
  const Tensors expected = after(pointwise, r.x, r.w, by_tape);
  std::atomic<int> right = 0;
  const auto work = [&] {
    for (int i = 0; i < 50; ++i) {
      const Tensor loss = r.compiled(r.x, r.w);
      if (i % 7 == 3) continue;
      const Tensors g = rg::autograd::grad({i % 5 == 2 ? loss * 1.0 : loss}, {r.x, r.w});
      right += same_bits(g[0], expected[1]) && same_bits(g[1], expected[2]);
    }
  };
  std::thread other(work);
  work();
  other.join();
  CHECK(right == 2 * 43);
  CHECK(r.ahead() > 0);
}

TEST_CASE("losses of 16 bits are as without") {
  const auto dtype = GENERATE(rg::kFloat16, rg::kBFloat16);
  auto compiled = rg::compile(&pointwise);
  const Loss call = [&](const Tensor& x, const Tensor& w) { return compiled(x, w); };
  const Tensor x = numbers(1).to(dtype).requires_grad_(), w = numbers(2).to(dtype).requires_grad_();
  for (int i = 0; i < 3; ++i) check_same(after(pointwise, x, w, by_tape), after(call, x, w, by_tape));
  CHECK(compiled.stats().precomputed == 0);
}

TEST_CASE("what is computed for the forward alone is not computed ahead") {
  const std::pair<const char*, Loss> losses[] = {
      {"saves a product",
       [](const Tensor& x, const Tensor& w) { return rg::mean(rg::tanh(rg::matmul(x, w.transpose(0, 1)))); }},
      {"several elements", [](const Tensor& x, const Tensor& w) { return rg::exp(x * w) * 2.0; }},
      {"draws",
       [](const Tensor& x, const Tensor& w) {
         return rg::sum(rg::exp(x * w) * rg::rand({3, 5}));
       }},
      {"saves little, and its gradients are large",
       [](const Tensor& x, const Tensor& w) { return rg::sum(x * 2.0) + rg::sum(rg::exp(w.select(0, 0))); }}};
  for (const auto& [name, loss] : losses) {
    INFO(name);
    auto compiled = rg::compile(loss);
    const Tensor x = leaf(1), w = leaf(2);
    const auto backward = [](const Tensor& y) { y.backward(rg::ones(y.sizes())); };
    for (uint64_t i = 0; i < 3; ++i) {
      rg::manual_seed(i);
      const Tensors expected = after(loss, x, w, backward);
      rg::manual_seed(i);
      check_same(expected,
                 after([&](const Tensor& a, const Tensor& b) { return compiled(a, b); }, x, w, backward));
    }
    CHECK(compiled.stats().precomputed == 0);
    CHECK(compiled.stats().precomputed_missed == 0);
  }
}

TEST_CASE(
    "between forward and backward no more is held than eagerly, and gradients in vain go before others are "
    "made") {
  const rg::Shape size{64, 1024};
  const Tensor x = leaf(1, rg::kFloat32, size), w = leaf(2, rg::kFloat32, size);
  const std::pair<const char*, Loss> losses[] = {
      {"pointwise", pointwise},
      {"apart", [](const Tensor& a, const Tensor& b) { return rg::sum(rg::exp(a)) + rg::sum(rg::exp(b)); }},
      {"a value and its view", [](const Tensor& a, const Tensor& b) {
         const Tensor y = rg::exp(a);
         const Tensor turned = rg::reshape(y.transpose(0, 1), {64, 1024});
         return rg::sum(y * b) + rg::sum(y.transpose(0, 1) * b.transpose(0, 1)) +
                rg::sum((turned.detach() + 1.0) * (b.detach() + 2.0));
       }}};
  for (const auto& [name, loss] : losses) {
    INFO(name);
    auto compiled = rg::compile(loss);
    const Loss call = [&](const Tensor& a, const Tensor& b) { return compiled(a, b); };
    const auto half = [](const Tensor& value) { (value * 0.5).backward(); };
    int64_t held = 0;
    const auto measured = [&](const Loss& f) {
      rg::memory::reset_peak();
      const int64_t before = rg::memory::stats().live_bytes;
      const Tensors got = after(f, x, w, [&](const Tensor& value) {
        held = rg::memory::stats().live_bytes - before;
        half(value);
      });
      x.set_grad({});
      w.set_grad({});
      return rg::memory::stats().peak_bytes;
    };
    const int64_t peak = measured(loss), held_eagerly = held;
    after(call, x, w, by_tape);
    x.set_grad({});
    w.set_grad({});
    CHECK(measured(call) <= peak);
    CHECK(held <= held_eagerly);
  }
}

TEST_CASE("with gradients computed ahead, the peak is the planned one and at most eager's") {
  const rg::Shape size{64, 1024};
  const Tensor x = leaf(1, rg::kFloat32, size), w = leaf(2, rg::kFloat32, size);
  auto compiled = rg::compile(&pointwise);
  const auto peak = [&](const Loss& loss) {
    rg::memory::reset_peak();
    after(loss, x, w, by_tape);
    return rg::memory::stats().peak_bytes;
  };
  const Loss call = [&](const Tensor& a, const Tensor& b) { return compiled(a, b); };
  const auto eager = peak(pointwise);
  peak(call);
  rg::PeakMeter watch;
  CHECK(peak(call) <= eager);
  CHECK(compiled.stats().precomputed == 1);
  CHECK(watch.report().runs == 1);
  CHECK(watch.report().differing == 0);
}
