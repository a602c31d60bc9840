// A table of user-defined functions, run in all modes: eager, captured backwards, compiled functions and steps. Each
// must give the same values and gradients, and call backward as often, with the same gradients defined and the same
// ones wanted. A row is a loss of two leaves, so a new kind of function is one more row. Not tested here: errors
// (function_views_test.cc and others).
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using rg::AutogradContext;
using Events = std::vector<std::string>;

Events events;

// The arguments of backward: for each gradient whether it is defined, or zeros; for each argument whether its gradient
// is wanted. A traceable function is not called in each run.
void note(std::string_view name, const AutogradContext* ctx, const Tensors& grads, size_t arguments) {
  std::string text = std::string(name) + ":";
  for (const Tensor& g : grads) {
    bool zeros = g.defined();
    if (g.defined())
      for (double v : g.to_vector()) zeros &= v == 0;
    text += !g.defined() ? " -" : zeros ? " 0" : " g";
  }
  text += " wants";
  for (size_t i = 0; i < arguments; ++i) text += ctx->needs_input_grad(i) ? " y" : " n";
  events.push_back(text);
}

template <bool Traceable>
void note_opaque(std::string_view name, const AutogradContext* ctx, const Tensors& grads, size_t arguments) {
  if constexpr (!Traceable) note(name, ctx, grads, arguments);
}

Tensor scaled(const Tensor& g, double factor) { return g.defined() ? g * factor : g; }

template <bool Traceable>
struct Product : rg::Function<Product<Traceable>> {
  static constexpr bool is_traceable = Traceable;
  static Tensor forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    ctx->save_for_backward({a, b});
    return a * b;
  }
  static Tensors backward(AutogradContext* ctx, Tensors grads) {
    note_opaque<Traceable>("product", ctx, grads, 2);
    const Tensors saved = ctx->get_saved_variables();
    return {ctx->needs_input_grad(0) ? grads[0] * saved[1] : Tensor(),
            ctx->needs_input_grad(1) ? grads[0] * saved[0] : Tensor(), Tensor()};
  }
};

// Two results, 2 x and 3 x, and the gradients that each of them receives.
template <bool Traceable, bool Materialize>
struct Pair : rg::Function<Pair<Traceable, Materialize>> {
  static constexpr bool is_traceable = Traceable;
  static Tensors forward(AutogradContext* ctx, const Tensor& x) {
    ctx->set_materialize_grads(Materialize);
    return {x * 2.0, x * 3.0};
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
    note_opaque<Traceable>("pair", ctx, grads, 1);
    const Tensor a = scaled(grads[0], 2), b = scaled(grads[1], 3);
    return {!a.defined() ? b : !b.defined() ? a : a + b};
  }
};

// Gives no gradient back.
template <bool Traceable>
struct Stops : rg::Function<Stops<Traceable>> {
  static constexpr bool is_traceable = Traceable;
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 1.0; }
  static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
    note_opaque<Traceable>("stops", ctx, grads, 1);
    return {Tensor()};
  }
};

template <bool Traceable>
struct Doubles : rg::Function<Doubles<Traceable>> {
  static constexpr bool is_traceable = Traceable;
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    x.mul_(2.0);
    ctx->mark_dirty({x});
    return x;
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
    note_opaque<Traceable>("doubles", ctx, grads, 1);
    return {grads[0] * 2.0};
  }
};

template <bool Traceable>
struct WithSign : rg::Function<WithSign<Traceable>> {
  static constexpr bool is_traceable = Traceable;
  static Tensors forward(AutogradContext* ctx, const Tensor& x) {
    const Tensor sign = rg::sign(x);
    ctx->mark_non_differentiable({sign});
    return {x * 2.0, sign};
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
    note_opaque<Traceable>("with sign", ctx, grads, 1);
    return {grads[0] * 2.0};
  }
};

// first * (list[0] + 2 list[1] + ...) + last, if that is there.
template <bool Traceable>
struct Weighted : rg::Function<Weighted<Traceable>> {
  static constexpr bool is_traceable = Traceable;
  static Tensor forward(AutogradContext* ctx, const Tensor& first, const Tensors& list, double scale,
                        const std::optional<Tensor>& last) {
    Tensor total = list[0];
    for (size_t i = 1; i < list.size(); ++i) total = total + list[i] * double(i + 1);
    ctx->save_for_backward({first, total});
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["count"] = static_cast<int64_t>(list.size());
    const Tensor y = first * total * scale;
    return last ? y + *last : y;
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
    const auto count = static_cast<size_t>(ctx->saved_data["count"].to_int());
    note_opaque<Traceable>("weighted", ctx, grads, count + 3);
    const Tensors saved = ctx->get_saved_variables();
    const Tensor g = grads[0] * ctx->saved_data["scale"];
    Tensors given{g * saved[1]};
    for (size_t i = 0; i < count; ++i) given.push_back(g * saved[0] * double(i + 1));
    given.push_back(Tensor());
    given.push_back(ctx->needs_input_grad(count + 2) ? grads[0] : Tensor());
    return given;
  }
};

