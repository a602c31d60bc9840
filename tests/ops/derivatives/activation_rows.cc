// Activations, each over both sides of its kinks; the numbers of the inputs are never at one.
#include "ops/activations.h"

#include "ops/ternary.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

Rows activation_rows() {
  Rows rows;
  rows.push_back(unary("sigmoid", rg::sigmoid, {-3, 3}));
  rows.push_back(unary("tanh", rg::tanh, {-2, 2}));
  rows.push_back(unary("relu", rg::relu));
  rows.push_back(unary("relu6", rg::relu6, {-3, 9}));
  rows.push_back(unary("leaky_relu", rg::leaky_relu));
  rows.push_back(row(
      "leaky_relu with a slope", [](const Tensors& x) { return rg::leaky_relu(x[0], 0.3); }, unary_cases()));
  rows.push_back(row(
      "threshold", [](const Tensors& x) { return rg::threshold(x[0], 0.2, -4.0); }, unary_cases()));
  rows.push_back(unary("hardtanh", rg::hardtanh));
  rows.push_back(row(
      "hardtanh with bounds", [](const Tensors& x) { return rg::hardtanh(x[0], -0.5, 0.3); }, unary_cases()));
  rows.push_back(unary("hardsigmoid", rg::hardsigmoid, {-4, 4}));
  rows.push_back(unary("hardswish", rg::hardswish, {-5, 5}));
  rows.push_back(unary("softsign", rg::softsign, {-3, 3}));
  rows.push_back(unary("logsigmoid", rg::logsigmoid, {-3, 3}));
  rows.push_back(unary("silu", rg::silu, {-3, 3}));
  rows.push_back(unary("mish", rg::mish, {-3, 3}));
  for (const char* kind : {"none", "tanh"})
    rows.push_back(row(
        std::string("gelu ") + kind, [kind](const Tensors& x) { return rg::gelu(x[0], kind); },
        unary_cases({-3, 3})));
  rows.push_back(row(
      "elu", [](const Tensors& x) { return rg::elu(x[0], 1.3); }, unary_cases()));
  rows.push_back(row(
      "celu", [](const Tensors& x) { return rg::celu(x[0], 1.7); }, unary_cases()));
  rows.push_back(unary("selu", rg::selu));
  rows.push_back(unary("softplus", rg::softplus));
  rows.push_back(row(
      "softplus with a threshold", [](const Tensors& x) { return rg::softplus(x[0], 2.0, 1.0); },
      unary_cases()));
  rows.push_back(row(
      "clamp to numbers", [](const Tensors& x) { return rg::clamp(x[0], -0.7, 0.5); }, unary_cases()));
  rows.push_back(row(
      "clamp from below", [](const Tensors& x) { return rg::clamp(x[0], -0.2); }, unary_cases()));
  rows.push_back(row(
      "clamp from above", [](const Tensors& x) { return rg::clamp(x[0], {}, 0.2); }, unary_cases()));
  return rows;
}

}  // namespace derivatives
