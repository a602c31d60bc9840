// compile: a function recorded once, whose results can be differentiated. Each body runs eagerly and compiled, and must
// agree bit for bit.
#include <catch2/catch.hpp>

#include <functional>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
using rg::Category;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;

namespace {

using rg::testing::same_bits;

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
  const Tensors expected = run([](const Tensor& a, const Tensor& b) { return Tensors{a * b, rg::sin(a)}; });
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

namespace {

// body(y, x) with y = x * 1.5, eager and compiled, twice: x, y, results and gradients of all that wants one.
template <class F>
void same_effects(const F& body) {
  auto compiled = rg::compile(body);
  for (uint64_t i = 0; i < 2; ++i) {
    std::vector<Tensors> seen;
    const auto run = [&](auto&& f) {
      const Tensor x = leaf({3, 4}, i), y = x * 1.5;
      Tensors all = f(y, x);
      all.push_back(y);
      Tensor loss = rg::sum(x * x);
      for (const Tensor& t : all)
        if (t.defined() && t.requires_grad()) loss = loss + rg::sum(t * t * t);
      loss.backward();
      all.push_back(x.grad());
      seen.push_back(all);
    };
    run(body);
    run(compiled);
    REQUIRE(seen[0].size() == seen[1].size());
    for (size_t k = 0; k < seen[0].size(); ++k) {
      INFO("tensor " << k << " of run " << i);
      CHECK(same_bits(seen[0][k], seen[1][k]));
      CHECK(seen[0][k].requires_grad() == seen[1][k].requires_grad());
      CHECK(seen[0][k].is_leaf() == seen[1][k].is_leaf());
    }
  }
  CHECK(compiled.stats().captures == 1);
}

}  // namespace

TEST_CASE("an argument with a history is written in place, a leaf cannot be") {
  same_effects([](const Tensor& y, const Tensor& x) {
    y.mul_(x);
    return Tensors{y * 2.0};
  });
  same_effects([](const Tensor& y, const Tensor& x) {
    const Tensor s = rg::sin(y * 1.0);
    y.select(0, 1).mul_(s.select(0, 0));
    y.mul_(rg::exp(y));
    return Tensors{s, y + x};
  });
  auto f = rg::compile([](const Tensor& x) { return x.mul_(2.0); });
  const Tensor x = leaf({2}, 1), before = x.detach().clone();
  CHECK(category_of([&] { f(x); }) == Category::leaf_inplace);
  CHECK(same_bits(x, before));
  const Tensor y = x * 1.0;
  CHECK(f(y).is_same(y));
  rg::sum(y).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{2, 2});
}

TEST_CASE("an argument without a gradient gets a history") {
  auto f = rg::compile([](const Tensor& memory, const Tensor& x) {
    memory.select(0, 0).copy_(rg::sin(x));
    return memory * 1.0;
  });
  for (int i = 0; i < 2; ++i) {
    const Tensor x = leaf({3}, 1), memory = rg::ones({2, 3}), view = memory.select(0, 0);
    const Tensor y = f(memory, x);
    CHECK(memory.requires_grad());
    rg::sum(view * view + y.select(0, 1)).backward();
    CHECK(same_bits(x.grad(), (2.0 * rg::sin(x)) * rg::cos(x)));
  }
}

TEST_CASE("views and bases as arguments share their memory in the function") {
  const auto body = [](const Tensor& row, const Tensor& base) {
    row.mul_(2.0);
    base.add_(rg::exp(base));
    return Tensors{row * base, rg::exp(row)};
  };
  auto both = rg::compile(body);
  for (int i = 0; i < 2; ++i) {
    std::vector<Tensors> seen;
    for (const bool compiled : {false, true}) {
      const Tensor x = leaf({2, 3}, 4), y = x * 1.5, row = y.select(0, 1), other = y.select(0, 0);
      Tensors all = compiled ? both(row, y) : body(row, y);
      rg::sum(all[0] * all[1] * row * other).backward();
      all.insert(all.end(), {row, y, other, x.grad()});
      seen.push_back(all);
    }
    for (size_t k = 0; k < seen[0].size(); ++k) CHECK(same_bits(seen[0][k], seen[1][k]));
  }
  auto f = rg::compile([](const Tensor& row) { return row.mul_(rg::exp(row)); });  // the base is no argument
  const Tensor x = leaf({2, 3}, 1), y = x * 1.0, other = y.select(0, 1);
  f(y.select(0, 1));
  rg::sum(y * other).backward();
  const Tensor z = leaf({2, 3}, 1), w = z * 1.0, second = w.select(0, 1);
  w.select(0, 1).mul_(rg::exp(second));
  rg::sum(w * second).backward();
  CHECK(same_bits(y, w));
  CHECK(same_bits(other, second));
  CHECK(same_bits(x.grad(), z.grad()));
}

