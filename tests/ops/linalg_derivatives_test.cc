// Derivatives of linear algebra to second order against differences, the form of cholesky's derivatives, and traced
// backwards.
#include "ops/linalg.h"

#include "ops/matmul.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "retrograd/retrograd.h"
#include "tests/ops/matrices.h"

namespace retrograd {
namespace {

using namespace testing;

TEST_CASE("derivatives to second order") {
  const auto matrix = [](Shape shape, int seed = 1) { return input(shape, -0.4, 0.4, seed); };
  const auto shifted = [](const Tensor& x) { return x + eye(x.size(-1), {}, {kFloat64}) * 1.5; };
  gradcheck([&](const Tensors& x) { return inverse(shifted(x[0])); }, {matrix({2, 3, 3})});
  gradcheck([&](const Tensors& x) { return det(shifted(x[0])); }, {matrix({2, 3, 3})});
  gradcheck([&](const Tensors& x) { return slogdet(shifted(x[0])).logabsdet; }, {matrix({2, 3, 3})});
  gradcheck([&](const Tensors& x) { return logdet(shifted(x[0])); }, {matrix({3, 3})});
  gradcheck([](const Tensors& x) { return trace(x[0]); }, {matrix({2, 3})}, false);
  for (int64_t n : {-2, 2, 5})
    gradcheck([&](const Tensors& x) { return matrix_power(shifted(x[0]), n); }, {matrix({2, 2})});
  for (bool upper : {false, true})
    gradcheck([&](const Tensors& x) { return cholesky(shifted(matmul(x[0], turned(x[0]))), upper); },
              {matrix({2, 3, 3})});
}

TEST_CASE("derivatives of systems to second order") {
  const Tensor shift = eye(3, 3, {kFloat64}) * 1.5;
  const Tensor a = input({2, 1, 3, 3}, -0.4, 0.4, 4);
  gradcheck([&](const Tensors& x) { return solve(x[0] + shift, x[1]); }, {a, input({2, 3, 2})});
  gradcheck([&](const Tensors& x) { return solve(x[0] + shift, x[1], false); }, {a, input({2, 3})});
  gradcheck([&](const Tensors& x) { return solve(x[0] + shift, x[1]); }, {a, input({3})});
  gradcheck([&](const Tensors& x) { return solve(x[0] + shift, x[1].detach()); },
            {a, input({3, 2}).detach()});
  for (bool upper : {false, true})
    for (bool unit : {false, true})
      for (bool left : {false, true})
        gradcheck([&](const Tensors& x) { return solve_triangular(x[0] + shift, x[1], upper, left, unit); },
                  {input({2, 3, 3}, -0.4, 0.4, 5), input({3, 3})});
}

TEST_CASE("the gradient of cholesky is symmetric") {
  const Tensor a = positive({}, 4).requires_grad_();
  const Tensor g = autograd::grad({sum(cholesky(a))}, {a})[0];
  CHECK(distance(g, turned(g)) < 1e-14);
}

TEST_CASE("the tangent of cholesky at 1 is that of the triangle which is read") {
  const Tensor one = eye(2, {}, {kFloat64}), tangent = tensor({2, 3, 5, 8}, {2, 2}, {kFloat64});
  const auto at = [&](bool upper) {
    const auto f = [=](const Tensors& x) { return Tensors{cholesky(x[0], upper)}; };
    return autograd::jvp(f, {one}, {tangent}).tangents[0].to_vector();
  };
  CHECK(at(false) == std::vector<double>{1, 0, 5, 4});
  CHECK(at(true) == std::vector<double>{1, 3, 0, 4});
}

TEST_CASE("traced backwards serve other sizes") {
  CompiledBackward backward = compile_backward();
  for (int64_t n : {3, 4, 7}) {
    const auto loss = [&](const Tensor& x) {
      const Tensor s = matmul(x, turned(x)) + eye(n, n, {kFloat64});
      return sum(cholesky(s)) + sum(inverse(x)) + sum(det(x)) + sum(slogdet(x).logabsdet);
    };
    const Tensor a = regular({2}, n).requires_grad_(), b = a.detach().requires_grad_();
    backward(loss(a));
    loss(b).backward();
    CHECK(a.grad().to_vector() == b.grad().to_vector());
  }
  CHECK(backward.stats().captures == 1);
}

}  // namespace
}  // namespace retrograd
