// Opaque user-defined functions inside compiled functions and steps: a node of the forward and one of the backward,
// called as often, and in the same order, as eagerly.
#include <catch2/catch.hpp>

#include "ir/graph.h"
#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using rg::Category;
using Events = std::vector<std::string>;

Events events;
int throw_at = 0;  // a count of calls, of forward or backward
void note(std::string what) {
  events.push_back(std::move(what));
  if (--throw_at == 0) throw std::out_of_range("inside " + events.back());
}

// Reads its data: x times its own largest element, which it keeps as a number; saves an argument, a result, and another
// tensor.
struct ScaleByLargest : rg::Function<ScaleByLargest> {
  static Tensors forward(rg::AutogradContext* ctx, const Tensor& x, double factor, const Tensor& w) {
    double largest = 0;
    for (double v : x.to_vector()) largest = std::max(largest, v);
    note("forward " + std::to_string(largest));
    ctx->saved_data["scale"] = factor * largest;
    const Tensor y = x * (factor * largest) * w, count = rg::argmax(x, 0);
    ctx->save_for_backward({w, y, rg::full({2}, largest)});
    ctx->mark_non_differentiable({count});
    return {y, count};
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const Tensors saved = ctx->get_saved_variables();
    note("backward " + std::to_string(saved[2].to_vector()[1]) + " " +
         std::to_string(grads[0].to_vector()[0]));
    const rg::Scalar scale = ctx->saved_data["scale"];
    return {grads[0] * scale * saved[0], {}, ctx->needs_input_grad(2) ? grads[0] * saved[1] : Tensor()};
  }
};

struct Doubled : rg::Function<Doubled> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    note("double");
    x.mul_(2.0);
    ctx->mark_dirty({x});
    return x;
  }
  static Tensors backward(rg::AutogradContext*, const Tensors& grads) {
    note("double back");
    return {grads[0] * 2.0};
  }
};

struct Cube : rg::Function<Cube> {
  static constexpr bool is_traceable = true;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {grads[0] * x * x * 3.0};
  }
};

struct Run {
  Events events;
  Tensors tensors;
};

template <class F>
Run run(F&& f, const Tensor& w, int step) {
  events.clear();
  const Tensor x = parameter({rg::Dim(4)}, step);
  w.set_grad({});
  const Tensor y = f(x);
  events.push_back("called");
  y.backward();
  return {events, {y.detach(), x.grad(), w.grad()}};
}

void check_equal(const Run& a, const Run& b) {
  CHECK(a.events == b.events);
  check_same(a.tensors, b.tensors);
}

}  // namespace

TEST_CASE(
    "an opaque function in a compiled one: one node forward, one backward, after a first call as it is") {
  const Tensor w = parameter({rg::Dim(4)}, 9);
  const auto body = [&](const Tensor& x) {
    const Tensors out = ScaleByLargest::apply(rg::exp(x), 0.5, w);
    return rg::sum(rg::sin(out[0]) * x + rg::index_select(x, 0, rg::reshape(out[1], {1})));
  };
  auto compiled = rg::compile(body);
  for (int i = 0; i < 4; ++i) {
    INFO("call " << i);
    const Run eager = run(body, w, i);
    REQUIRE(eager.events.size() == 3);
    check_equal(eager, run(compiled, w, i));
  }
  CHECK(compiled.stats().eager == 1);
  CHECK(compiled.last_eager_reason().find("opaque functions") != std::string::npos);
  CHECK(compiled.stats().captures == 1);
  CHECK(compiled.stats().hits == 2);
  CHECK(count_nodes(*compiled.graph(), "function") == 1);
  CHECK(count_nodes(*compiled.backward_graph(), "function_backward") == 1);
}