TEST_CASE("a tensor and its detach, one tensor twice, memory with gaps") {
  const auto check = [](const auto& body, const auto& arguments) {
    auto f = rg::compile(body);
    for (int i = 0; i < 2; ++i) {
      const auto [a, b] = arguments();
      const auto [c, d] = arguments();
      body(a, b);
      f(c, d);
      CHECK(same_bits(a, c));
      CHECK(same_bits(b, d));
    }
  };
  const auto write = [](const Tensor& a, const Tensor& b) {
    a.mul_(2.0);
    b.select(0, 0).add_(rg::sum(a));
  };
  check(write, [] {
    const Tensor x = rg::arange(6).to(rg::kFloat32).reshape({2, 3});
    return std::pair(x, x.detach().transpose(0, 1));
  });
  check(write, [] {
    const Tensor x = rg::arange(6).to(rg::kFloat32).reshape({2, 3});
    return std::pair(x, x);
  });
  check(write, [] {
    const Tensor x = rg::arange(24).to(rg::kFloat32);
    return std::pair(rg::as_strided(x, {3, 2}, {2, 7}, 1).detach(),
                     rg::as_strided(x, {2, 2}, {9, 1}, 3).detach());
  });
}

TEST_CASE("results that are views, or the same tensor, are so in each run") {
  const auto body = [](const Tensor& a) {
    const Tensor y = a * 2.0, z = a * 3.0;
    return Tensors{y, y.select(0, 1), z.transpose(0, 1), y, a.select(0, 0)};
  };
  auto f = rg::compile(body);
  for (int i = 0; i < 2; ++i) {
    Tensors grads;
    for (const bool compiled : {false, true}) {
      const Tensor x = leaf({2, 3}, 5), a = x * 1.0;
      const Tensors r = compiled ? f(a) : body(a);
      CHECK(r[0].is_same(r[3]));
      r[1].mul_(3.0);
      r[0].add_(rg::ones({}));
      r[2].select(0, 0).mul_(2.0);
      r[4].mul_(rg::exp(r[1]));
      rg::sum(r[0] * r[1] * a).backward({}, true);
      rg::sum(r[2] * r[2]).backward();
      grads.push_back(x.grad());
    }
    CHECK(same_bits(grads[0], grads[1]));
  }
  auto split = rg::compile([](const Tensor& a) { return rg::split(a * 1.0, 1, 0); });
  const Tensor x = leaf({2, 3}, 5);
  CHECK(category_of([&] { split(x)[0].mul_(2.0); }) == Category::view_inplace_forbidden);
  auto view = rg::compile([](const Tensor& a) { return a.view({6}); });
  CHECK(category_of([&] { view(x).mul_(2.0); }) == Category::leaf_inplace);
}

TEST_CASE("results without history: integers, undefined ones, detached ones") {
  auto f = rg::compile([](const Tensor& a) {
    return Tensors{rg::argmax(a, 0), Tensor(), a.detach(), rg::zeros({2}), a * 2.0};
  });
  for (int i = 0; i < 2; ++i) {
    const Tensor x = leaf({3}, 1);
    const Tensors r = f(x);
    CHECK(r[0].dtype() == rg::kInt64);
    CHECK_FALSE(r[1].defined());
    CHECK_FALSE(r[2].requires_grad());
    CHECK(r[2].raw_data() == x.raw_data());
    CHECK_FALSE(r[3].requires_grad());
    CHECK(r[4].requires_grad());
  }
}

