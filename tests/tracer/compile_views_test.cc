// Compiled functions with views and in-place writes: views that a write has made invalid, gradients through a base that
// was written to, memory with another layout than its value, gradients of gradients that need no values.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using rg::Category;

// What body(call) gives is the same where call(f, arguments) calls f as it is, and where it compiles f.
template <class Body>
void same(const Body& body) {
  check_same(body([](auto&& f, const auto&... arguments) { return f(arguments...); }),
             body([](auto&& f, const auto&... arguments) { return rg::compile(f)(arguments...); }));
}

}  // namespace

TEST_CASE("gradients of gradients of a result that needs no values, after the backward of another") {
  same([](const auto& call) {
    const Tensor x = parameter({1, 3}), z = parameter({2, 2}, 1);
    const Tensors y = call(
        [](const Tensor& a, const Tensor& b) {
          return Tensors{rg::neg(b), rg::as_strided(rg::broadcast_to(a, {2, 3}), {1, 1}, {2, 0}, 1)};
        },
        x, z);
    rg::sum(y[0]).backward();
    return rg::autograd::grad({y[1]}, {x}, {}, false, true);
  });
}

TEST_CASE("gradients of gradients that need no values may follow a write to the argument") {
  same([](const auto& call) {
    const Tensor x = parameter({3});
    const Tensor y = call([](const Tensor& a) { return a * 2.0; }, x);
    {
      rg::NoGradGuard guard;
      x.mul_(2.0);
    }
    return rg::autograd::grad({rg::sum(y)}, {x}, {}, false, true);
  });
}

TEST_CASE("as_strided of a written argument that is not row-major") {
  same([](const auto& call) {
    const Tensor memory = rg::zeros({10});
    const Tensor x = rg::as_strided(memory, {2, 2, 2}, {4, 1, 2}, 2);
    const Tensor v = call(
        [](const Tensor& a, const Tensor& values) {
          a.copy_(values);
          const Tensor two = rg::as_strided(a, {2}, {1});
          two.add_(rg::as_strided(rg::transpose(a, 0, 2), {2}, {1}));
          return two;
        },
        x, spread({2, 2, 2}, 3));
    return Tensors{v, x, memory};
  });
}

// Planning asks kernels and views about their operands before there is memory.
TEST_CASE("views that only the layout of an argument allows, before kernels with temporary memory") {
  const Tensor x = rg::transpose(spread({3, 1, 6}, 3), 0, 2).detach();
  same([&](const auto& call) {
    return call(
        [](const Tensor& a) {
          return Tensors{rg::sort(rg::reshape(rg::permute(a, {2, 0, 1}), {2, 9}), 0).values};
        },
        x);
  });
  same([&](const auto& call) {
    return call(
        [](const Tensor& a) {
          const Tensor rows = rg::as_strided(rg::permute(a, {2, 0, 1}), {3, 6}, {6, 1});
          return Tensors{rg::mm(rows, rg::transpose(rows, 0, 1))};
        },
        x);
  });
}

TEST_CASE("reductions of an argument that is not row-major, beside other ops on it") {
  const Tensor x = rg::transpose(spread({64, 24}, 3), 0, 1).detach();
  same([&](const auto& call) {
    return call([](const Tensor& a) { return Tensors{rg::floor(a), rg::mean(a, {1}), rg::sum(a, {0})}; }, x);
  });
}

TEST_CASE("the gradient of a view arrives at the base that was written to in the same function") {
  same([](const auto& call) {
    const Tensor x = parameter({2, 3});
    const Tensor y = rg::sinh(x);
    y.retain_grad();
    const Tensors v = call(
        [](const Tensor& a) {
          const Tensor row = a.select(0, 0);
          row.mul_(3.0);
          return Tensors{row, row.narrow(0, 1, 2)};
        },
        y);
    const Tensors to_base = rg::autograd::grad({rg::sum(v[1])}, {y}, {}, true);
    (rg::sum(v[0] * v[0]) + rg::sum(v[1])).backward();
    return Tensors{to_base[0], y.grad(), x.grad(), v[0].detach()};
  });
}

TEST_CASE("a detached tensor and a view of the same memory, both written to") {
  same([](const auto& call) {
    const Tensor x = parameter({2, 2});
    const Tensor y = rg::cos(x), view = rg::diagonal(y), detached = view.detach();
    call(
        [](const Tensor& d, const Tensor& v) {
          d.fill_(0.5);
          v.mul_(0.25);
          return v;
        },
        detached, view);
    rg::sum(y * y).backward();
    return Tensors{x.grad(), y.detach(), view.detach()};
  });
}

