// User-defined functions that receive no gradient: PyTorch runs them, with zeros or undefined gradients, and their
// hooks. Builtin ops are skipped, but the functions after them in the backward run. Not tested here: compiled functions
// and steps (tests/tracer/function_modes_test.cc).
#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

std::string kind(const Tensor& g) {
  return !g.defined() ? "undefined" : values(g.detach()) == Values(g.numel(), 0.0) ? "zeros" : "gradient";
}
std::string kinds(const Tensors& grads) {
  std::string all;
  for (const Tensor& g : grads) all += " " + kind(g);
  return all;
}

Mode* logs = nullptr;

struct GivesNone : Function<GivesNone> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 1.0; }
  static Tensors backward(AutogradContext*, const Tensors&) { return {Tensor()}; }
};

template <bool Materialize, bool Traceable>
struct Twice : Function<Twice<Materialize, Traceable>> {
  static constexpr bool is_traceable = Traceable;
  static Tensors forward(AutogradContext* ctx, const Tensor& x) {
    ctx->set_materialize_grads(Materialize);
    ctx->save_for_backward({x});
    return {x * 2.0, x * 3.0};
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
    if (!Traceable) logs->log("twice" + kinds(grads));
    const Tensor x = ctx->get_saved_variables()[0];
    return {grads[0].defined() ? grads[0] * 2.0 + x * 0.0 : Tensor()};
  }
};

template <bool Materialize, bool Traceable>
void check_runs(Values expected) {
  run_both([&](Mode& mode) {
    logs = &mode;
    const Tensor x = leaf({1, 2}), h = x * 1.0;
    const Tensors y = Twice<Materialize, Traceable>::apply(h);
    for (const Tensor& t : y)
      t.register_hook([&](const Tensor& g) { return mode.log("tensor hook " + kind(g)), Tensor(); });
    y[0].retain_grad();
    y[0].grad_fn().register_prehook([&](const Tensors& g) { mode.log("pre-hook" + kinds(g)); });
    y[0].grad_fn().register_hook([&](const Tensors& in, const Tensors& out) {
      mode.log("post-hook" + kinds(in) + " |" + kinds(out));
    });
    const Tensor builtin = y[0] * 5.0;
    builtin.register_hook([&](const Tensor&) { mode.log("never"); });
    builtin.grad_fn().register_prehook([&](const Tensors&) { mode.log("never"); });
    mode.backward(sum(GivesNone::apply(builtin)));
    CHECK_FALSE(y[0].grad().defined());
    const std::string from = Materialize ? " zeros zeros" : " undefined undefined";
    const std::string to = Materialize ? " zeros" : " undefined";
    Events events{"tensor hook undefined", "tensor hook undefined", "pre-hook undefined undefined"};
    if (!Traceable) events.push_back("twice" + from);
    events.push_back("post-hook" + to + " | undefined undefined");
    CHECK(mode.events == events);
    CHECK((x.grad().defined() ? values(x.grad()) : Values()) == expected);
    return Tensors{x.grad()};
  });
}

}  // namespace

TEST_CASE("a function runs though no gradient comes to it, with zeros or without, and so do its hooks") {
  check_runs<true, false>({0, 0});
  check_runs<true, true>({0, 0});
  check_runs<false, false>({});
  check_runs<false, true>({});
}

TEST_CASE("it runs when the function itself changes its mind from run to run") {
  struct Sometimes : Function<Sometimes> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, bool gives) {
      ctx->saved_data["gives"] = gives;
      return x * 1.0;
    }
    static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
      return {ctx->saved_data["gives"].to_int() ? grads[0] : Tensor(), {}};
    }
  };
  CompiledBackward compiled = compile_backward();
  for (const bool gives : {true, false, true, false}) {
    Events events;
    Tensors grads;
    for (CompiledBackward* by : {static_cast<CompiledBackward*>(nullptr), &compiled}) {
      Mode mode(by);
      logs = &mode;
      const Tensor x = leaf({1, 2});
      mode.backward(sum(Sometimes::apply(Twice<true, false>::apply(x * 1.0)[0] * 2.0, gives)));
      CHECK(mode.events == Events{gives ? "twice gradient zeros" : "twice zeros zeros"});
      CHECK(values(x.grad()) == (gives ? Values{4, 4} : Values{0, 0}));
    }
  }
}

