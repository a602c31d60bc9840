// retrograd::nn::functional: the functions that layers and losses are made of, in a namespace named as in PyTorch. They
// are the ops themselves; each is documented where it is defined.
#pragma once

#include "ops/activations.h"
#include "ops/attention.h"
#include "ops/convolution.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/interpolate.h"
#include "ops/losses.h"
#include "ops/matmul.h"
#include "ops/norms.h"
#include "ops/pooling.h"
#include "ops/softmax.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn::functional {

using retrograd::adaptive_avg_pool1d;
using retrograd::adaptive_avg_pool2d;
using retrograd::adaptive_avg_pool3d;
using retrograd::adaptive_max_pool1d;
using retrograd::adaptive_max_pool2d;
using retrograd::adaptive_max_pool3d;
using retrograd::alpha_dropout;
using retrograd::avg_pool1d;
using retrograd::avg_pool2d;
using retrograd::avg_pool3d;
using retrograd::conv1d;
using retrograd::conv2d;
using retrograd::conv3d;
using retrograd::conv_transpose1d;
using retrograd::conv_transpose2d;
using retrograd::conv_transpose3d;
using retrograd::cross_entropy;
using retrograd::dropout1d;
using retrograd::dropout2d;
using retrograd::dropout3d;
using retrograd::dropout;
using retrograd::elu;
using retrograd::embedding;
using retrograd::feature_alpha_dropout;
using retrograd::gelu;
using retrograd::interpolate;
using retrograd::layer_norm;
using retrograd::leaky_relu;
using retrograd::linear;
using retrograd::log_softmax;
using retrograd::logsigmoid;
using retrograd::max_pool1d;
using retrograd::max_pool1d_with_indices;
using retrograd::max_pool2d;
using retrograd::max_pool2d_with_indices;
using retrograd::max_pool3d;
using retrograd::max_pool3d_with_indices;
using retrograd::mse_loss;
using retrograd::nll_loss;
using retrograd::one_hot;
using retrograd::relu;
using retrograd::scaled_dot_product_attention;
using retrograd::sigmoid;
using retrograd::silu;
using retrograd::softmax;
using retrograd::softplus;
using retrograd::tanh;

}  // namespace retrograd::nn::functional
#pragma GCC visibility pop
