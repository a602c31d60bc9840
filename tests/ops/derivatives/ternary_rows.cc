// Functions of three numbers that broadcast, and clamp between tensors.
#include "ops/ternary.h"

#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

Rows ternary_rows() {
  const Tensor choice = mask({1, 0, 0, 1, 1, 0}, {2, 3});
  std::vector<Tensors> choices;
  for (const Tensors& x : binary_cases()) {
    const rg::Shape shape = rg::broadcast_shapes(x[0].impl().shape(), x[1].impl().shape(), "where");
    std::vector<double> every_third(static_cast<size_t>(shape.numel().value()));
    for (size_t i = 0; i < every_third.size(); i += 3) every_third[i] = 1;
    choices.push_back({mask(every_third, shape), x[0], x[1]});
  }
  Rows rows;
  rows.push_back(row(
      "where", [](const Tensors& x) { return rg::where(x[0], x[1], x[2]); }, choices));
  rows.push_back(row("where with a number", [](const Tensors& x) { return rg::where(x[0], x[1], 2.0); },
                     {{choice, real({3})}, {choice, real({})}, {mask({}, {0, 3}), real({1, 3})}}));
  rows.push_back(row("where with a number first", [](const Tensors& x) { return rg::where(x[0], 2.0, x[1]); },
                     {{choice, real({2, 1})}, {choice, transposed({2, 3})}}));
  rows.push_back(row(
      "lerp", [](const Tensors& x) { return rg::lerp(x[0], x[1], x[2]); },
      ternary_cases({}, {}, {0.1, 0.9})));
  rows.push_back(row(
      "lerp by a number", [](const Tensors& x) { return rg::lerp(x[0], x[1], 0.3); }, binary_cases()));
  rows.push_back(row(
      "addcmul", [](const Tensors& x) { return rg::addcmul(x[0], x[1], x[2], -1.5); }, ternary_cases()));
  rows.push_back(row(
      "addcdiv", [](const Tensors& x) { return rg::addcdiv(x[0], x[1], x[2], -1.5); },
      ternary_cases({}, {}, {0.4, 2})));
  rows.push_back(row(
      "clamp between tensors",
      [](const Tensors& x) { return rg::clamp(x[0], rg::Operand(x[1]), rg::Operand(x[2])); },
      ternary_cases({}, {-1.5, 0}, {0.1, 1.5})));
  rows.push_back(row(
      "clamp to a tensor and a number",
      [](const Tensors& x) { return rg::clamp(x[0], rg::Operand(x[1]), 0.5); }, binary_cases({}, {-1.5, 0})));
  rows.push_back(row(
      "clamp below a tensor", [](const Tensors& x) { return rg::clamp(x[0], {}, rg::Operand(x[1])); },
      binary_cases()));
  return rows;
}

}  // namespace derivatives