template <bool Traceable>
struct Passes : rg::Function<Passes<Traceable>> {
  static constexpr bool is_traceable = Traceable;
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
    note_opaque<Traceable>("passes", ctx, grads, 1);
    return {grads[0] * 10.0};
  }
};

template <bool Traceable>
struct FirstTwo : rg::Function<FirstTwo<Traceable>> {
  static constexpr bool is_traceable = Traceable;
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.narrow(0, 0, 2); }
  static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
    note_opaque<Traceable>("first two", ctx, grads, 1);
    return {rg::cat({grads[0] * 5.0, rg::zeros({1})}, 0)};
  }
};

struct Row {
  const char* name;
  Tensor (*loss)(const Tensor& x, const Tensor& w);
};

template <bool T>
const std::vector<Row>& rows() {
  static const std::vector<Row> rows = {
      {"of two arguments",
       [](const Tensor& x, const Tensor& w) { return rg::sum(Product<T>::apply(x * 1.0, w)); }},
      {"of the same argument twice",
       [](const Tensor& x, const Tensor&) { return rg::sum(Product<T>::apply(x, x)); }},
      {"of a constant",
       [](const Tensor& x, const Tensor& w) { return rg::sum(Product<T>::apply(x, w.detach())); }},
      {"both results used",
       [](const Tensor& x, const Tensor&) {
         const Tensors y = Pair<T, true>::apply(x * 1.0);
         return rg::sum(y[0] * y[1]);
       }},
      {"one result used, zeros for the other",
       [](const Tensor& x, const Tensor&) { return rg::sum(Pair<T, true>::apply(x * 1.0)[1]); }},
      {"one result used, nothing for the other",
       [](const Tensor& x, const Tensor&) { return rg::sum(Pair<T, false>::apply(x * 1.0)[1]); }},
      {"zeros where no gradient comes",
       [](const Tensor& x, const Tensor& w) {
         return rg::sum(Stops<T>::apply(Pair<T, true>::apply(x * 1.0)[0] * 2.0)) + rg::sum(w);
       }},
      {"nothing where no gradient comes",
       [](const Tensor& x, const Tensor& w) {
         return rg::sum(Stops<T>::apply(Pair<T, false>::apply(x * 1.0)[0] * 2.0)) + rg::sum(w);
       }},
      {"behind it two functions without a gradient",
       [](const Tensor& x, const Tensor& w) {
         return rg::sum(Stops<T>::apply(Product<T>::apply(Passes<T>::apply(x * 1.0) * 2.0, w)));
       }},
      {"a result without a gradient, another with one",
       [](const Tensor& x, const Tensor& w) {
         const Tensors y = Pair<T, true>::apply(x * 1.0);
         return rg::sum(Stops<T>::apply(y[0])) + rg::sum(y[1] * w);
       }},
      {"marks dirty",
       [](const Tensor& x, const Tensor& w) {
         const Tensor y = x * 1.5;
         return rg::sum(Doubles<T>::apply(y) * rg::exp(y) * w);
       }},
      {"a result that is not differentiable",
       [](const Tensor& x, const Tensor& w) {
         const Tensors y = WithSign<T>::apply(x * 1.0);
         return rg::sum(y[0] * y[1] * w);
       }},
      {"a list and an optional tensor",
       [](const Tensor& x, const Tensor& w) {
         return rg::sum(
             Weighted<T>::apply(x, Tensors{w, x * 2.0, rg::exp(w)}, 0.5, std::optional<Tensor>(w)));
       }},
      {"a list of one, and none",
       [](const Tensor& x, const Tensor& w) {
         return rg::sum(Weighted<T>::apply(x, Tensors{w}, 0.5, std::optional<Tensor>()));
       }},
      {"a list with a constant",
       [](const Tensor& x, const Tensor& w) {
         return rg::sum(Weighted<T>::apply(x, Tensors{w.detach(), w}, 2.0, std::optional<Tensor>()));
       }},
      {"returns its argument",
       [](const Tensor& x, const Tensor& w) {
         const Tensor h = x * 1.0, y = Passes<T>::apply(h);
         return rg::sum(y * w) + rg::sum(h * h);
       }},
      {"returns a view of its argument",
       [](const Tensor& x, const Tensor& w) {
         const Tensor h = x * 1.0, y = FirstTwo<T>::apply(h);
         return rg::sum(y * y) + rg::sum(h * w);
       }},
  };
  return rows;
}

struct Run {
  Events events;
  Tensors tensors;
};