TEST_CASE("an answer in place of a gradient that is not there is refused") {
  for (const int which : {0, 1, 2}) {
    Mode mode(nullptr);
    logs = &mode;
    const Tensor x = leaf({1, 2}), y = Twice<true, false>::apply(x * 1.0)[0];
    if (which == 0) y.register_hook([](const Tensor&) { return ones({2}); });
    if (which == 1) y.grad_fn().register_prehook([](const Tensors&) { return Tensors{ones({2}), {}}; });
    if (which == 2) y.register_hook([](const Tensor&) {});
    const auto run = [&] { sum(GivesNone::apply(y)).backward(); };
    if (which < 2)
      CHECK(category_of(run) == Category::hook_bad_result);
    else
      run();
  }
}

TEST_CASE("a function whose gradient is not wanted does not run") {
  run_both([&](Mode& mode) {
    logs = &mode;
    const Tensor x = leaf({1, 2}), w = leaf({3, 4});
    const Tensor y = GivesNone::apply(Twice<true, false>::apply(x * 1.0)[0]);
    const Tensors g = mode.grad(Tensors{sum(y * w)}, Tensors{w});
    CHECK(mode.events == Events{});
    CHECK(values(g[0]) == Values{1 * 2, 2 * 2});
    return g;
  });
}

TEST_CASE("with create_graph: zeros that can be differentiated again") {
  Mode mode(nullptr);
  logs = &mode;
  const Tensor x = leaf({1, 2});
  const Tensor g =
      autograd::grad({sum(GivesNone::apply(Twice<true, false>::apply(x * x)[0]))}, {x}, {}, {}, true)[0];
  CHECK(values(g.detach()) == Values{0, 0});
  CHECK(values(autograd::grad({sum(g)}, {x})[0]) == Values{0, 0});
}

TEST_CASE("a multi-grad hook counts a gradient that has not come to a function") {
  run_both([&](Mode& mode) {
    logs = &mode;
    const Tensor x = leaf({1, 2});
    const Tensors y = Twice<true, false>::apply(x * 1.0);
    autograd::register_multi_grad_hook({y[0], y[1]},
                                       [&](const Tensors& grads) { mode.log("all" + kinds(grads)); });
    mode.backward(sum(y[1]));
    CHECK(mode.events == Events{"all undefined gradient", "twice zeros gradient"});
    return Tensors{x.grad()};
  });
}

TEST_CASE("needs_input_grad is that of the backward that runs") {
  static std::vector<bool> needs;
  struct Product : Function<Product> {
    static Tensor forward(AutogradContext* ctx, const Tensor& a, const Tensor& b, double) {
      ctx->save_for_backward({a, b});
      return a * b;
    }
    static Tensors backward(AutogradContext* ctx, const Tensors& g) {
      needs = {ctx->needs_input_grad(0), ctx->needs_input_grad(1), ctx->needs_input_grad(2),
               ctx->needs_input_grad(3)};
      const Tensors saved = ctx->get_saved_variables();
      return {needs[0] ? g[0] * saved[1] : Tensor(), needs[1] ? g[0] * saved[0] : Tensor(), {}};
    }
  };
  using Needs = std::vector<bool>;
  int64_t evictions = 0;
  CompiledBackward compiled = compile_backward();
  for (CompiledBackward* by : {static_cast<CompiledBackward*>(nullptr), &compiled, &compiled}) {
    Mode mode(by);
    const Tensor x = leaf({1, 2}), y = leaf({3, 4}), a = x * 2.0, b = y * 1.0;
    const Tensor out = sum(Product::apply(a, b, 1.0));
    CHECK(values(mode.grad(out, x, true)) == Values{6, 8});
    CHECK(needs == Needs{true, false, false, false});
    CHECK(values(mode.grad(out, b, true)) == Values{2, 4});
    CHECK(needs == Needs{false, true, false, false});
    CHECK(values(mode.grad(out, y, true, true).detach()) == Values{2, 4});
    CHECK(needs == Needs{false, true, false, false});
    mode.backward_into(out, {x}, true);
    CHECK(needs == Needs{true, false, false, false});
    mode.backward(out);
    CHECK(needs == Needs{true, true, false, false});
    CHECK(values(x.grad()) == Values{12, 16});
    const Tensor with_constant = sum(Product::apply(a.detach(), b, 1.0));
    mode.backward(with_constant);
    CHECK(needs == Needs{false, true, false, false});
    evictions += compiled.stats().evictions;
  }
  CHECK(evictions == 0);
  CHECK(compiled.stats().captures <= 6);
}

}  // namespace retrograd::scenario
