// Second derivatives at kinks, at zeros, and far out: the tables' values are first derivatives here, their
// gradients second ones. The numbers are PyTorch's; see edges.h.
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/losses.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "tests/ops/edges/edges.h"

namespace edges {
namespace {

/// The first derivative, as a function; zero where the gradient is constant.
Tensor derivative(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  return rg::autograd::grad({rg::sum(f(x))}, {x}, {}, {}, true)[0];
}

// clang-format off
const std::vector<UnaryEdges> kTable{
    {"relu", rg::relu, {{0, 0, 0}, {1, 1, 0}, {-1, 0, 0}}},
    {"leaky_relu", rg::leaky_relu, {{0, 0.01, 0}}},
    {"elu", [](const Tensor& x) { return rg::elu(x); }, {{0, 1, 0}, {-1, 0.367879441171, 0.367879441171},
        {1, 1, 0}}},
    {"selu", rg::selu, {{0, 1.75809934085, 0}, {-1, 0.646768603035, 0.646768603035}}},
    {"celu 2", [](const Tensor& x) { return rg::celu(x, 2.0); }, {{0, 1, 0}, {-1, 0.606530659713,
        0.303265329856}}},
    {"softplus", rg::softplus, {{20, 0.999999997939, 0}, {19, 0.999999994397, 5.60279637475e-09}, {21, 1,
        0}}},
    {"hardtanh", rg::hardtanh, {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}}},
    {"hardswish", rg::hardswish, {{3, 1, 0}, {-3, 0, 0}, {0, 0.5, 0.333333333333}}},
    {"relu6", rg::relu6, {{0, 0, 0}, {6, 0, 0}}},
    {"threshold", [](const Tensor& x) { return rg::threshold(x, 0.5, -2.0); }, {{0.5, 0, 0}}},
    {"clamp", [](const Tensor& x) { return rg::clamp(x, -1.0, 1.0); }, {{1, 0, 0}, {-1, 0, 0}}},
    {"abs", rg::abs, {{0, 0, 0}, {-0.0, 0, 0}}},
    {"sqrt", rg::sqrt, {{0, inf, -inf}}},
    {"square", rg::square, {{0, 0, 2}}},
    {"pow 0.0", [](const Tensor& x) { return rg::pow(x, 0.0); }, {{0, 0, 0}}},
    {"pow 1.0", [](const Tensor& x) { return rg::pow(x, 1.0); }, {{0, 1, 0}}},
    {"pow 2.0", [](const Tensor& x) { return rg::pow(x, 2.0); }, {{0, 0, 2}}},
    {"pow 3.0", [](const Tensor& x) { return rg::pow(x, 3.0); }, {{0, 0, 0}}},
    {"pow 1.5", [](const Tensor& x) { return rg::pow(x, 1.5); }, {{0, 0, inf}}},
    {"pow 0.5", [](const Tensor& x) { return rg::pow(x, 0.5); }, {{0, inf, -inf}}},
    {"pow -1.0", [](const Tensor& x) { return rg::pow(x, -1.0); }, {{0, -inf, inf}}},
    {"smooth_l1", [](const Tensor& x) { return rg::smooth_l1_loss(x, rg::zeros_like(x), "sum"); }, {{1, 1,
        0}, {-1, -1, 0}, {0, 0, 1}}},
    {"huber", [](const Tensor& x) { return rg::huber_loss(x, rg::zeros_like(x), "sum", 0.5); }, {{0.5, 0.5,
        0}, {-0.5, -0.5, 0}}},
    {"l1", [](const Tensor& x) { return rg::l1_loss(x, rg::zeros_like(x), "sum"); }, {{0, 0, 0}}},
    {"silu", rg::silu, {{10000, 1, 0}, {-10000, -0.0, 0}, {0, 0.5, 0.5}}},
    {"gelu", [](const Tensor& x) { return rg::gelu(x); }, {{10000, 1, 0}, {-10000, 0, 0}, {0, 0.5,
        0.797884560803}}},
    {"gelu tanh", [](const Tensor& x) { return rg::gelu(x, "tanh"); }, {{100, 1, 0}, {-100, 0, 0}, {0, 0.5,
        0.797884560803}}},
    {"sigmoid", rg::sigmoid, {{10000, 0, -0.0}, {-10000, 0, 0}, {0, 0.25, 0}}},
    {"tanh", rg::tanh, {{10000, 0, -0.0}, {-10000, 0, 0}, {0, 1, -0.0}}},
    {"logsigmoid", rg::logsigmoid, {{10000, 0, 0}, {-10000, 1, -0.0}, {0, 0.5, -0.25}}},
    {"softsign", rg::softsign, {{0, 1, -0.0}, {1e+200, 0, 0}}},
    {"mish", rg::mish, {{0, 0.6, 0.64}, {-30, -2.71371066096e-12, -2.62013443127e-12}}},
    {"sign", rg::sign, {{0, 0, 0}}},
    {"x * log(x)", [](const Tensor& x) { return x * rg::log(x); }, {{0, nan, nan}}},
    {"sqrt(x * x)", [](const Tensor& x) { return rg::sqrt(x * x); }, {{0, nan, nan}}},
};
// clang-format on

TEST_CASE("second derivatives at the edges") {
  std::vector<UnaryEdges> derivatives = kTable;
  for (size_t i = 0; i < kTable.size(); ++i)
    derivatives[i].f = [i](const Tensor& x) { return derivative(kTable[i].f, x); };
  check_unary(derivatives, rg::kFloat64, 1e-9);
}

TEST_CASE("the gradient of atan2 at 0 is 0, to any order") {
  const Tensor a = rg::tensor({0}, {}, {rg::kFloat64}).requires_grad_(),
               b = rg::tensor({0}, {}, {rg::kFloat64}).requires_grad_();
  const Tensors first = rg::autograd::grad({rg::atan2(a, b)}, {a, b}, {}, {}, true);
  const Tensors second = rg::autograd::grad({first[0] + first[1]}, {a, b});
  for (const Tensor& g : {first[0], first[1], second[0], second[1]}) CHECK(g.item<double>() == 0);
}

TEST_CASE("far out mish is x, trigamma is 0") {
  for (const double far : {1e17, inf}) {
    const Tensor x = rg::tensor({far}, {}, {rg::kFloat64}).requires_grad_();
    CHECK(rg::autograd::grad({rg::mish(x)}, {x})[0].item<double>() == Approx(1).epsilon(1e-14));
    CHECK(rg::autograd::grad({rg::digamma(x)}, {x})[0].item<double>() == Approx(far < inf ? 1e-17 : 0));
  }
}

}  // namespace
}  // namespace edges