// The loss, and the gradients of both leaves, or of w alone; then those of other arguments are not wanted.
std::optional<Tensors> inputs(bool by_w, const Tensor& w) {
  return by_w ? std::optional<Tensors>(Tensors{w}) : std::nullopt;
}
Tensors differentiate(const Row& row, const Tensor& x, const Tensor& w, bool by_w) {
  const Tensor loss = row.loss(x, w);
  rg::autograd::backward({loss}, {}, {}, false, inputs(by_w, w));
  return {loss.detach(), x.grad(), w.grad()};
}

template <class F>
Run run(F&& f) {
  const Tensor x = parameter({rg::Dim(3)}, 1), w = parameter({rg::Dim(3)}, 2);
  events.clear();
  Tensors tensors = f(x, w);
  return {events, tensors};
}

void check_equal(const Run& expected, const Run& found) {
  CHECK(expected.events == found.events);
  check_same(expected.tensors, found.tensors);
}

template <bool T>
void walk_all() {
  for (const Row& row : rows<T>())
    for (const bool by_w : {false, true}) {
      if (by_w && !row.loss(leaf({1, 2, 3}), leaf({1, 2, 3})).requires_grad()) continue;
      INFO(row.name << (by_w ? ", by w" : "") << (T ? ", traceable" : ", opaque"));
      const auto eager = [&](const Tensor& x, const Tensor& w) { return differentiate(row, x, w, by_w); };
      const Run expected = run(eager);
      rg::CompiledBackward backward = rg::compile_backward();
      auto compiled = rg::compile([&](const Tensor& x, const Tensor& w) { return row.loss(x, w); });
      run([&](const Tensor& x, const Tensor& w) {  // shows it which gradients each opaque function gives
        compiled(x, w).backward();
        return Tensors{};
      });
      auto step = rg::compile_step([&](const Tensor& x, const Tensor& w) { return eager(x, w)[0]; });
      for (int i = 0; i < 3; ++i) {
        INFO("run " << i);
        {
          INFO("compile_backward");
          check_equal(expected, run([&](const Tensor& x, const Tensor& w) {
                        const Tensor loss = row.loss(x, w);
                        backward.backward({loss}, {}, {}, false, inputs(by_w, w));
                        return Tensors{loss.detach(), x.grad(), w.grad()};
                      }));
        }
        {
          INFO("compile");
          Run found = run([&](const Tensor& x, const Tensor& w) {
            const Tensor loss = compiled(x, w);
            rg::autograd::backward({loss}, {}, {}, false, inputs(by_w, w));
            return Tensors{loss.detach(), x.grad(), w.grad()};
          });
          if (by_w)
            found.events = expected.events;  // a compiled function has one backward, for all arguments
          check_equal(expected, found);
        }
        {
          INFO("compile_step");
          check_equal(expected, run([&](const Tensor& x, const Tensor& w) {
                        const Tensor loss = step(x, w);
                        return Tensors{loss.detach(), x.grad(), w.grad()};
                      }));
        }
      }
    }
}

}  // namespace

TEST_CASE("opaque user-defined functions in each mode: the same values, gradients and calls") {
  walk_all<false>();
}

TEST_CASE("traceable user-defined functions in each mode: the same values and gradients") {
  walk_all<true>();
}

namespace {

// f is compiled or not; the code after it gives no gradient to one or to both of its results.
template <bool Traceable>
void check_compiled_without_gradient(bool only_one) {
  const auto f = [](const Tensor& x) {
    const Tensors y = Pair<Traceable, true>::apply(x * 1.0);
    return Tensors{y[0] * 5.0, Passes<false>::apply(y[1] * 1.0), Product<false>::apply(x, x)};
  };
  auto compiled = rg::compile(f);
  rg::CompiledBackward backward = rg::compile_backward();
  const auto once = [&](auto&& function, bool captured) {
    return run([&](const Tensor& x, const Tensor& w) {
      const Tensors y = function(x);  // the last result is not reached
      const Tensor loss =
          rg::sum(Stops<false>::apply(y[0])) + rg::sum(only_one ? y[1] * w : Stops<false>::apply(y[1]) * w);
      if (captured)
        backward(loss);
      else
        loss.backward();
      return Tensors{loss.detach(), x.grad(), w.grad()};
    });
  };
  for (int i = 0; i < 3; ++i) {
    INFO("run " << i << (only_one ? ", one" : ", none") << (Traceable ? ", traceable" : ", opaque"));
    const Run expected = once(f, false);
    REQUIRE(expected.tensors[1].defined());
    check_equal(expected, once(f, true));
    check_equal(expected, once(compiled, false));
    check_equal(expected, once(compiled, true));
  }
}

}  // namespace

TEST_CASE(
    "a compiled function to whose results no gradient comes runs the user-defined functions after these") {
  for (const bool only_one : {true, false}) {
    check_compiled_without_gradient<false>(only_one);
    check_compiled_without_gradient<true>(only_one);
  }
}
