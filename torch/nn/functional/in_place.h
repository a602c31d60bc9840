// For functions with an option `inplace`.
#pragma once

#include <string_view>

#include "engine/inplace.h"
#include "torch/nn/names.h"

namespace torch::nn::functional {

/// f(input), written into the input and the input returned if `inplace`. `name` is that of f with its underscore.
template <class F>
Tensor maybe_in_place(const Operand& input, bool inplace, std::string_view name, F f) {
  if (!inplace) return f(input);
  return retrograd::apply_inplace(
      input.defined_tensor(name), [&](const Tensor& x) { return f(Operand(x, input.where())); }, name,
      input.where());
}

}  // namespace torch::nn::functional