TEST_CASE("several calls keep their contexts apart; a run keeps its own until its backward") {
  const Tensor w = parameter({rg::Dim(4)}, 9);
  const auto body = [&](const Tensor& x) {
    const Tensor a = ScaleByLargest::apply(x, 2.0, w)[0];
    return rg::sum(ScaleByLargest::apply(a, 0.25, w)[0]);
  };
  auto compiled = rg::compile(body);
  run(compiled, w, 0);
  const Tensor x = parameter({rg::Dim(4)}, 1), y = parameter({rg::Dim(4)}, 2);
  const Tensor a = compiled(x), b = compiled(y);
  a.backward({}, true);
  b.backward();
  a.backward();
  const Tensor p = parameter({rg::Dim(4)}, 1), q = parameter({rg::Dim(4)}, 2);
  const Tensor c = body(p), d = body(q);
  c.backward({}, true);
  d.backward();
  c.backward();
  check_same({p.grad(), q.grad()}, {x.grad(), y.grad()});
  CHECK(category_of([&] { a.backward(); }) == Category::backward_twice_freed);
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("in a step, next to hooks, under a pair of saved-tensor hooks") {
  struct Side {
    Tensor w = parameter({rg::Dim(4)}, 9), buffer = rg::zeros({4});
    rg::optim::SGD optimizer{{w}, {.lr = 0.1}};
  } plain, recorded;
  for (Side* s : {&plain, &recorded})
    s->w.register_hook([](const Tensor& g) {
      note("hook " + std::to_string(g.to_vector()[0]));
      return g * 2.0;
    });
  const auto body = [](Side& s, const Tensor& x) {
    s.optimizer.zero_grad();
    {
      rg::NoGradGuard off;
      s.buffer.add_(x);
    }
    const Tensor loss = rg::sum(ScaleByLargest::apply(rg::exp(x * s.w), 1.5, s.w)[0]);
    loss.backward();
    s.optimizer.step();
    return loss;
  };
  auto step = rg::compile_step([&](const Tensor& x) { return body(recorded, x); });
  for (int i = 0; i < 4; ++i) {
    INFO("step " << i);
    const Tensor x = spread({rg::Dim(4)}, i);
    const auto once = [&](Side& s, auto&& f) {
      events.clear();
      rg::SavedTensorHooksGuard guard(
          [&](const Tensor& t) {
            note("pack " + std::to_string(t.to_vector()[0]) + " " + std::to_string(s.buffer.to_vector()[0]));
            return t.clone();
          },
          [](const Tensor& t) {
            note("unpack");
            return t;
          });
      Run r{{}, {f(x).detach()}};
      r.events = events;
      r.tensors.insert(r.tensors.end(), {s.w.detach().clone(), s.w.grad(), s.buffer.clone()});
      return r;
    };
    check_equal(once(plain, [&](const Tensor& t) { return body(plain, t); }), once(recorded, step));
  }
  CHECK(step.stats().captures == 1);
  CHECK(step.stats().hits == 2);
}

TEST_CASE("a function that writes to its argument") {
  const auto body = [](const Tensor& x) {
    const Tensor y = x * 1.5, early = rg::select(y, 0, 1);
    const Tensor z = Doubled::apply(y);
    return rg::sum(rg::exp(y) * z * early);
  };
  auto compiled = rg::compile(body);
  const Tensor none = parameter({rg::Dim(1)});
  for (int i = 0; i < 4; ++i) check_equal(run(body, none, i), run(compiled, none, i));
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("exceptions of forward and backward come out with their type; what was done before stays") {
  struct Side {
    Tensor w = parameter({rg::Dim(4)}, 9), buffer = rg::zeros({4});
  } plain, recorded;
  const auto body = [](Side& s, const Tensor& x) {
    s.w.set_grad({});
    {
      rg::NoGradGuard off;
      s.buffer.add_(x);
    }
    const Tensor a = ScaleByLargest::apply(x, 2.0, s.w)[0];
    rg::sum(a).backward();
    {
      rg::NoGradGuard off;
      s.buffer.mul_(3.0);
    }
    rg::sum(ScaleByLargest::apply(a.detach(), 0.25, s.w)[0]).backward();
  };
  auto step = rg::compile_step([&](const Tensor& x) { body(recorded, x); });
  for (int at : {0, 0, 1, 2, 3, 4, 0}) {
    INFO("throws at " << at);
    const Tensor x = spread({rg::Dim(4)}, at);
    const auto once = [&](Side& s, auto&& f) {
      events.clear();
      throw_at = at;
      if (at)
        CHECK_THROWS_AS(f(), std::out_of_range);
      else
        f();
      throw_at = 0;
      return Run{events, {s.w.detach().clone(), s.w.grad(), s.buffer.clone()}};
    };
    check_equal(once(plain, [&] { body(plain, x); }), once(recorded, [&] { step(x); }));
  }
  CHECK(step.stats().captures == 1);
}

TEST_CASE("a function that gives another shape than before, or no gradient, is an error that says so") {
  struct Positive : rg::Function<Positive> {
    static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
      int64_t n = 0;
      for (double v : x.to_vector()) n += v > 0;
      ctx->saved_data["n"] = n;
      return rg::full({n}, 1.0);
    }
    static Tensors backward(rg::AutogradContext* ctx, const Tensors&) {
      return {ctx->saved_data["n"].to_double() > 1 ? Tensor(rg::ones({3})) : Tensor()};
    }
  };
  auto compiled = rg::compile([](const Tensor& x) { return rg::sum(Positive::apply(x)); });
  for (int i = 0; i < 3; ++i) compiled(leaf({1, 2, -1})).backward();
  CHECK(compiled.stats().captures == 1);
  CHECK_THROWS_WITH(compiled(leaf({1, 2, 3})), Catch::Contains("gives or saves something else"));
  auto one = rg::compile([](const Tensor& x) { return rg::sum(Positive::apply(x)); });
  one(leaf({1, -2, -1}));
  CHECK_THROWS_WITH(one(leaf({1, -2, -3})).backward(),
                    Catch::Contains("gives no gradient for argument 0, unlike before"));
  one(leaf({1, -2, -3})).backward();  // recorded again, with what was learnt
  CHECK(one.stats().captures == 2);
}

TEST_CASE("where a function gives no gradient, the records after it are skipped, as it is eagerly") {
  struct First : rg::Function<First> {
    static Tensor forward(rg::AutogradContext*, const Tensor& a, const Tensor& b) {
      return a * b.to_vector()[0];
    }
    static Tensors backward(rg::AutogradContext*, const Tensors& grads) { return {grads[0] * 2.0, {}}; }
  };
  const Tensor w = parameter({rg::Dim(4)}, 9);
  w.register_hook([](const Tensor& g) {
    note("w");
    return g;
  });
  struct Nothing : rg::Function<Nothing> {
    static Tensor forward(rg::AutogradContext*, const Tensor& a) { return a + a.to_vector()[0]; }
    static Tensors backward(rg::AutogradContext*, const Tensors&) {
      note("nothing");
      return {Tensor()};
    }
  };
  const auto body = [&](const Tensor& x) {
    return rg::sum(First::apply(rg::exp(x), rg::sin(w)) * Nothing::apply(rg::cos(x)));
  };
  auto compiled = rg::compile(body);
  auto step = rg::compile_step([&](const Tensor& x) {
    x.set_grad({});
    w.set_grad({});
    const Tensor y = body(x);
    y.backward();
    return y;
  });
  for (int i = 0; i < 4; ++i) {
    const Run eager = run(body, w, i);
    CHECK_FALSE(eager.tensors[2].defined());
    check_equal(eager, run(compiled, w, i));
    const Tensor x = parameter({rg::Dim(4)}, i), y = step(x);
    check_same(eager.tensors, {y, x.grad(), w.grad()});
  }
  CHECK(compiled.stats().captures == 1);
  CHECK(step.stats().captures == 1);
}

TEST_CASE("a traceable function is recorded through, at the first call") {
  const auto body = [](const Tensor& x) { return rg::sum(Cube::apply(rg::exp(x))); };
  auto compiled = rg::compile(body);
  const Tensor none = parameter({rg::Dim(1)});
  for (int i = 0; i < 3; ++i) check_equal(run(body, none, i), run(compiled, none, i));
  CHECK(compiled.stats().eager == 0);
  CHECK(compiled.stats().captures == 1);
  CHECK(count_nodes(*compiled.graph(), "function") == 0);
}

TEST_CASE("gradients of gradients go through the functions' own backward") {
  const Tensor w = spread({rg::Dim(4)}, 9);
  const auto body = [&](const Tensor& x) {
    return rg::sum(rg::exp(ScaleByLargest::apply(rg::sin(x), 0.5, w)[0]));
  };
  auto compiled = rg::compile(body);
  const auto second = [&](auto&& f, int i) {
    const Tensor x = parameter({rg::Dim(4)}, i);
    const Tensor dx = rg::autograd::grad({f(x)}, {x}, {}, {}, true)[0];
    return Tensors{dx.detach(), rg::autograd::grad({rg::sum(dx * dx)}, {x})[0]};
  };
  for (int i = 0; i < 3; ++i) {
    const Tensors eager = second(body, i), found = second(compiled, i);
    CHECK(same_bits(eager[0], found[0]));
    for (size_t k = 0; k < 4; ++k) CHECK(values(found[1])[k] == Approx(values(eager[1])[k]));
  }
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("compiled functions inside a function that is called as it is run as they are") {
  const Tensor w = parameter({rg::Dim(4)}, 9);
  auto inner = rg::compile([&](const Tensor& x) { return ScaleByLargest::apply(x, 0.5, w)[0]; });
  auto outer = rg::compile([&](const Tensor& x) { return rg::sum(rg::exp(inner(x))); });
  const auto body = [&](const Tensor& x) { return rg::sum(rg::exp(ScaleByLargest::apply(x, 0.5, w)[0])); };
  for (int i = 0; i < 3; ++i) check_equal(run(body, w, i), run(outer, w, i));
  CHECK(outer.stats().captures == 1);
  CHECK(outer.stats().eager == 1);
}
