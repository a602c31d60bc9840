// Memory that a replay may overwrite, and memory that it may not: that of others, even when nobody else holds it any
// longer. Not tested here: peaks (memory_profile_test.cc), goldens of donated memory (null_executor_test.cc).
#include <catch2/catch.hpp>

#include <cmath>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

// Multiplies the gradient with exp(saved), computed through a view of the saved value.
struct ExpOfSaved : rg::Function<ExpOfSaved> {
  static constexpr bool is_traceable = true;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& w, const Tensor& memory) {
    ctx->save_for_backward({memory});
    return w * 1.0;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const Tensor square = rg::exp(ctx->get_saved_variables()[0].view({2, 2}));
    return {grads[0] * square.view({4}), {}};
  }
};

// Its gradients are a value that dies in an elementwise op and a view of it that does not.
struct ExpBesideView : rg::Function<ExpBesideView> {
  static constexpr bool is_traceable = true;
  static Tensor forward(rg::AutogradContext*, const Tensor& w, const Tensor& u) {
    return w * u.detach().view({4});
  }
  static Tensors backward(rg::AutogradContext*, const Tensors& grads) {
    const Tensor tripled = grads[0] * 3.0;
    const Tensor view = tripled.view({2, 2});
    return {rg::exp(tripled), view};
  }
};

}  // namespace

TEST_CASE("a replay does not write into memory of the caller") {
  rg::CompiledBackward backward = rg::compile_backward();
  for (int run = 0; run < 3; ++run) {
    float data[4] = {0, 1, -1, 0.5};
    const Tensor w = rg::ones({4}).requires_grad_();
    Tensor loss;
    {
      const Tensor memory = rg::from_blob(data, {4});
      loss = rg::sum(ExpOfSaved::apply(w, memory));
    }
    backward(loss);
    CHECK(data[0] == 0);
    CHECK(data[1] == 1);
    CHECK(data[3] == 0.5f);
    CHECK(w.grad().to_vector()[0] == 1);
  }
  CHECK(backward.stats().captures == 1);
}

TEST_CASE("a replay does not write over a value of which it shows a view") {
  rg::CompiledBackward backward = rg::compile_backward();
  for (int run = 0; run < 3; ++run) {
    const Tensor w = rg::ones({4}).requires_grad_(), u = rg::ones({2, 2}).requires_grad_();
    backward(rg::sum(ExpBesideView::apply(w, u)));
    CHECK(u.grad().to_vector() == std::vector<double>(4, 3.0));
    CHECK(w.grad().to_vector()[0] == Approx(std::exp(3.0)));
  }
  CHECK(backward.stats().captures == 1);
}
