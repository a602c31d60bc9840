// Second derivatives of ops/activations.h and the functions that are another one with fixed numbers.
// Each formula derives the factor of F::backward; in comments s is sigmoid(x), t tanh, p and P the normal
// density and distribution.
#include "ops/activations.h"

#include <fmt/format.h>

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd {
namespace ops {

Tensor Sigmoid::curvature(const Tensor& y, const Attrs&) { return 1 - y * 2; }
Tensor Tanh::curvature(const Tensor& y, const Attrs&) { return y * -2; }

Tensor Hardswish::curvature(const Tensor& x, const Attrs&) {
  return where(logical_and(gt(x, -3), lt(x, 3)), ones_of(x.impl().type(), {}) / 3, 0);
}

Tensor Softsign::curvature(const Tensor& x, const Attrs&) { return sign(x) * pow(abs(x) + 1, -3) * -2; }

// (sigmoid(-x))' = -s (1 - s)
Tensor LogSigmoid::curvature(const Tensor& x, const Attrs&) {
  const Tensor s = sigmoid(x);
  return s * (s - 1);
}

// (s (1 + x (1 - s)))' = s (1 - s) (2 + x (1 - 2 s))
Tensor Silu::curvature(const Tensor& x, const Attrs&) {
  const Tensor s = sigmoid(x);
  return s * (1 - s) * (x * (1 - s * 2) + 2);
}

// With t = tanh(log(1 + e^x)), t' = (1 - t^2) s: (t + x s (1 - t^2))' = (1 - t^2) s (2 + x (1 - s) - 2 x t s)
Tensor Mish::curvature(const Tensor& x, const Attrs&) {
  const Tensor s = sigmoid(x), t = tanh(softplus(x));
  return (1 - square(t)) * s * (x * (1 - s) - x * t * s * 2 + 2);
}

Tensor Gelu::curvature(const Tensor& x, const Attrs& a) {
  const Tensor x2 = square(x);
  if (!a.tanh) return exp(x2 * -0.5) * (2 - x2) * kPdfFactor;  // (P + x p)' = p (2 - x^2)
  // u = k (x + c x^3): ((1 + t) / 2 + x (1 - t^2) u' / 2)' = (1 - t^2) (u' + x (u'' / 2 - t u'^2))
  const Tensor t = tanh((x * x2 * kCube + x) * kTanhFactor);
  const Tensor slope = (x2 * (3 * kCube) + 1) * kTanhFactor;
  return (1 - square(t)) * (slope + x * (x * (3 * kCube * kTanhFactor) - t * square(slope)));
}

Tensor Elu::curvature(const Tensor& x, const Attrs& a) {
  return where(lt(x, 0), exp(x * a.input_scale) * (a.alpha * a.scale * a.input_scale * a.input_scale), 0);
}

Tensor Softplus::curvature(const Tensor& x, const Attrs& a) {
  const Tensor z = x * a.beta, s = sigmoid(z);
  return where(ge(z, a.threshold), 0, s * (1 - s) * a.beta);
}

}  // namespace ops

Tensor relu6(Operand x) { return hardtanh(x, 0.0, 6.0); }

Tensor gelu(Operand x, std::string_view approximate) {
  if (approximate != "none" && approximate != "tanh")
    fail(Category::bad_argument, "gelu",
         fmt::format("approximate is \"{}\", not \"none\" or \"tanh\"", approximate), x.where());
  return ops::Function<ops::Gelu>()(x, approximate == "tanh");
}

Tensor elu(Operand x, Scalar alpha) { return ops::Function<ops::Elu>()(x, alpha); }

Tensor celu(Operand x, Scalar alpha) { return ops::Function<ops::Elu>()(x, alpha, 1.0, Scalar(1.0) / alpha); }

Tensor selu(Operand x) {
  return ops::Function<ops::Elu>()(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946);
}

}  // namespace retrograd
