// Differentiation inside code that is being recorded: every function that differentiates, called by every kind of
// traceable code, in every mode, gives the same as eagerly, or is refused with the line of the call. Never another
// gradient.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
namespace ag = rg::autograd;
using rg::Category;

// The derivative of sin at x, times g, by each function that can say it.
using Derivative = Tensor (*)(const Tensor& x, const Tensor& g);

Tensor sin_of(const Tensor& x) { return rg::sin(x); }

Tensor by_vjp(const Tensor& x, const Tensor& g) {
  return ag::vjp([](const Tensors& v) { return Tensors{sin_of(v[0])}; }, {x}, {g}).gradients[0];
}
Tensor by_vjp_with_graph(const Tensor& x, const Tensor& g) {
  return ag::vjp([](const Tensors& v) { return Tensors{sin_of(v[0])}; }, {x}, {g}, {.create_graph = true})
      .gradients[0];
}
Tensor by_jacobian(const Tensor& x, const Tensor& g) {
  const Tensor j = ag::jacobian([](const Tensors& v) { return Tensors{sin_of(v[0])}; }, {x})[0][0];
  return rg::mv(j, g);
}
// Of -sin, whose Hessian is sin's... the Hessian of sum(-cos) is diag(cos).
Tensor by_hessian(const Tensor& x, const Tensor& g) {
  const Tensor h = ag::hessian([](const Tensors& v) { return -rg::sum(rg::cos(v[0])); }, {x})[0][0];
  return rg::mv(h, g);
}
Tensor by_vhp(const Tensor& x, const Tensor& g) {
  return ag::vhp([](const Tensors& v) { return -rg::sum(rg::cos(v[0])); }, {x}, {g}).product[0];
}
Tensor by_hvp(const Tensor& x, const Tensor& g) {
  return ag::hvp([](const Tensors& v) { return -rg::sum(rg::cos(v[0])); }, {x}, {g}).product[0];
}
Tensor by_jvp(const Tensor& x, const Tensor& g) {
  return ag::jvp([](const Tensors& v) { return Tensors{sin_of(v[0])}; }, {x}, {g}).tangents[0];
}
Tensor by_grad(const Tensor& x, const Tensor& g) {
  rg::EnableGradGuard on;
  const Tensor z = x.detach().requires_grad_();
  return ag::grad({sin_of(z)}, {z}, {g})[0];
}
Tensor by_grad_with_graph(const Tensor& x, const Tensor& g) {
  rg::EnableGradGuard on;
  const Tensor z = x.detach().requires_grad_();
  return ag::grad({sin_of(z)}, {z}, {g}, true, true)[0];
}
Tensor by_backward(const Tensor& x, const Tensor& g) {
  rg::EnableGradGuard on;
  const Tensor z = x.detach().requires_grad_();
  sin_of(z).backward(g);
  sin_of(z).backward(g * 0.0);  // adds to the present gradient
  return z.grad();
}
Tensor by_compiled_backward(const Tensor& x, const Tensor& g) {
  rg::EnableGradGuard on;
  rg::CompiledBackward compiled = rg::compile_backward();
  const Tensor z = x.detach().requires_grad_();
  return compiled.grad({sin_of(z)}, {z}, {g})[0];
}
Tensor by_scope(const Tensor& x, const Tensor& g) {
  rg::CompiledBackward compiled = rg::compile_backward();
  rg::CompiledBackwardScope scope(compiled);
  return by_grad(x, g);
}
Tensor by_hooked_grad(const Tensor& x, const Tensor& g) {
  rg::EnableGradGuard on;
  const Tensor z = x.detach().requires_grad_();
  const Tensor y = sin_of(z);
  y.register_hook([](const Tensor& q) { return q * 2.0; });
  z.register_hook([](const Tensor& q) { return q * 0.5; });
  y.grad_fn().register_prehook([](const Tensors& q) { return Tensors{q[0] * 4.0}; });
  return ag::grad({y}, {z}, {g})[0] * 0.25;
}
Tensor by_packed_grad(const Tensor& x, const Tensor& g) {
  rg::EnableGradGuard on;
  rg::SavedTensorHooksGuard guard([](const Tensor& t) { return t * 2.0; },
                                  [](const Tensor& t) { return t * 0.5; });
  const Tensor z = x.detach().requires_grad_();
  return ag::grad({sin_of(z)}, {z}, {g})[0];
}

