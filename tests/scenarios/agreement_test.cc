// Cases in which eager and traced backwards once differed, found by random programs (tests/fuzz): layouts, sizes that
// turn out to be 1, values that failed backwards leave, and backwards that run node by node.
#include "tests/scenarios/hook_scenario.h"

namespace retrograd::scenario {
namespace {

Tensor numbers(const Shape& shape) {
  Values v(static_cast<size_t>(shape.numel().value()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>((i * 7919 + 13) % 1009) / 504.5 - 1;
  return tensor(v, shape);
}

}  // namespace

TEST_CASE("a reshape in a rule gives the products operands of one layout, whatever that of the gradient is") {
  run_both([](Mode& mode) {
    const Tensor x = numbers({3, 3, 1}), w = numbers({3, 1}).requires_grad_();
    const Tensor y =
        permute(linear(x, w), {2, 0, 1});  // its gradient could be seen as a matrix without a copy
    return mode.grad(Tensors{y}, Tensors{w}, Tensors{numbers({3, 3, 3})});
  });
  run_both(
      [](Mode& mode) {
        const Tensor x = numbers({4, 4, 4}).requires_grad_();
        const Tensor y = group_norm(permute(x, {2, 0, 1}), 1);
        const Tensor g = mode.grad(Tensors{y}, Tensors{x}, Tensors{numbers({4, 4, 4})}, {}, true)[0];
        return mode.grad(Tensors{g}, Tensors{x}, Tensors{numbers({4, 4, 4})});
      },
      2);
}

TEST_CASE("opaque user code sees the same layouts in eager and traced backwards") {
  run_both([](Mode& mode) {
    const Tensor x = numbers({2, 3, 4}).requires_grad_();
    const Tensor y = permute(x, {1, 2, 0}) * 2.0;
    y.register_hook([&mode](const Tensor& g) {
      const Tensor rows = reshape(permute(g, {2, 0, 1}), {2, 12});
      mode.log(rows.is_contiguous() ? "contiguous" : "strided");
      return Tensor();
    });
    return mode.grad(Tensors{y}, Tensors{x}, Tensors{numbers({3, 4, 2})});
  });
}

TEST_CASE("a size that is computed and comes out as 1 is broadcast while a backward is recorded") {
  run_both(
      [](Mode& mode) {
        const Tensor x = numbers({3, 3}).requires_grad_();
        const Tensor y =
            unfold(x, -1, 3, 2) * numbers({3, 3});  // one window: (3, 1, 3), broadcast to (3, 3, 3)
        const Tensor v = numbers({3, 3, 3}).requires_grad_();
        const Tensor g = mode.grad(Tensors{y}, Tensors{x}, Tensors{v}, {}, true)[0];
        return mode.grad(Tensors{g}, Tensors{v}, Tensors{numbers({3, 3})});
      },
      2);
}

TEST_CASE(
    "a rule that fails for a value that was written to leaves the others of its record where they were") {
  run_both([](Mode& mode) {
    const Tensor x = leaf({1, 2}), w = leaf({3, 4});
    const Tensor a = x * 2.0, b = w * 3.0, y = a * b;
    a.mul_(tensor({5.0, 5}));
    for (int i = 0; i < 2; ++i)
      CHECK(category_of([&] { mode.backward(sum(y)); }) == Category::version_mismatch);
    return Tensors{};
  });
}

TEST_CASE("node by node, a gradient that is asked for is not added to later") {
  run_both([](Mode& mode) {
    const autograd::DetectAnomalyGuard node_by_node;
    const Tensor x = leaf({1, 2, 3});
    const Tensor y = x * 1.5, z = y + sin(y);
    const Tensor u = z * 2.0;
    return mode.grad(Tensors{u}, Tensors{z, y, x}, Tensors{leaf({1, 1, 1}).detach()});
  });
}

TEST_CASE("node by node, a backward that fails releases what has run") {
  for (const bool traced : {false, true}) {
    CompiledBackward compiled = compile_backward();
    Mode mode(traced ? &compiled : nullptr);
    const Tensor x = leaf({0, 4});
    const Tensor y = exp(sqrt(x));  // the derivative of sqrt is infinite
    {
      const autograd::DetectAnomalyGuard node_by_node;
      CHECK(category_of([&] { mode.backward(sum(y)); }) == Category::bad_argument);
    }
    CHECK(category_of([&] { mode.backward(sum(y)); }) == Category::backward_twice_freed);
  }
}

TEST_CASE("what a rule detaches wants no gradient in a recorded backward either") {
  run_both(
      [](Mode& mode) {
        const Tensor x = numbers({1, 3}), w = leaf({1, 2, 3}), v = numbers({1, 3}).requires_grad_();
        const Tensor g = mode.grad(Tensors{layer_norm(x, {3}, w)}, Tensors{w}, Tensors{v}, {}, true)[0];
        const Tensor h = mode.grad(Tensors{g}, Tensors{v}, Tensors{leaf({1, 2, 3}).detach()}, {}, true)[0];
        CHECK_FALSE(h.requires_grad());
        return Tensors{h};
      },
      2);
}

}  // namespace retrograd::scenario
