// Function<MyOp>: a user's own differentiable function, eager and traced. Not tested here: forward mode (it has none) and hooks on its slots.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

struct ScaledSquare : rg::Function<ScaledSquare> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x, double factor) {
    ctx->save_for_backward({x});
    ctx->saved_data["factor"] = factor;
    return x * x * factor;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {grads[0] * x * 2.0 * ctx->saved_data["factor"], {}};
  }
};

struct WrongType : rg::Function<WrongType> {
  static Tensor forward(rg::AutogradContext*, const Tensor& x) { return x * 1.0; }
  static Tensors backward(rg::AutogradContext*, const Tensors& grads) { return {grads[0].to(rg::kFloat64)}; }
};

}  // namespace

TEST_CASE("a function of the user's own has the gradient that its backward gives") {
  const Tensor x = rg::tensor({1, -2, 3}).requires_grad_();
  const Tensor y = ScaledSquare::apply(x, 0.5);
  CHECK(y.to_vector() == std::vector<double>{0.5, 2, 4.5});
  CHECK(y.requires_grad());
  rg::sum(y).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{1, -2, 3});
}

TEST_CASE("it is differentiated twice, and traced like any other record") {
  const Tensor x = rg::tensor({1, -2, 3}).requires_grad_();
  const Tensor g = rg::autograd::grad({rg::sum(ScaledSquare::apply(x, 3.0))}, {x}, {}, {}, true)[0];
  CHECK(rg::autograd::grad({rg::sum(g)}, {x})[0].to_vector() == std::vector<double>{6, 6, 6});
  rg::CompiledBackward backward = rg::compile_backward();
  for (double factor : {2.0, 2.0, 4.0}) {
    const Tensor z = rg::tensor({1, -2, 3}).requires_grad_();
    backward(rg::sum(ScaledSquare::apply(z, factor)));
    CHECK(z.grad().to_vector() == std::vector<double>{2 * factor, -4 * factor, 6 * factor});
  }
  CHECK(backward.stats().captures == 2);  // numbers of a function are structure
}

TEST_CASE("without a gradient wanted it records nothing, and a gradient of another type is refused") {
  CHECK_FALSE(ScaledSquare::apply(rg::tensor({1, 2}), 1.0).requires_grad());
  const Tensor x = rg::tensor({1, 2}).requires_grad_();
  try {
    rg::sum(WrongType::apply(x)).backward();
    FAIL("the gradient was accepted");
  } catch (const rg::Error& e) {
    CHECK(e.category() == rg::Category::cotangent_mismatch);
  }
}

TEST_CASE("a saved tensor that is written to afterwards is an error") {
  const Tensor x = rg::tensor({1, 2}).requires_grad_();
  const Tensor y = x * 1.0;
  const Tensor z = ScaledSquare::apply(y, 1.0);
  y.mul_(2.0);
  try {
    rg::sum(z).backward();
    FAIL("the overwritten value was used");
  } catch (const rg::Error& e) {
    CHECK(e.category() == rg::Category::version_mismatch);
  }
}