// A user-defined function whose own backward is requested.
struct Sin : rg::Function<Sin> {
  static constexpr bool is_traceable = true;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return rg::sin(x);
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    return {g[0] * rg::cos(ctx->get_saved_variables()[0])};
  }
};
struct OpaqueSin : rg::Function<OpaqueSin> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return rg::sin(x);
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    return {g[0] * rg::cos(ctx->get_saved_variables()[0])};
  }
};
template <class F>
Tensor through_function(const Tensor& x, const Tensor& g) {
  rg::EnableGradGuard on;
  const Tensor z = x.detach().requires_grad_();
  return ag::grad({F::apply(z)}, {z}, {g})[0];
}

struct Row {
  const char* name;
  Derivative derivative;
};
const Row kRows[] = {{"vjp", by_vjp},
                     {"vjp with graph", by_vjp_with_graph},
                     {"jacobian", by_jacobian},
                     {"hessian", by_hessian},
                     {"vhp", by_vhp},
                     {"hvp", by_hvp},
                     {"jvp", by_jvp},
                     {"grad", by_grad},
                     {"grad with graph", by_grad_with_graph},
                     {"backward", by_backward},
                     {"compiled backward", by_compiled_backward},
                     {"grad in a scope", by_scope},
                     {"grad with hooks", by_hooked_grad},
                     {"grad of packed values", by_packed_grad},
                     {"traceable function", through_function<Sin>},
                     {"opaque function", through_function<OpaqueSin>}};

// The function that is used by ByRow's backward: set by the test that runs.
Derivative derivative = nullptr;

struct ByRow : rg::Function<ByRow> {
  static constexpr bool is_traceable = true;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return rg::sin(x);
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    return {derivative(ctx->get_saved_variables()[0], g[0])};
  }
};

// Each kind of traceable code; what it gives is sin(x)'s gradient or a multiple of it.
struct Place {
  const char* name;
  Tensor (*loss)(const Tensor& x);
  bool has_hooks = true;
};
Tensor in_function(const Tensor& x) { return rg::sum(ByRow::apply(x) * x); }
Tensor in_tensor_hook(const Tensor& x) {
  const Tensor h = x * 1.5;
  h.register_hook([at = spread(rg::Shape{3}, 5)](const Tensor& g) {
     return derivative(at, g);
   }).set_traceable();
  return rg::sum(h * h);
}
Tensor in_pre_hook(const Tensor& x) {
  const Tensor h = rg::exp(x);
  h.grad_fn()
      .register_prehook(
          [at = spread(rg::Shape{3}, 6)](const Tensors& g) { return Tensors{derivative(at, g[0])}; })
      .set_traceable();
  return rg::sum(h * h);
}
Tensor in_post_hook(const Tensor& x) {
  const Tensor h = rg::exp(x);
  h.grad_fn()
      .register_hook([at = spread(rg::Shape{3}, 7)](const Tensors& in, const Tensors& out) {
        return Tensors{derivative(at, in[0]) + out[0]};
      })
      .set_traceable();
  return rg::sum(h * h);
}
Tensor in_leaf_hook(const Tensor& x) {
  x.register_hook([at = spread(rg::Shape{3}, 8)](const Tensor& g) {
     return derivative(at, g);
   }).set_traceable();
  return rg::sum(x * x * x);
}
Tensor in_unpack(const Tensor& x) {
  rg::SavedTensorHooksGuard guard(rg::saved_tensor_hooks(
      [](const Tensor& t) { return t; },
      [at = spread(rg::Shape{3}, 9)](const Tensor& t) { return derivative(at, t); }, true));
  return rg::sum(rg::sin(x));
}
Tensor in_forward(const Tensor& x) { return rg::sum(derivative(x, rg::cos(x)) * x); }

const Place kPlaces[] = {{"function", in_function, false}, {"tensor hook", in_tensor_hook},
                         {"pre hook", in_pre_hook},        {"post hook", in_post_hook},
                         {"leaf hook", in_leaf_hook},      {"unpack hook", in_unpack},
                         {"forward", in_forward, false}};

Tensor point() { return spread(rg::Shape{3}, 1).requires_grad_(); }

struct Found {
  Tensors values;
  std::string error;
  std::optional<Category> category;
};
template <class F>
Found found(const F& f) {
  try {
    return {f(), {}, {}};
  } catch (const rg::Error& e) {
    return {{}, e.what(), e.category()};
  }
}

void compare(const Found& eager, const Found& other) {
  INFO("error: " << other.error);
  if (!other.error.empty()) {
    CHECK(other.category == Category::unsupported);
    CHECK(other.error.find("nested_differentiation_test.cc:") != std::string::npos);
    return;
  }
  check_same(eager.values, other.values);
}

bool are_near(const Tensor& a, const Tensor& b) { return rg::amax(rg::abs(a - b)).item<double>() < 1e-5; }

Tensors first_order(const Tensor& x, const std::function<void(const Tensor&)>& backward, const Place& place) {
  const Tensor loss = place.loss(x);
  backward(loss);
  return {loss.detach(), x.grad()};
}

}  // namespace

