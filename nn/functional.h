// retrograd::nn::functional: the functions that layers and losses are made of, in a namespace named as in PyTorch. They
// are the functions of ops/ themselves, each documented where it is defined; those written out below differ in name or
// order of arguments.
#pragma once

#include "ops/activations.h"
#include "ops/attention.h"
#include "ops/channels.h"
#include "ops/composed.h"
#include "ops/convolution.h"
#include "ops/ctc_loss.h"
#include "ops/distances.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/embedding_bag.h"
#include "ops/grid_sample.h"
#include "ops/interpolate.h"
#include "ops/likelihood_losses.h"
#include "ops/losses.h"
#include "ops/margin_losses.h"
#include "ops/matmul.h"
#include "ops/norms.h"
#include "ops/patches.h"
#include "ops/pooling.h"
#include "ops/random_activations.h"
#include "ops/rearrange.h"
#include "ops/shrinkage.h"
#include "ops/softmax.h"
#include "ops/unpooling.h"
#include "ops/vector_pairs.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn::functional {

using retrograd::adaptive_avg_pool1d;
using retrograd::adaptive_avg_pool2d;
using retrograd::adaptive_avg_pool3d;
using retrograd::adaptive_max_pool1d;
using retrograd::adaptive_max_pool1d_with_indices;
using retrograd::adaptive_max_pool2d;
using retrograd::adaptive_max_pool2d_with_indices;
using retrograd::adaptive_max_pool3d;
using retrograd::adaptive_max_pool3d_with_indices;
using retrograd::affine_grid;
using retrograd::alpha_dropout;
using retrograd::avg_pool1d;
using retrograd::avg_pool2d;
using retrograd::avg_pool3d;
using retrograd::bilinear;
using retrograd::binary_cross_entropy;
using retrograd::binary_cross_entropy_with_logits;
using retrograd::celu;
using retrograd::channel_shuffle;
using retrograd::conv1d;
using retrograd::conv2d;
using retrograd::conv3d;
using retrograd::conv_transpose1d;
using retrograd::conv_transpose2d;
using retrograd::conv_transpose3d;
using retrograd::cosine_embedding_loss;
using retrograd::cosine_similarity;
using retrograd::cross_entropy;
using retrograd::ctc_loss;
using retrograd::dropout;
using retrograd::dropout1d;
using retrograd::dropout2d;
using retrograd::dropout3d;
using retrograd::elu;
using retrograd::embedding;
using retrograd::embedding_bag;
using retrograd::feature_alpha_dropout;
using retrograd::fractional_max_pool2d;
using retrograd::fractional_max_pool2d_with_indices;
using retrograd::fractional_max_pool3d;
using retrograd::fractional_max_pool3d_with_indices;
using retrograd::gaussian_nll_loss;
using retrograd::gelu;
using retrograd::glu;
using retrograd::grid_sample;
using retrograd::group_norm;
using retrograd::gumbel_softmax;
using retrograd::hardshrink;
using retrograd::hardsigmoid;
using retrograd::hardswish;
using retrograd::hardtanh;
using retrograd::hinge_embedding_loss;
using retrograd::huber_loss;
using retrograd::interpolate;
using retrograd::kl_div;
using retrograd::l1_loss;
using retrograd::layer_norm;
using retrograd::leaky_relu;
using retrograd::linear;
using retrograd::local_response_norm;
using retrograd::log_softmax;
using retrograd::logsigmoid;
using retrograd::lp_pool1d;
using retrograd::lp_pool2d;
using retrograd::lp_pool3d;
using retrograd::margin_ranking_loss;
using retrograd::max_pool1d;
using retrograd::max_pool1d_with_indices;
using retrograd::max_pool2d;
using retrograd::max_pool2d_with_indices;
using retrograd::max_pool3d;
using retrograd::max_pool3d_with_indices;
using retrograd::max_unpool1d;
using retrograd::max_unpool2d;
using retrograd::max_unpool3d;
using retrograd::mish;
using retrograd::mse_loss;
using retrograd::multi_margin_loss;
using retrograd::multilabel_margin_loss;
using retrograd::multilabel_soft_margin_loss;
using retrograd::nll_loss;
using retrograd::normalize;
using retrograd::one_hot;
using retrograd::pad;
using retrograd::pairwise_distance;
using retrograd::pdist;
using retrograd::pixel_shuffle;
using retrograd::pixel_unshuffle;
using retrograd::poisson_nll_loss;
using retrograd::prelu;
using retrograd::relu;
using retrograd::relu6;
using retrograd::rms_norm;
using retrograd::rrelu;
using retrograd::scaled_dot_product_attention;
using retrograd::selu;
using retrograd::sigmoid;
using retrograd::silu;
using retrograd::smooth_l1_loss;
using retrograd::soft_margin_loss;
using retrograd::softmax;
using retrograd::softmin;
using retrograd::softplus;
using retrograd::softshrink;
using retrograd::softsign;
using retrograd::tanh;
using retrograd::tanhshrink;
using retrograd::threshold;
using retrograd::triplet_margin_loss;
using retrograd::triplet_margin_with_distance_loss;

// Under their names here, arguments are in the order of torch.nn.functional: running statistics come first.
inline Tensor batch_norm(Operand input, const Tensor& running_mean, const Tensor& running_var,
                         const Tensor& weight = {}, const Tensor& bias = {}, bool training = false,
                         Scalar momentum = 0.1, Scalar eps = 1e-5) {
  return retrograd::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}
inline Tensor instance_norm(Operand input, const Tensor& running_mean = {}, const Tensor& running_var = {},
                            const Tensor& weight = {}, const Tensor& bias = {}, bool use_input_stats = true,
                            Scalar momentum = 0.1, Scalar eps = 1e-5) {
  return retrograd::instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum,
                                  eps);
}

/// retrograd::im2col and col2im, under their names here; unfold of one dim is retrograd::unfold.
inline Tensor unfold(Operand input, const IntList& kernel_size, const IntList& dilation = 1,
                     const IntList& padding = 0, const IntList& stride = 1) {
  return im2col(input, kernel_size, dilation, padding, stride);
}
inline Tensor fold(Operand input, const IntList& output_size, const IntList& kernel_size,
                   const IntList& dilation = 1, const IntList& padding = 0, const IntList& stride = 1) {
  return col2im(input, output_size, kernel_size, dilation, padding, stride);
}

}  // namespace retrograd::nn::functional
#pragma GCC visibility pop