TEST_CASE("a part that is written over by the function is an operand as it was") {
  same([](const auto& call) {
    const Tensor x = parameter({4});
    const Tensor y = rg::cos(x);
    const Tensors parts = rg::split(y, 2);
    call(
        [](const Tensor& a, const Tensor& part) {
          a.narrow(0, 2, 2).copy_(part);
          return a;
        },
        y, parts[0]);
    CHECK(category_of([&] { rg::exp(parts[0]); }) == Category::view_inplace_forbidden);
    rg::sum(y * y).backward();
    return Tensors{x.grad(), y.detach()};
  });
}

TEST_CASE("an argument that a write has made useless is refused where it is used") {
  const Tensor x = parameter({4});
  const Tensor y = rg::cos(x);
  const Tensors parts = rg::split(y, 2);
  int calls = 0;
  auto f = rg::compile([&](const Tensor& part, const Tensor& other) {
    ++calls;
    rg::NoGradGuard guard;
    return part + other;
  });
  auto g = rg::compile([&](const Tensor& part) { return rg::exp(part); });
  CHECK(g(parts[0]).requires_grad());
  f(parts[0], x.narrow(0, 0, 2));
  y.mul_(2.0);
  CHECK(category_of([&] { g(parts[0]); }) == Category::view_inplace_forbidden);
  CHECK(values(f(parts[0], x.narrow(0, 0, 2))) == values((y + x).narrow(0, 0, 2)));  // without gradients
  CHECK(calls == 2);
}

TEST_CASE("a result that a write has made useless is given, and refused where it is used") {
  for (const bool compiled : {false, true}) {
    const Tensor x = parameter({4});
    const auto f = [](const Tensor& a) {
      const Tensor y = rg::cos(a);
      const Tensors parts = rg::split(y, 2);
      y.mul_(2.0);
      return Tensors{parts[0], y};
    };
    const Tensors r = compiled ? rg::compile(f)(x) : f(x);
    CHECK(values(r[0]) == values(r[1].detach().narrow(0, 0, 2)));
    CHECK(category_of([&] { rg::exp(r[0]); }) == Category::view_inplace_forbidden);
    rg::sum(r[1]).backward();
    CHECK(values(x.grad()) == values(rg::sin(x.detach()) * -2.0));
  }
}

TEST_CASE("gradients of gradients do not go through what was detached before a write") {
  same([](const auto& call) {
    const Tensor x = parameter({3});
    const Tensor y = call(
        [](const Tensor& a) {
          const Tensor b = a * 1.0, d = b.detach();
          b.mul_(2.0);
          return rg::sum(d * b * b);
        },
        x);
    const Tensor g = rg::autograd::grad({y}, {x}, {}, true, true)[0];
    return Tensors{g.detach(), rg::autograd::grad({rg::sum(g * g)}, {x})[0]};
  });
}

TEST_CASE("gradients of gradients are refused where a write without gradients hides a history") {
  const Tensor x = parameter({3});
  const auto f = [](const Tensor& a) {
    const Tensor b = a * 1.0;
    b.detach().mul_(2.0);
    return rg::sum(b * b * b);
  };
  auto compiled = rg::compile(f);
  check_same(rg::autograd::grad({f(x)}, {x}), rg::autograd::grad({compiled(x)}, {x}));
  const Tensor y = compiled(x);
  CHECK(category_of([&] { rg::autograd::grad({y}, {x}, {}, true, true); }) == Category::unsupported);
}

TEST_CASE("gradients of gradients through writes with one history") {
  same([](const auto& call) {
    const Tensor x = parameter({2, 3}), w = parameter({3}, 1), buffer = rg::ones({3});
    const Tensor y = call(
        [](const Tensor& a, const Tensor& b, const Tensor& c) {
          c.mul_(0.5);
          const Tensor s = rg::sin(a);
          s.select(0, 1).mul_(b);
          s.mul_(s + c);
          c.add_(rg::sum(s.detach(), 0));
          return rg::sum(s * s * b);
        },
        x, w, buffer);
    const Tensor g = rg::autograd::grad({y}, {x}, {}, true, true)[0];
    const Tensors second = rg::autograd::grad({rg::sum(g * g)}, {x, w});
    return Tensors{g.detach(), second[0], second[1], buffer};
  });
}
