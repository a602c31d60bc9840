// Activations.
#pragma once

#include "nn/activations.h"
#include "torch/nn/options/activation.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_LAYER(ELU);
RG_TORCH_LAYER(SELU);
RG_TORCH_LAYER(CELU);
RG_TORCH_LAYER(GELU);
RG_TORCH_LAYER(GLU);
RG_TORCH_LAYER(ReLU);
RG_TORCH_LAYER(ReLU6);
RG_TORCH_LAYER(LeakyReLU);
RG_TORCH_LAYER(RReLU);
RG_TORCH_LAYER(PReLU);
RG_TORCH_LAYER(Hardshrink);
RG_TORCH_LAYER(Hardtanh);
RG_TORCH_LAYER(Softplus);
RG_TORCH_LAYER(Softshrink);
RG_TORCH_LAYER(Threshold);
RG_TORCH_LAYER(Softmax);
RG_TORCH_LAYER(Softmin);
RG_TORCH_LAYER(LogSoftmax);
RG_TORCH_PLAIN_LAYER(LogSigmoid);
RG_TORCH_PLAIN_LAYER(Mish);
RG_TORCH_PLAIN_LAYER(Sigmoid);
RG_TORCH_PLAIN_LAYER(SiLU);
RG_TORCH_PLAIN_LAYER(Softmax2d);
RG_TORCH_PLAIN_LAYER(Softsign);
RG_TORCH_PLAIN_LAYER(Tanh);
RG_TORCH_PLAIN_LAYER(Tanhshrink);

}  // namespace torch::nn
#pragma GCC visibility pop
