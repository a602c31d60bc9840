// Derivatives in the engine: sums of several gradients, user-defined functions.
#include "engine/function.h"

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/unary.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

template <bool Traceable>
struct Cube : rg::Function<Cube<Traceable>> {
  static constexpr bool is_traceable = Traceable;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x, double factor) {
    ctx->save_for_backward({x});
    ctx->saved_data["factor"] = factor;
    return x * x * x * factor;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {g[0] * x * x * (ctx->saved_data["factor"] * rg::Scalar(3.0)), {}};
  }
  static Tensors jvp(rg::AutogradContext* ctx, const Tensors& t) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {t[0] * x * x * (ctx->saved_data["factor"] * rg::Scalar(3.0))};
  }
};

}  // namespace

Rows engine_rows() {
  Rows rows;
  rows.push_back(row(
      "a value used often",
      [](const Tensors& x) {
        const Tensor y = rg::sin(x[0]);
        return y * x[0] + rg::exp(y) * y;
      },
      unary_cases()));
  rows.push_back({"several outputs",
                  [](const Tensors& x) {
                    return Tensors{x[0] * x[1], rg::tanh(x[0]), x[1].detach()};
                  },
                  binary_cases()});
  rows.push_back(row(
      "an opaque function", [](const Tensors& x) { return Cube<false>::apply(x[0], 0.5); }, unary_cases()));
  rows.push_back(row(
      "a traceable function", [](const Tensors& x) { return Cube<true>::apply(x[0], 0.5); }, unary_cases()));
  return rows;
}

}  // namespace derivatives