TEST_CASE("each function that differentiates, in each kind of traceable code, in each mode") {
  for (const Row& row : kRows)
    for (const Place& place : kPlaces) {
      INFO(row.name << " in " << place.name);
      derivative = row.derivative;
      const Found eager = found([&] {
        return first_order(
            point(), [](const Tensor& l) { l.backward(); }, place);
      });
      REQUIRE(eager.error == "");
      {
        INFO("traced");
        rg::CompiledBackward compiled = rg::compile_backward();
        for (int i = 0; i < 2; ++i)
          compare(eager, found([&] { return first_order(point(), std::ref(compiled), place); }));
      }
      {
        INFO("compiled");
        auto f = rg::compile([&](const Tensor& x) { return place.loss(x); });
        for (int i = 0; i < 3; ++i)
          compare(eager, found([&] {
                    const Tensor x = point(), loss = f(x);
                    loss.backward();
                    return Tensors{loss.detach(), x.grad()};
                  }));
      }
      {
        INFO("step");
        auto step = rg::compile_step([&](const Tensor& x) {
          const Tensor loss = place.loss(x);
          loss.backward();
          return Tensors{loss.detach(), x.grad()};
        });
        for (int i = 0; i < 3; ++i) compare(eager, found([&] { return step(point()); }));
      }
    }
}

TEST_CASE("second derivatives through traceable code that differentiates") {
  for (const Row& row : kRows)
    for (const Place& place : kPlaces) {
      INFO(row.name << " in " << place.name);
      derivative = row.derivative;
      const auto twice = [&](auto&& f, const auto& grad) {
        const Tensor x = point();
        const Tensor g = grad(Tensors{f(x)}, Tensors{x}, true)[0];
        if (!g.requires_grad()) return Tensors{g};
        return Tensors{g.detach(), grad(Tensors{rg::sum(g * g)}, Tensors{x}, false)[0]};
      };
      const auto plain = [](const Tensors& roots, const Tensors& inputs, bool create_graph) {
        return ag::grad(roots, inputs, {}, create_graph, create_graph, true, true);
      };
      const Found eager = found([&] { return twice(place.loss, plain); });
      if (!eager.error.empty()) continue;
      {
        INFO("traced");
        rg::CompiledBackward compiled = rg::compile_backward();
        const auto traced = [&](const Tensors& roots, const Tensors& inputs, bool create_graph) {
          return compiled.grad(roots, inputs, {}, create_graph, create_graph, true, true);
        };
        for (int i = 0; i < 2; ++i) compare(eager, found([&] { return twice(place.loss, traced); }));
      }
      if (!place.has_hooks) {  // which a second derivative through a compiled function passes by
        INFO("compiled");
        auto f = rg::compile([&](const Tensor& x) { return place.loss(x); });
        for (int i = 0; i < 3; ++i) {
          const Found other = found([&] { return twice(f, plain); });
          INFO("error: " << other.error);
          if (other.error.empty()) {
            REQUIRE(other.values.size() == eager.values.size());
            for (size_t k = 0; k < other.values.size(); ++k)
              CHECK(are_near(other.values[k], eager.values[k]));
          } else {
            compare(eager, other);
          }
        }
      }
      {
        INFO("step");
        auto step = rg::compile_step([&](const Tensor& x) {
          const Tensor g = ag::grad({place.loss(x)}, {x}, {}, true, true, true, true)[0];
          if (!g.requires_grad()) return Tensors{g};
          return Tensors{g.detach(), ag::grad({rg::sum(g * g)}, {x}, {}, {}, false, true, true)[0]};
        });
        for (int i = 0; i < 3; ++i) compare(eager, found([&] { return step(point()); }));
      }
    }
}

