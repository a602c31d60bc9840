// Pooling as functions.
#pragma once

#include <tuple>

#include "torch/nn/names.h"
#include "torch/nn/options/pooling.h"

#pragma GCC visibility push(default)
namespace torch::nn::functional {

Tensor avg_pool1d(Operand input, const AvgPool1dFuncOptions& options);
Tensor avg_pool2d(Operand input, const AvgPool2dFuncOptions& options);
Tensor avg_pool3d(Operand input, const AvgPool3dFuncOptions& options);
Tensor max_pool1d(Operand input, const MaxPool1dFuncOptions& options);
Tensor max_pool2d(Operand input, const MaxPool2dFuncOptions& options);
Tensor max_pool3d(Operand input, const MaxPool3dFuncOptions& options);
Tensor lp_pool1d(Operand input, const LPPool1dFuncOptions& options);
Tensor lp_pool2d(Operand input, const LPPool2dFuncOptions& options);
Tensor lp_pool3d(Operand input, const LPPool3dFuncOptions& options);
Tensor adaptive_avg_pool1d(Operand input, const AdaptiveAvgPool1dFuncOptions& options);
Tensor adaptive_avg_pool2d(Operand input, const AdaptiveAvgPool2dFuncOptions& options);
Tensor adaptive_avg_pool3d(Operand input, const AdaptiveAvgPool3dFuncOptions& options);
Tensor adaptive_max_pool1d(Operand input, const AdaptiveMaxPool1dFuncOptions& options);
Tensor adaptive_max_pool2d(Operand input, const AdaptiveMaxPool2dFuncOptions& options);
Tensor adaptive_max_pool3d(Operand input, const AdaptiveMaxPool3dFuncOptions& options);
Tensor max_unpool1d(Operand input, const Tensor& indices, const MaxUnpool1dFuncOptions& options);
Tensor max_unpool2d(Operand input, const Tensor& indices, const MaxUnpool2dFuncOptions& options);
Tensor max_unpool3d(Operand input, const Tensor& indices, const MaxUnpool3dFuncOptions& options);
Tensor fractional_max_pool2d(Operand input, const FractionalMaxPool2dFuncOptions& options);
Tensor fractional_max_pool3d(Operand input, const FractionalMaxPool3dFuncOptions& options);

/// The same with the places of the maxima.
std::tuple<Tensor, Tensor> max_pool1d_with_indices(Operand input, const MaxPool1dFuncOptions& options);
std::tuple<Tensor, Tensor> max_pool2d_with_indices(Operand input, const MaxPool2dFuncOptions& options);
std::tuple<Tensor, Tensor> max_pool3d_with_indices(Operand input, const MaxPool3dFuncOptions& options);
std::tuple<Tensor, Tensor> adaptive_max_pool1d_with_indices(Operand input,
                                                            const AdaptiveMaxPool1dFuncOptions& options);
std::tuple<Tensor, Tensor> adaptive_max_pool2d_with_indices(Operand input,
                                                            const AdaptiveMaxPool2dFuncOptions& options);
std::tuple<Tensor, Tensor> adaptive_max_pool3d_with_indices(Operand input,
                                                            const AdaptiveMaxPool3dFuncOptions& options);
std::tuple<Tensor, Tensor> fractional_max_pool2d_with_indices(Operand input,
                                                              const FractionalMaxPool2dFuncOptions& options);
std::tuple<Tensor, Tensor> fractional_max_pool3d_with_indices(Operand input,
                                                              const FractionalMaxPool3dFuncOptions& options);

}  // namespace torch::nn::functional
#pragma GCC visibility pop
