// grad() and backward(inputs): what is returned, what is unchanged, which parts of a graph run, several roots. Not
// tested here: the order of events and the moment when an input's gradient is captured (hooks scenarios).
#include "scenario.h"

using namespace scenario;
using Values = std::vector<double>;

TEST_CASE("S17 grad() of two inputs leaves .grad empty") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor y = leaf({1, 2}), z = leaf({3, 5});
    const Tensors grads = mode.grad({rg::sum(y * z + z)}, {y, z});
    REQUIRE(grads.size() == 2);
    CHECK(values(grads[0]) == Values{3, 5});
    CHECK(values(grads[1]) == Values{2, 3});
    CHECK_FALSE(y.grad().defined());
    CHECK_FALSE(z.grad().defined());
    return grads;
  });
}

TEST_CASE("S18 grad() does not run what lies on the way to other leaves") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor y = leaf({1, 2}), z = leaf({3, 5});
    const Tensors grads = mode.grad({rg::sum(ThrowsInBackward::apply(y) * z)}, {z});
    CHECK(values(grads[0]) == Values{1, 2});
    CHECK_FALSE(y.grad().defined());
    return grads;
  });
}

TEST_CASE("S19 backward() fills the .grad of all leaves") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2}), y = leaf({3, 5}), z = leaf({7, 11});
    mode.backward(rg::sum(x * y + z));
    CHECK(values(x.grad()) == Values{3, 5});
    CHECK(values(y.grad()) == Values{1, 2});
    CHECK(values(z.grad()) == Values{1, 1});
    return Tensors{x.grad(), y.grad(), z.grad()};
  });
}

TEST_CASE("S20 backward(inputs) fills those inputs only, and other ways do not run") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor a = leaf({1, 2}), y = leaf({3, 5}), z = leaf({7, 11});
    mode.backward({rg::sum(ThrowsInBackward::apply(a) * y * z)}, {}, {}, false, Tensors{y, z});
    CHECK_FALSE(a.grad().defined());
    CHECK(values(y.grad()) == Values{7, 22});
    CHECK(values(z.grad()) == Values{3, 10});
    return Tensors{y.grad(), z.grad()};
  });
}

TEST_CASE("S21 another choice of inputs is another structure") {
  run_both({.steps = 4, .captures = 2}, [](Mode& mode, int step) {
    const Tensor x = leaf({1, 2}), y = leaf({3, 5});
    mode.backward({rg::sum(x * y)}, {}, {}, false, Tensors{step % 2 ? y : x});
    CHECK(values(x.grad()) == (step % 2 ? Values{} : Values{3, 5}));
    CHECK(values(y.grad()) == (step % 2 ? Values{1, 2} : Values{}));
    return Tensors{x.grad(), y.grad()};
  });
}

TEST_CASE("S22 a non-leaf in backward(inputs) gets its .grad, an unused input none") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2}), unused = leaf({9});
    const Tensor y = x * 3.0;
    mode.backward({rg::sum(y * y)}, {}, {}, false, Tensors{y, unused});
    CHECK(values(y.grad()) == Values{6, 12});
    CHECK_FALSE(x.grad().defined());
    CHECK_FALSE(unused.grad().defined());
    return Tensors{y.grad()};
  });
}

TEST_CASE("S22 a non-leaf and the leaf that it depends on") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2});
    const Tensor y = x * 3.0;
    mode.backward({rg::sum(y * y)}, {}, {}, false, Tensors{y, x});
    CHECK(values(y.grad()) == Values{6, 12});
    CHECK(values(x.grad()) == Values{18, 36});
    return Tensors{y.grad(), x.grad()};
  });
}

TEST_CASE("S23 an empty list of inputs is an error") {
  rg::CompiledBackward compiled = rg::compile_backward();
  Mode eager, traced(&compiled);
  for (Mode* mode : {&eager, &traced}) {
    const Tensor x = leaf({1, 2});
    const auto backward = [&] { mode->backward({rg::sum(x * x)}, {}, {}, false, Tensors{}); };
    CHECK(category_of(backward) == rg::Category::bad_argument);
    CHECK_THAT(error_of(backward), Catch::Contains("cannot be empty"));
    CHECK(category_of([&] { mode->grad({rg::sum(x * x)}, {}); }) == rg::Category::bad_argument);
    CHECK_FALSE(x.grad().defined());
  }
  CHECK(compiled.stats().captures == 0);
}

TEST_CASE("S24 an input that is not reached: empty where that is allowed, else an error") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2}), unused = leaf({9});
    const Tensors grads = mode.grad({rg::sum(x * x)}, {x, unused}, {}, {}, false, true);
    REQUIRE(grads.size() == 2);
    CHECK(values(grads[0]) == Values{2, 4});
    CHECK_FALSE(grads[1].defined());
    const auto not_allowed = [&] { mode.grad({rg::sum(x * x)}, {x, unused}); };
    CHECK(category_of(not_allowed) == rg::Category::unused_input);
    CHECK_THAT(error_of(not_allowed), Catch::Contains("allow_unused"));
    return grads;
  });
}