TEST_CASE("an error in a function has its category, and nothing outside has changed") {
  auto f = rg::compile([](const Tensor& a, const Tensor& b) {
    a.add_(rg::ones({}));
    return a + b;
  });
  const Tensor a = rg::ones({2});
  CHECK(category_of([&] { f(a, rg::ones({3})); }) == Category::shape_mismatch);
  CHECK(a.to_vector() == std::vector<double>{1, 1});
  CHECK(a.version() == 0);
  CHECK(f(a, a).to_vector() == std::vector<double>{4, 4});
}

TEST_CASE("backwards through parts of a function release what they went through") {
  auto f = rg::compile([](const Tensor& a, const Tensor& b) {
    return Tensors{rg::exp(a), rg::exp(b), a + b};
  });
  const Tensor x = leaf({3}, 1), y = leaf({3}, 2);
  const Tensors r = f(x, y);
  rg::sum(r[0]).backward();
  rg::sum(r[1]).backward();
  CHECK(same_bits(y.grad(), rg::exp(y)));
  CHECK(category_of([&] { rg::sum(r[0]).backward(); }) == Category::backward_twice_freed);
  rg::sum(r[2]).backward();  // an addition saves nothing
  rg::sum(r[2]).backward();
}

TEST_CASE("a write that a backward cannot bear is an error of that backward") {
  auto f = rg::compile([](const Tensor& a) {
    const Tensor y = rg::exp(a), z = rg::sin(a);
    y.add_(rg::ones({}));
    return Tensors{y, z};
  });
  const Tensor x = leaf({3}, 1);
  const Tensors r = f(x);
  CHECK(category_of([&] { rg::sum(r[0]).backward(); }) == Category::version_mismatch);
  rg::sum(r[1]).backward();
  CHECK(same_bits(x.grad(), rg::cos(x)));
  const Tensor y = x * 1.0;  // saved by the function, written to afterwards
  const Tensors s = f(y);
  y.add_(rg::ones({}));
  CHECK(category_of([&] { rg::sum(s[1]).backward(); }) == Category::version_mismatch);
}

TEST_CASE("gradients of gradients of a function that writes to its argument") {
  const auto body = [](const Tensor& y) {
    y.mul_(rg::exp(y));
    return rg::sin(y);
  };
  auto f = rg::compile(body);
  const auto second = [&](auto&& g) {
    const Tensor x = leaf({4}, 3), y = x * 1.0;
    const Tensor z = g(y);
    const Tensor first = rg::autograd::grad({rg::sum(z * y)}, {x}, {}, {}, true)[0];
    return rg::autograd::grad({rg::sum(first * first)}, {x})[0];
  };
  const std::vector<double> expected = second(body).to_vector();  // the order of the last sums may be another
  for (int i = 0; i < 2; ++i) {
    const std::vector<double> got = second(f).to_vector();
    for (size_t k = 0; k < expected.size(); ++k) CHECK(got[k] == Approx(expected[k]));
  }
}

TEST_CASE("gradients that come in another layout") {
  same_effects([](const Tensor& y, const Tensor&) { return Tensors{rg::exp(y).view({12}).view({4, 3})}; });
  auto f = rg::compile([](const Tensor& y) { return rg::exp(y).view({2, 6}); });
  const Tensor x = leaf({3, 4}, 1);
  rg::sum(rg::matmul(rg::ones({3, 6}), f(x).transpose(0, 1))).backward();
  CHECK(same_bits(x.grad(), rg::exp(x) * 3.0));
}

TEST_CASE("products of integers, one and a batch of them") {
  const auto ints = [](rg::IntArray sizes) { return rg::arange(12).to(rg::kInt64).view(sizes); };
  const auto body = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    return Tensors{rg::bmm(a, b), rg::mm(c, c.t()), rg::mv(c, c.select(0, 1))};
  };
  auto compiled = rg::compile(body);
  const Tensor a = ints({3, 2, 2}), b = ints({3, 2, 2}), c = ints({4, 3});
  const Tensors expected = body(a, b, c);
  for (int i = 0; i < 3; ++i) {
    const Tensors got = compiled(a, b, c);
    for (size_t k = 0; k < expected.size(); ++k) CHECK(same_bits(got[k], expected[k]));
  }
}