TEST_CASE("a graph that was made before the recording is refused there, with the line, and stays as it was") {
  const Tensor z = point();
  const Tensor z0 = z.detach().requires_grad_(), f0 = rg::sin(z0);
  const auto again = [=](const Tensor& g) { return ag::grad({f0}, {z0}, {g}, true)[0]; };
  const auto check_refused = [&](const auto& f) {
    const std::string error = error_of(f);
    INFO(error);
    CHECK(error.find("differentiates sin made at") != std::string::npos);
    CHECK(error.find("nested_differentiation_test.cc:") != std::string::npos);
    CHECK(category_of(f) == Category::unsupported);
  };
  rg::CompiledBackward compiled = rg::compile_backward();
  {
    INFO("leaf hook");
    const Tensor w = point();
    w.register_hook(again).set_traceable();
    check_refused([&] { compiled(rg::sum(w * w)); });
    auto step = rg::compile_step([&] { rg::sum(w * w).backward(); });
    check_refused([&] { step(); });
  }
  for (int kind = 0; kind < 3; ++kind) {
    INFO("kind " << kind);
    const auto loss = [&](const Tensor& x) {
      const Tensor h = rg::exp(x);
      if (kind == 0) h.register_hook(again).set_traceable();
      if (kind == 1)
        h.grad_fn().register_prehook([=](const Tensors& g) { return Tensors{again(g[0])}; }).set_traceable();
      if (kind == 2)
        h.grad_fn()
            .register_hook([=](const Tensors& g, const Tensors&) { return Tensors{again(g[0])}; })
            .set_traceable();
      return rg::sum(h);
    };
    check_refused([&] { compiled(loss(point())); });
    auto f = rg::compile(loss);
    check_refused([&] { f(point()).backward(); });
    auto step = rg::compile_step([&](const Tensor& x) { loss(x).backward(); });
    check_refused([&] { step(point()); });
  }
  CHECK(values(ag::grad({f0}, {z0}, {rg::ones({3})})[0]) == values(rg::cos(z0)));
}

TEST_CASE("traceable code cannot accumulate into a leaf from outside with a backward that is recorded") {
  const Tensor w = point();
  const auto loss = [&](const Tensor& x) {
    const Tensor h = rg::exp(x);
    h.register_hook([w](const Tensor& g) {
       rg::EnableGradGuard on;
       rg::sum(w * w).backward();
       return g;
     }).set_traceable();
    return rg::sum(h);
  };
  rg::CompiledBackward compiled = rg::compile_backward();
  for (const std::string& error : {error_of([&] { compiled(loss(point())); }),
                                   error_of([&] { rg::compile(loss)(point()).backward(); })}) {
    INFO(error);
    CHECK(error.find("accumulates into .grad of a leaf from outside") != std::string::npos);
    CHECK(error.find("nested_differentiation_test.cc:") != std::string::npos);
  }
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("a derivative that is taken in a backward with create_graph can be differentiated by default") {
  const auto f = [](const Tensors& x) { return rg::sum(ByRow::apply(x[0])); };
  for (const Row& row : kRows) {
    if (row.derivative != by_vjp && row.derivative != by_jacobian && row.derivative != by_hessian &&
        row.derivative != by_vhp && row.derivative != by_hvp)
      continue;
    INFO(row.name);
    derivative = row.derivative;
    const Tensor x = spread(rg::Shape{3}, 1);
    const auto scalar = [&](const Tensors& v) { return f(v); };
    const Tensor found = ag::hessian(scalar, {x})[0][0];
    CHECK(are_near(found, rg::diag(-rg::sin(x))));
  }
  // Outside of a backward, and where it is switched off, the result has no history.
  const Tensor x = point();
  const auto sine = [](const Tensors& v) { return Tensors{rg::sin(v[0])}; };
  CHECK_FALSE(ag::vjp(sine, {x}, {rg::ones({3})}).gradients[0].requires_grad());
  bool looked = false;
  const Tensor h = x * 1.0;
  h.register_hook([&](const Tensor& g) {
    looked = true;
    CHECK(ag::vjp(sine, {x}, {g}).gradients[0].requires_grad());
    CHECK_FALSE(ag::vjp(sine, {x}, {g}, {.create_graph = false}).gradients[0].requires_grad());
  });
  ag::grad({rg::sum(h * h)}, {x}, {}, true, true);
  CHECK(looked);
}

TEST_CASE("code in a NoGradGuard is not differentiated where a captured backward is differentiated again") {
  const auto square_in_no_grad = [](const Tensor& g, const Tensor& x) {
    rg::NoGradGuard no_grad;
    return g * x * x;
  };
  const auto second = [&](bool partly, auto&& grad) {
    const Tensor x = leaf({2, 3}), h = rg::exp(x);
    h.register_hook([=](const Tensor& g) {
       const Tensor constant = square_in_no_grad(g, x);
       return partly ? constant * x : constant;
     }).set_traceable();
    const Tensor first = grad({rg::sum(h * h)}, x, true);
    return Tensors{first.detach(), grad({rg::sum(first)}, x, false)};
  };
  for (const bool partly : {false, true}) {
    INFO("partly " << partly);
    const Tensors expected = second(partly, [](const Tensors& roots, const Tensor& x, bool create_graph) {
      return ag::grad(roots, {x}, {}, {}, create_graph)[0];
    });
    rg::CompiledBackward compiled = rg::compile_backward();
    for (int i = 0; i < 3; ++i)
      check_same(expected, second(partly, [&](const Tensors& roots, const Tensor& x, bool create_graph) {
                   return compiled.grad(roots, {x}, {}, {}, create_graph)[0];
                 }));
  }
}