TEST_CASE("S25 gradients of the parts of a tensor: the hook of the whole does not run") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2, 3, 4}), whole = x * 1.0, go = rg::tensor({0.5, -3});
    int fired = 0;
    for (const Tensor& t : {x, whole}) t.register_hook([&](const Tensor&) { return ++fired, Tensor(); });
    const Tensors parts = rg::chunk(whole, 2);
    const Tensors grads = mode.grad({parts[0] + parts[1] * 2.0}, parts, {go});
    CHECK(values(grads[0]) == Values{0.5, -3});
    CHECK(values(grads[1]) == Values{1, -6});
    CHECK(fired == 0);
    CHECK_FALSE(x.grad().defined());
    return grads;
  });
}

TEST_CASE("S25 gradients of the parts of a leaf") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2, 3, 4}), go = rg::tensor({0.5, -3});
    int fired = 0;
    x.register_hook([&](const Tensor&) { return ++fired, Tensor(); });
    const Tensors parts = rg::chunk(x, 2);
    const Tensors grads = mode.grad({parts[0] + parts[1] * 2.0}, parts, {go});
    CHECK(values(grads[0]) == Values{0.5, -3});
    CHECK(values(grads[1]) == Values{1, -6});
    CHECK(fired == 0);
    return grads;
  });
}

TEST_CASE("S26 a root given twice counts twice") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2}), g = rg::tensor({3.0, 5});
    const Tensor y = x * 10.0;
    mode.backward({y, y}, {g, g});
    CHECK(values(x.grad()) == Values{60, 100});
    CHECK(values(g) == Values{3, 5});
    return Tensors{x.grad()};
  });
}

TEST_CASE("S26 a leaf as root, given twice") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2}), g = rg::tensor({3.0, 5});
    mode.backward({x, x}, {g, g});
    CHECK(values(x.grad()) == Values{6, 10});
    CHECK(values(g) == Values{3, 5});
    return Tensors{x.grad()};
  });
}

TEST_CASE("S27 several roots that share a part") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor q = leaf({1, 2}), gz = rg::tensor({3.0, 5}), gc = rg::tensor({0.5, 7});
    const Tensor y = q * 2.0, z = y + 1.0, c = y - 4.0;
    mode.backward({z, c}, {gz, gc});
    CHECK(values(q.grad()) == Values{7, 24});
    return Tensors{q.grad()};
  });
}

TEST_CASE("S27 a root that another root depends on") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor q = leaf({1, 2}), gz = rg::tensor({3.0, 5}), gy = rg::tensor({0.5, 7});
    const Tensor y = q * 2.0, z = y * 10.0;
    mode.backward({y, z}, {gy, gz});
    CHECK(values(q.grad()) == Values{61, 114});
    return Tensors{q.grad()};
  });
}

TEST_CASE("S28 a root that wants no gradient is an error, alone and with others") {
  rg::CompiledBackward compiled = rg::compile_backward();
  Mode eager, traced(&compiled);
  for (Mode* mode : {&eager, &traced}) {
    const Tensor x = leaf({1, 2}), plain = rg::tensor({3.0});
    CHECK(category_of([&] { mode->backward(plain); }) == rg::Category::no_grad_fn);
    CHECK(category_of([&] { mode->backward({rg::sum(x), plain}); }) == rg::Category::no_grad_fn);
    CHECK_FALSE(x.grad().defined());
  }
  CHECK(compiled.stats().captures == 0);
}

TEST_CASE("S29 gradients of intermediates in groups, then backward from them, equals the whole") {
  run_both({.steps = 2, .captures = 4}, [](Mode& mode, int) {
    const Tensor w = leaf({0.5, -1, 2}), whole = leaf({0.5, -1, 2});
    const auto parts_of = [](const Tensor& t) {
      Tensors parts;
      for (int i = 0; i < 6; ++i) parts.push_back(t * double(i + 1));
      return parts;
    };
    const auto loss_of = [](const Tensors& parts) {
      Tensor sum = parts[0];
      for (size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i] * parts[i];
      return rg::sum(sum);
    };
    const Tensors parts = parts_of(w);
    const Tensor loss = loss_of(parts);
    Tensors grads;
    for (size_t i = 0; i < 6; i += 2)
      for (const Tensor& g : mode.grad({loss}, {parts[i], parts[i + 1]}, {}, true)) grads.push_back(g);
    CHECK_FALSE(w.grad().defined());
    mode.backward(parts, grads);
    loss_of(parts_of(whole)).backward();
    CHECK(values(whole.grad()) ==
          Values{1 + 2 * 90 * 0.5, 1 - 2 * 90, 1 + 2 * 90 * 2});  // 4 + 9 + ... + 36 = 90
    CHECK(values(w.grad()) == values(whole.grad()));
    return Tensors{w.grad()};
  });
}
