// Custom functions in a compiled backward: equal structures of different functions are not mixed up, aliasing
// and the order of saved tensors, backwards called inside a backward, hooks on one of two saved tensors. Not
// tested here: numbers kept in saved_data, materialised gradients, wrong results of backward.
#include "scenario.h"

using namespace scenario;

namespace {

template <int factor>
struct Times : rg::Function<Times<factor>> {
  static Tensor forward(rg::AutogradContext*, const Tensor& x) { return x * double(factor); }
  static Tensors backward(rg::AutogradContext*, const Tensors& grads) { return {grads[0] * double(factor)}; }
};

// a b, saved in this order.
struct Product : rg::Function<Product> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    ctx->save_for_backward({a, b});
    return a * b;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const Tensors saved = ctx->get_saved_variables();
    return {grads[0] * saved[1], grads[0] * saved[0]};
  }
};

// (a^2 + b^2) / 2 or, with other saved tensors at the same places, a b.
struct SavesInEitherOrder : rg::Function<SavesInEitherOrder> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& a, const Tensor& b, bool swapped) {
    if (swapped)
      ctx->save_for_backward({b, a});
    else
      ctx->save_for_backward({a, b});
    return swapped ? a * b : (a * a + b * b) * 0.5;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const Tensors saved = ctx->get_saved_variables();
    return {grads[0] * saved[0], grads[0] * saved[1], {}};
  }
};

// 2 a or 3 a, distinguished in backward only by the position at which a was saved; the other position is empty.
struct SavesAtEitherPlace : rg::Function<SavesAtEitherPlace> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& a, bool second) {
    ctx->save_for_backward(second ? Tensors{Tensor(), a} : Tensors{a, Tensor()});
    return a * (second ? 3.0 : 2.0);
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    return {grads[0] * (ctx->get_saved_variables()[0].defined() ? 2.0 : 3.0), {}};
  }
};

// Identity; its backward runs the backward of a graph of its own, of 4 p^2, and multiplies by that gradient.
struct RunsBackward : rg::Function<RunsBackward> {
  static Tensor forward(rg::AutogradContext*, const Tensor& x) { return x.clone(); }
  static Tensors backward(rg::AutogradContext*, const Tensors& grads) {
    rg::AutoGradMode on(true);
    const Tensor p = leaf({0.5, 1, 2});
    rg::sum(p * p * 4.0).backward();
    return {grads[0] * p.grad()};
  }
};

}  // namespace

TEST_CASE("S7 graphs of the same form made of two functions are never mixed up") {
  run_both({.steps = 4, .captures = 2}, [](Mode& mode, int step) {
    const Tensor x = leaf({1, 2, 3});
    mode.backward(rg::sum(step % 2 ? Times<3>::apply(x) : Times<2>::apply(x)));
    const double f = step % 2 ? 3 : 2;
    CHECK(values(x.grad()) == std::vector<double>{f, f, f});
    if (mode.traced()) CHECK(mode.captures() == std::min(step + 1, 2));
    return Tensors{x.grad()};
  });
}

TEST_CASE("S8 three instantiations of one function template are three structures") {
  run_both({.steps = 9, .captures = 3}, [](Mode& mode, int step) {
    const Tensor x = leaf({1, 2, 3});
    const int which = step % 3;
    mode.backward(rg::sum(which == 0   ? Times<5>::apply(x)
                          : which == 1 ? Times<7>::apply(x)
                                       : Times<11>::apply(x)));
    const double f = which == 0 ? 5 : which == 1 ? 7 : 11;
    CHECK(values(x.grad()) == std::vector<double>{f, f, f});
    if (mode.traced()) CHECK(mode.captures() == std::min(step + 1, 3));
    return Tensors{x.grad()};
  });
}

TEST_CASE("S9 a tensor saved twice is one slot, and another alias pattern gives its own gradients") {
  run_both({.steps = 6, .captures = 2}, [](Mode& mode, int step) {
    const Tensor a = leaf({1, 2, 3}), b = leaf({5, 7, 11});
    const bool same = step % 2 == 0;
    const int64_t before = mode.traced() ? mode.compiled()->stats().unpacks : 0;
    mode.backward(rg::sum(Product::apply(a, same ? a : b)));
    if (mode.traced()) CHECK(mode.compiled()->stats().unpacks - before == (same ? 1 : 2));
    CHECK(values(a.grad()) == (same ? std::vector<double>{2, 4, 6} : std::vector<double>{5, 7, 11}));
    CHECK(values(b.grad()) == (same ? std::vector<double>{} : std::vector<double>{1, 2, 3}));
    return Tensors{a.grad(), b.grad()};
  });
}

