// User-defined functions and the cache of graphs: which properties of a function are structure (unused results, saved
// fields and their order), and which are not (numbers). Not tested here: wrong results and side effects
// (function_results_test.cc).
#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

struct MayForget : Function<MayForget> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, bool saves) {
    if (saves) ctx->save_for_backward({x});
    return x * 1.0;
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& g) {
    const Tensors saved = ctx->get_saved_variables();
    return {saved.empty() ? g[0] : g[0] * saved[0], {}};
  }
};

// How one call of `Two` behaves; the same class for all of them.
struct Behaviour {
  bool zeros = true;  // materialise gradients of unused results
  bool save_more = false;
};

struct Two : Function<Two> {
  static Tensors forward(AutogradContext* ctx, const Tensor& x, Behaviour b) {
    ctx->set_materialize_grads(b.zeros);
    ctx->save_for_backward(b.save_more ? Tensors{x, x * 3.0} : Tensors{x});
    return {x * 2.0, x * 5.0};
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& g) {
    const Tensors saved = ctx->get_saved_variables();
    Tensor sum = g[0] * saved[0];
    if (g[1].defined()) sum = sum + g[1] * 7.0 + 1.0;
    if (saved.size() > 1) sum = sum * saved[1];
    return {sum, {}};
  }
};

struct Difference : Function<Difference> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y, bool swapped) {
    ctx->save_for_backward(swapped ? Tensors{y, x} : Tensors{x, y});
    return x * 1.0;
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& g) {
    const Tensors saved = ctx->get_saved_variables();
    return {g[0] * (saved[0] - saved[1]), {}, {}};
  }
};

struct Scaled : Function<Scaled> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, Scalar factor) {
    ctx->saved_data["factor"] = factor;
    return x * factor;
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& g) {
    return {g[0] * ctx->saved_data["factor"], {}};
  }
};

}  // namespace

TEST_CASE("S121 whether an unused result has zeros or nothing, and one more saved field, are structure") {
  CompiledBackward compiled = compile_backward();
  const auto check = [&](Behaviour b, double expected) {
    for (const bool traced : {false, true}) {
      Mode mode(traced ? &compiled : nullptr);
      const Tensor x = leaf({3, 3});
      mode.backward(sum(Two::apply(x, b)[0]));
      INFO((traced ? "traced" : "eager"));
      CHECK(values(x.grad()) == Values{expected, expected});
    }
  };
  check({true, false}, 4);  // 3 + 7 * 0 + 1
  check({true, false}, 4);
  CHECK(compiled.stats().captures == 1);
  check({false, false}, 3);
  CHECK(compiled.stats().captures == 2);
  check({true, true}, 36);
  CHECK(compiled.stats().captures == 3);
  check({true, false}, 4);
  check({false, false}, 3);
  CHECK(compiled.stats().captures == 3);
}

TEST_CASE("S121 the order in which a function saves its tensors is structure") {
  CompiledBackward compiled = compile_backward();
  for (const bool swapped : {false, true, false, true})
    for (const bool traced : {false, true}) {
      Mode mode(traced ? &compiled : nullptr);
      const Tensor x = leaf({5, 7}), y = tensor({1.0, 2});
      mode.backward(sum(Difference::apply(x, y, swapped)));
      INFO((traced ? "traced" : "eager"));
      CHECK(values(x.grad()) == (swapped ? Values{-4, -5} : Values{4, 5}));
    }
  CHECK(compiled.stats().captures <= 2);
}

TEST_CASE("S122 integers 1 2 3 1 and floats 1.1 2.2 3.3 1.1 that a function keeps: one capture each") {
  for (const bool integers : {true, false}) {
    CompiledBackward compiled = compile_backward();
    for (const int i : {1, 2, 3, 1}) {
      const Scalar factor = integers ? Scalar(i) : Scalar(i * 1.1);
      Tensor found[2];
      for (const bool traced : {false, true}) {
        Mode mode(traced ? &compiled : nullptr);
        const Tensor x = leaf({1, 2});
        mode.backward(sum(Scaled::apply(x, factor)));
        found[traced] = x.grad();
      }
      REQUIRE(same_bits(found[0], found[1]));
      CHECK(values(found[0])[0] == Approx(factor.to_double()));
    }
    INFO((integers ? "integers" : "floats"));
    CHECK(compiled.stats().captures == 1);
  }
}

TEST_CASE("S123 an argument that is no tensor takes an undefined gradient") {
  run_both([](Mode& mode) {
    const Tensor x = leaf({1, 2}), fixed = tensor({1.0, 2});
    mode.backward(sum(Scaled::apply(x, Scalar(2.5)) + Difference::apply(x, fixed, false)));
    CHECK(values(x.grad()) == Values{2.5, 2.5});
    CHECK_FALSE(fixed.grad().defined());
    return Tensors{x.grad()};
  });
}

TEST_CASE("S121 whether a function saves its argument is structure") {
  CompiledBackward compiled = compile_backward();
  for (const bool saves : {true, false, true, false})
    for (const bool traced : {false, true}) {
      Mode mode(traced ? &compiled : nullptr);
      const Tensor x = leaf({5, 7});
      mode.backward(sum(MayForget::apply(x, saves)));
      INFO((traced ? "traced" : "eager"));
      CHECK(values(x.grad()) == (saves ? Values{5, 7} : Values{1, 1}));
    }
  CHECK(compiled.stats().captures == 2);
}

}  // namespace retrograd::scenario
