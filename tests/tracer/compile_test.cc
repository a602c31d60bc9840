// compile: a function recorded once, whose results can be differentiated. Each body runs as it stands and compiled, and must agree bit for bit.
#include <catch2/catch.hpp>

#include <cstring>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Category;
using rg::Tensor;
using rg::Tensors;

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  const Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.sizes() == y.sizes() && x.dtype() == y.dtype() &&
         !std::memcmp(x.raw_data(), y.raw_data(), static_cast<size_t>(x.nbytes()));
}

Tensor leaf(const rg::Shape& size, uint64_t seed) {
  rg::manual_seed(seed);
  return rg::randn(size).requires_grad_();
}

// f(x, w) with w captured, eager and compiled, several times: value and gradients.
template <class F>
void run_both(const F& body, int64_t captures = 1) {
  const Tensor w = leaf({3, 4}, 1);
  auto compiled = rg::compile([&](const Tensor& x) { return body(x, w); });
  for (uint64_t i = 0; i < 3; ++i) {
    const Tensor x = leaf({2, 3}, 10 + i);
    Tensors expected, got;
    const auto run = [&](auto&& f, Tensors& out) {
      x.set_grad({});
      w.set_grad({});
      rg::manual_seed(i);
      const Tensor y = f(x);
      rg::sum(y * y).backward();
      out = {y, x.grad(), w.grad()};
    };
    run([&](const Tensor& t) { return body(t, w); }, expected);
    run(compiled, got);
    for (size_t k = 0; k < expected.size(); ++k) CHECK(same_bits(expected[k], got[k]));
  }
  CHECK(compiled.stats().captures == captures);
}

}  // namespace

TEST_CASE("a compiled function gives the function's values and gradients") {
  run_both([](const Tensor& x, const Tensor& w) { return rg::tanh(rg::matmul(x, w)) * 2.0; });
  run_both([](const Tensor& x, const Tensor& w) { return rg::softmax(rg::matmul(rg::exp(x), w), 1); });
  run_both([](const Tensor& x, const Tensor& w) { return rg::dropout(rg::matmul(x, w), 0.5, true); });
  run_both([](const Tensor& x, const Tensor& w) {
    Tensor y = rg::matmul(x, w);
    y.select(1, 0).mul_(rg::full({2}, 3.0));
    return rg::sigmoid(y);
  });
}

TEST_CASE("without gradients there is no record") {
  auto f = rg::compile([](const Tensor& x) { return x * 2.0; });
  const Tensor x = leaf({3}, 1);
  CHECK(f(x).requires_grad());
  {
    rg::NoGradGuard off;
    CHECK_FALSE(f(x).requires_grad());
  }
  CHECK_FALSE(f(x.detach()).requires_grad());
  CHECK(f.stats().captures == 3);
  CHECK(f.backward_graph() == nullptr);
}

TEST_CASE("arguments with a history, results that are used on, hooks outside") {
  auto f = rg::compile([](const Tensor& a, const Tensor& b) { return Tensors{a * b, rg::sin(a)}; });
  const Tensor x = leaf({3}, 1), y = leaf({3}, 2);
  int calls = 0;
  x.register_hook([&](const Tensor& g) {
    ++calls;
    return g * 2.0;
  });
  const auto run = [&](auto&& g) {
    x.set_grad({});
    y.set_grad({});
    const Tensor h = rg::exp(x);
    const Tensors out = g(h, y);
    rg::sum(out[0] * out[1]).backward();
    return Tensors{x.grad(), y.grad()};
  };
  const Tensors expected =
      run([](const Tensor& a, const Tensor& b) { return Tensors{a * b, rg::sin(a)}; });
  const Tensors got = run(f);
  CHECK(same_bits(expected[0], got[0]));
  CHECK(same_bits(expected[1], got[1]));
  CHECK(calls == 2);
}