TEST_CASE("S9 an op that saves both operands, of one tensor and of two") {
  run_both({.steps = 6, .captures = 2}, [](Mode& mode, int step) {
    const Tensor a = leaf({1, 2, 3}), b = leaf({5, 7, 11});
    mode.backward(rg::sum(a * (step % 2 == 0 ? a : b)));
    CHECK(values(a.grad()) == (step % 2 == 0 ? std::vector<double>{2, 4, 6} : std::vector<double>{5, 7, 11}));
    return Tensors{a.grad(), b.grad()};
  });
}

TEST_CASE("S9 the order in which the same tensors are saved is structure") {
  run_both({.steps = 4, .captures = 2}, [](Mode& mode, int step) {
    const Tensor a = leaf({1, 2, 3}), b = leaf({5, 7, 11});
    const bool swapped = step % 2 == 1;
    mode.backward(rg::sum(SavesInEitherOrder::apply(a, b, swapped)));
    CHECK(values(a.grad()) == (swapped ? std::vector<double>{5, 7, 11} : std::vector<double>{1, 2, 3}));
    CHECK(values(b.grad()) == (swapped ? std::vector<double>{1, 2, 3} : std::vector<double>{5, 7, 11}));
    return Tensors{a.grad(), b.grad()};
  });
}

TEST_CASE("S9 the place of an undefined tensor among the saved ones is structure") {
  run_both({.steps = 4, .captures = 2}, [](Mode& mode, int step) {
    const Tensor a = leaf({1, 2, 3});
    mode.backward(rg::sum(SavesAtEitherPlace::apply(a, step % 2 == 1)));
    const double f = step % 2 == 1 ? 3 : 2;
    CHECK(values(a.grad()) == std::vector<double>{f, f, f});
    return Tensors{a.grad()};
  });
}

TEST_CASE("S11 a hook that runs the backward of another graph") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2, 3});
    const Tensor y = x * 2.0;
    int calls = 0;
    y.register_hook([&](const Tensor& g) {
      ++calls;
      rg::AutoGradMode on(true);
      const Tensor p = leaf({0.5, 1, 2});
      rg::sum(p * p * 4.0).backward();
      return g * p.grad();
    });
    mode.backward(rg::sum(y));
    CHECK(calls == 1);
    CHECK(values(x.grad()) == std::vector<double>{8, 16, 32});
    return Tensors{x.grad()};
  });
}

TEST_CASE("S11 a function whose backward runs the backward of another graph") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2, 3});
    mode.backward(rg::sum(RunsBackward::apply(x) * 2.0));
    CHECK(values(x.grad()) == std::vector<double>{8, 16, 32});
    return Tensors{x.grad()};
  });
}

TEST_CASE("S16 hooks on the first saved tensor, then on the second: both gradients are right") {
  run_both({.steps = 4, .captures = 2}, [](Mode& mode, int step) {
    const Tensor a = leaf({1, 2, 3}), b = leaf({5, 7, 11});
    const Tensor y = Product::apply(a, b);
    const int hooked = step % 2;
    int unpacks = 0;
    y.grad_fn().register_saved_tensor_hooks(
        hooked, rg::saved_tensor_hooks([](const Tensor& t) { return t * 4.0; },
                                       [&](const Tensor& packed) {
                                         ++unpacks;
                                         return packed * 0.5;  // twice what was saved
                                       }));
    mode.backward(rg::sum(y));
    CHECK(unpacks == 1);
    CHECK(values(a.grad()) ==
          (hooked == 1 ? std::vector<double>{10, 14, 22} : std::vector<double>{5, 7, 11}));
    CHECK(values(b.grad()) == (hooked == 0 ? std::vector<double>{2, 4, 6} : std::vector<double>{1, 2, 3}));
    return Tensors{a.grad(), b.grad()};
  });
}

TEST_CASE("a post-hook sees no gradient of a function that the backward does not want") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor a = leaf({1, 2, 3}), b = leaf({4, 5, 6});
    const Tensor y = Product::apply(a, b);
    int seen = 0;
    y.grad_fn().register_hook([&](const Tensors& grad_inputs, const Tensors&) {
      ++seen;
      CHECK(grad_inputs[0].defined());
      CHECK_FALSE(grad_inputs[1].defined());
      return Tensors();
    });
    const Tensors grads = mode.grad({rg::sum(y)}, {a});
    CHECK(seen == 1);
    return grads;
  });
}

TEST_CASE("S115 a function of a view whose base got a history after the view was made") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2, 3}), base = rg::zeros({3}), view = base.narrow(0, 0, 2);
    base.copy_(x * 1.0);
    REQUIRE(view.requires_grad());
    const Tensor y = Times<3>::apply(view);
    REQUIRE(y.requires_grad());
    mode.backward(rg::sum(y));
    CHECK(values(x.grad()) == std::vector<double>{3, 3, 0});
    return Tensors{x.grad()};
  });
}
