// See torch/nn/functional/dropout.h.
#include "torch/nn/functional/dropout.h"

#include "ops/dropout.h"
#include "torch/nn/functional/in_place.h"

namespace torch::nn::functional {

Tensor dropout(Operand input, const DropoutFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "dropout_", [&](const Operand& x) {
    return retrograd::dropout(x, options.p(), options.training());
  });
}
Tensor dropout2d(Operand input, const Dropout2dFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "dropout2d_", [&](const Operand& x) {
    return retrograd::dropout2d(x, options.p(), options.training());
  });
}
Tensor dropout3d(Operand input, const Dropout3dFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "dropout3d_", [&](const Operand& x) {
    return retrograd::dropout3d(x, options.p(), options.training());
  });
}
Tensor alpha_dropout(Operand input, const AlphaDropoutFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "alpha_dropout_", [&](const Operand& x) {
    return retrograd::alpha_dropout(x, options.p(), options.training());
  });
}
Tensor feature_alpha_dropout(Operand input, const FeatureAlphaDropoutFuncOptions& options) {
  return maybe_in_place(input, options.inplace(), "feature_alpha_dropout_", [&](const Operand& x) {
    return retrograd::feature_alpha_dropout(x, options.p(), options.training());
  });
}

}  // namespace torch::nn::functional