TEST_CASE("a backward from one of two results leaves the other's gradient undefined") {
  auto f = rg::compile([](const Tensor& a) { return Tensors{a * 2.0, rg::log(a)}; });
  const Tensor x = rg::zeros({2}).requires_grad_();  // log has an infinite derivative there
  rg::sum(f(x)[0]).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{2, 2});
}

TEST_CASE("saved values: twice through a retained graph, freed afterwards, and checked for writes") {
  auto f = rg::compile([](const Tensor& a) { return rg::exp(a); });
  const Tensor x = leaf({3}, 1);
  const Tensor y = f(x);
  rg::sum(y).backward({}, true);
  rg::sum(y).backward();
  CHECK(same_bits(x.grad(), (rg::exp(x) * 2.0)));
  try {
    rg::sum(y).backward();
    FAIL("no error");
  } catch (const rg::Error& e) {
    CHECK(e.category() == Category::backward_twice_freed);
  }
  const Tensor z = f(x);
  z.detach().add_(rg::ones({3}));
  try {
    rg::sum(z).backward();
    FAIL("no error");
  } catch (const rg::Error& e) {
    CHECK(e.category() == Category::version_mismatch);
  }
}

TEST_CASE("gradients of gradients, through what was recorded without gradients too") {
  const auto body = [](const Tensor& a) {
    Tensor scale;
    {
      rg::NoGradGuard off;
      scale = rg::cos(a);
    }
    return rg::sin(a) * a * scale;
  };
  auto f = rg::compile(body);
  const Tensor x = leaf({4}, 3);
  const auto second = [&](auto&& g) {
    const Tensor first = rg::autograd::grad({rg::sum(g(x))}, {x}, {}, {}, true)[0];
    return rg::autograd::grad({rg::sum(first * first)}, {x})[0];
  };
  CHECK(same_bits(second(body), second(f)));
}

TEST_CASE("a compiled function inside a compiled backward, and inside a compiled step") {
  auto f = rg::compile([](const Tensor& a) { return rg::tanh(a) * a; });
  const Tensor x = leaf({4}, 3);
  rg::CompiledBackward backward = rg::compile_backward();
  rg::sum(rg::tanh(x) * x).backward();
  const Tensor expected = x.grad();
  for (int i = 0; i < 3; ++i) {
    x.set_grad({});
    backward(rg::sum(f(x)));
    CHECK(same_bits(x.grad(), expected));
  }
  CHECK(backward.stats().captures == 1);
  auto step = rg::compile_step([&] {
    x.set_grad({});
    rg::sum(f(x)).backward();
    return Tensors{};
  });
  step();
  step();
  CHECK(same_bits(x.grad(), expected));
}

TEST_CASE("results that are arguments or tensors from outside are these") {
  const Tensor w = rg::ones({2});
  auto f = rg::compile([&](const Tensor& a) { return Tensors{a, w, a + w}; });
  for (int i = 0; i < 2; ++i) {
    const Tensor x = leaf({2}, 1);
    const Tensors out = f(x);
    CHECK(out[0].is_same(x));
    CHECK(out[1].is_same(w));
    CHECK_FALSE(out[2].is_leaf());
  }
}

TEST_CASE("hooks on values inside run in every backward") {
  int calls = 0;
  auto f = rg::compile([&](const Tensor& a) {
    const Tensor y = a * a;
    y.register_hook([&](const Tensor& g) {
      ++calls;
      return g * 10.0;
    });
    return y + a;
  });
  const Tensor x = rg::ones({2}).requires_grad_();
  for (int i = 1; i <= 3; ++i) {
    x.set_grad({});
    rg::sum(f(x)).backward();
    CHECK(calls == i);
    CHECK(x.grad().to_vector() == std::vector<double>{21, 21});
  }
}

TEST_CASE("control flow that looks at values is an error that names the line") {
  auto f = rg::compile([](const Tensor& a) { return rg::sum(a).item<double>() > 0 ? a * 2.0 : a; });
  try {
    f(rg::ones({2}));
    FAIL("no error");
  } catch (const rg::Error& e) {
    CHECK(std::string(e.what()).find("compile_test.cc") != std::string::npos);
  }
}
