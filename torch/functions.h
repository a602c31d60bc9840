// Functions on tensors, and factories, under libtorch's names: those of ATen's functions that the library has too.
//
// They are listed one by one, since a using-directive would be passed on: `using namespace torch;` would make nn, optim
// and cuda ambiguous. Those with other names there are written out below the lists, those of torch::linalg and
// torch::special are in torch/linalg.h. A program that names something that neither has does not compile;
// docs/libtorch.md has alternatives.
#pragma once

#include <concepts>
#include <optional>
#include <tuple>

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/attention.h"
#include "ops/binary.h"
#include "ops/bitwise.h"
#include "ops/channels.h"
#include "ops/comparison.h"
#include "ops/composed.h"
#include "ops/contraction.h"
#include "ops/convolution.h"
#include "ops/counts.h"
#include "ops/creation.h"
#include "ops/ctc_loss.h"
#include "ops/cumulative.h"
#include "ops/differences.h"
#include "ops/distances.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/embedding_bag.h"
#include "ops/factorizations.h"
#include "ops/float_ops.h"
#include "ops/grid_sample.h"
#include "ops/in_place.h"
#include "ops/index_functions.h"
#include "ops/index_ops.h"
#include "ops/indexing.h"
#include "ops/interpolate.h"
#include "ops/join.h"
#include "ops/likelihood_losses.h"
#include "ops/linalg.h"
#include "ops/losses.h"
#include "ops/margin_losses.h"
#include "ops/matmul.h"
#include "ops/matrix_functions.h"
#include "ops/norms.h"
#include "ops/operators.h"
#include "ops/order_statistics.h"
#include "ops/patches.h"
#include "ops/pooling.h"
#include "ops/products.h"
#include "ops/quantile.h"
#include "ops/random_ops.h"
#include "ops/rearrange.h"
#include "ops/recurrent.h"
#include "ops/reduce.h"
#include "ops/reshaping.h"
#include "ops/sampling.h"
#include "ops/scan.h"
#include "ops/scatter_reduce.h"
#include "ops/search.h"
#include "ops/shape_ops.h"
#include "ops/shrinkage.h"
#include "ops/softmax.h"
#include "ops/sort.h"
#include "ops/special.h"
#include "ops/spectral.h"
#include "ops/stacking.h"
#include "ops/statistics.h"
#include "ops/synonyms.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/unique.h"
#include "ops/vector_pairs.h"
#include "ops/view_scatter.h"
#include "ops/views.h"
#include "torch/types.h"

#pragma GCC visibility push(default)
namespace torch {

// Functions.
using retrograd::abs;
using retrograd::absolute;
using retrograd::acos;
using retrograd::acosh;
using retrograd::adaptive_avg_pool1d;
using retrograd::adaptive_avg_pool2d;
using retrograd::adaptive_avg_pool3d;
using retrograd::adaptive_max_pool1d;
using retrograd::adaptive_max_pool2d;
using retrograd::adaptive_max_pool3d;
using retrograd::add;
using retrograd::addbmm;
using retrograd::addcdiv;
using retrograd::addcmul;
using retrograd::addmm;
using retrograd::addmv;
using retrograd::addr;
using retrograd::alias;
using retrograd::all;
using retrograd::allclose;
using retrograd::alpha_dropout;
using retrograd::amax;
using retrograd::amin;
using retrograd::aminmax;
using retrograd::any;
using retrograd::arange;
using retrograd::arccos;
using retrograd::arccosh;
using retrograd::arcsin;
using retrograd::arcsinh;
using retrograd::arctan;
using retrograd::arctan2;
using retrograd::arctanh;
using retrograd::argmax;
using retrograd::argmin;
using retrograd::argsort;
using retrograd::argwhere;
using retrograd::as_strided;
using retrograd::as_strided_scatter;
using retrograd::asin;
using retrograd::asinh;
using retrograd::atan;
using retrograd::atan2;
using retrograd::atanh;
using retrograd::atleast_1d;
using retrograd::atleast_2d;
using retrograd::atleast_3d;
using retrograd::avg_pool1d;
using retrograd::avg_pool2d;
using retrograd::avg_pool3d;
using retrograd::baddbmm;
using retrograd::batch_norm;
using retrograd::bernoulli;
using retrograd::bilinear;
using retrograd::binary_cross_entropy;
using retrograd::binary_cross_entropy_with_logits;
using retrograd::bincount;
using retrograd::bitwise_and;
using retrograd::bitwise_left_shift;
using retrograd::bitwise_not;
using retrograd::bitwise_or;
using retrograd::bitwise_right_shift;
using retrograd::bitwise_xor;
using retrograd::block_diag;
using retrograd::bmm;
using retrograd::broadcast_to;
using retrograd::bucketize;
using retrograd::cartesian_prod;
using retrograd::cat;
using retrograd::cdist;
using retrograd::ceil;
using retrograd::celu;
using retrograd::channel_shuffle;
using retrograd::cholesky;
using retrograd::cholesky_inverse;
using retrograd::cholesky_solve;
using retrograd::chunk;
using retrograd::clamp;
using retrograd::clamp_max;
using retrograd::clamp_min;
using retrograd::clip;
using retrograd::clone;
using retrograd::col2im;
using retrograd::column_stack;
using retrograd::contiguous;
using retrograd::conv1d;
using retrograd::conv2d;
using retrograd::conv3d;
using retrograd::conv_transpose1d;
using retrograd::conv_transpose2d;
using retrograd::conv_transpose3d;
using retrograd::copysign;
using retrograd::corrcoef;
using retrograd::cos;
using retrograd::cosh;
using retrograd::cosine_embedding_loss;
using retrograd::cosine_similarity;
using retrograd::count_nonzero;
using retrograd::cov;
using retrograd::ctc_loss;
using retrograd::cummax;
using retrograd::cummin;
using retrograd::cumprod;
using retrograd::cumsum;
using retrograd::cumulative_trapezoid;
using retrograd::deg2rad;
using retrograd::det;
using retrograd::detach;
using retrograd::diag;
using retrograd::diag_embed;
using retrograd::diagflat;
using retrograd::diagonal;
using retrograd::diagonal_scatter;
using retrograd::diff;
using retrograd::digamma;
using retrograd::dist;
using retrograd::div;
using retrograd::divide;
using retrograd::dot;
using retrograd::dropout;
using retrograd::dsplit;
using retrograd::dstack;
using retrograd::einsum;
using retrograd::elu;
using retrograd::embedding;
using retrograd::embedding_bag;
using retrograd::empty;
using retrograd::empty_like;
using retrograd::eq;
using retrograd::equal;
using retrograd::erf;
using retrograd::erfc;
using retrograd::erfinv;
using retrograd::exp;
using retrograd::exp2;
using retrograd::expand;
using retrograd::expand_as;
using retrograd::expm1;
using retrograd::feature_alpha_dropout;
using retrograd::feature_dropout;
using retrograd::fix;
using retrograd::flatten;
using retrograd::flip;
using retrograd::fliplr;
using retrograd::flipud;
using retrograd::float_power;
using retrograd::floor;
using retrograd::floor_divide;
using retrograd::fmax;
using retrograd::fmin;
using retrograd::fmod;
using retrograd::frac;
using retrograd::full;
using retrograd::full_like;
using retrograd::gather;
using retrograd::gcd;
using retrograd::ge;
using retrograd::gelu;
using retrograd::ger;
using retrograd::glu;
using retrograd::greater;
using retrograd::greater_equal;
using retrograd::group_norm;
using retrograd::gt;
using retrograd::hardshrink;
using retrograd::hardsigmoid;
using retrograd::hardswish;
using retrograd::hardtanh;
using retrograd::heaviside;
using retrograd::hinge_embedding_loss;
using retrograd::histc;
using retrograd::hsplit;
using retrograd::hstack;
using retrograd::huber_loss;
using retrograd::hypot;
using retrograd::im2col;
using retrograd::index;
using retrograd::index_add;
using retrograd::index_copy;
using retrograd::index_fill;
using retrograd::index_put;
using retrograd::index_reduce;
using retrograd::index_select;
using retrograd::inner;
using retrograd::instance_norm;
using retrograd::inverse;
using retrograd::isclose;
using retrograd::isfinite;
using retrograd::isin;
using retrograd::isinf;
using retrograd::isnan;
using retrograd::isneginf;
using retrograd::isposinf;
using retrograd::kl_div;
using retrograd::kron;
using retrograd::kthvalue;
using retrograd::l1_loss;
using retrograd::layer_norm;
using retrograd::lcm;
using retrograd::ldexp;
using retrograd::le;
using retrograd::leaky_relu;
using retrograd::lerp;
using retrograd::less;
using retrograd::less_equal;
using retrograd::lgamma;
using retrograd::linear;
using retrograd::linspace;
using retrograd::log;
using retrograd::log10;
using retrograd::log1p;
using retrograd::log2;
using retrograd::log_softmax;
using retrograd::logaddexp;
using retrograd::logaddexp2;
using retrograd::logcumsumexp;
using retrograd::logdet;
using retrograd::logical_and;
using retrograd::logical_not;
using retrograd::logical_or;
using retrograd::logical_xor;
using retrograd::logit;
using retrograd::logspace;
using retrograd::logsumexp;
using retrograd::lt;
using retrograd::margin_ranking_loss;
using retrograd::masked_fill;
using retrograd::masked_scatter;
using retrograd::masked_select;
using retrograd::matmul;
using retrograd::matrix_exp;
using retrograd::matrix_power;
using retrograd::max;
using retrograd::max_pool1d;
using retrograd::max_pool1d_with_indices;
using retrograd::max_pool2d;
using retrograd::max_pool2d_with_indices;
using retrograd::max_pool3d;
using retrograd::max_pool3d_with_indices;
using retrograd::maximum;
using retrograd::mean;
using retrograd::median;
using retrograd::meshgrid;
using retrograd::min;
using retrograd::minimum;
using retrograd::mish;
using retrograd::mm;
using retrograd::mode;
using retrograd::moveaxis;
using retrograd::movedim;
using retrograd::mse_loss;
using retrograd::msort;
using retrograd::mT;
using retrograd::mul;
using retrograd::multi_margin_loss;
using retrograd::multilabel_margin_loss;
using retrograd::multinomial;
using retrograd::multiply;
using retrograd::mv;
using retrograd::nan_to_num;
using retrograd::nanmean;
using retrograd::nanmedian;
using retrograd::nanquantile;
using retrograd::nansum;
using retrograd::narrow;
using retrograd::ne;
using retrograd::neg;
using retrograd::negative;
using retrograd::nextafter;
using retrograd::nll_loss;
using retrograd::nonzero;
using retrograd::norm;
using retrograd::normal;
using retrograd::not_equal;
using retrograd::one_hot;
using retrograd::ones;
using retrograd::ones_like;
using retrograd::outer;
using retrograd::pad;
using retrograd::pairwise_distance;
using retrograd::pdist;
using retrograd::permute;
using retrograd::pixel_shuffle;
using retrograd::pixel_unshuffle;
using retrograd::poisson_nll_loss;
using retrograd::polygamma;
using retrograd::positive;
using retrograd::pow;
using retrograd::prelu;
using retrograd::prod;
using retrograd::put;
using retrograd::quantile;
using retrograd::rad2deg;
using retrograd::rand;
using retrograd::rand_like;
using retrograd::randint;
using retrograd::randint_like;
using retrograd::randn;
using retrograd::randn_like;
using retrograd::randperm;
using retrograd::ravel;
using retrograd::reciprocal;
using retrograd::relu;
using retrograd::relu6;
using retrograd::remainder;
using retrograd::renorm;
using retrograd::repeat;
using retrograd::repeat_interleave;
using retrograd::reshape;
using retrograd::reshape_as;
using retrograd::rms_norm;
using retrograd::roll;
using retrograd::rot90;
using retrograd::round;
using retrograd::rsqrt;
using retrograd::rsub;
using retrograd::scalar_tensor;
using retrograd::scaled_dot_product_attention;
using retrograd::scatter;
using retrograd::scatter_add;
using retrograd::scatter_reduce;
using retrograd::searchsorted;
using retrograd::select;
using retrograd::select_scatter;
using retrograd::selu;
using retrograd::sgn;
using retrograd::sigmoid;
using retrograd::sign;
using retrograd::signbit;
using retrograd::silu;
using retrograd::sin;
using retrograd::sinc;
using retrograd::sinh;
using retrograd::slice;
using retrograd::slice_scatter;
using retrograd::slogdet;
using retrograd::smooth_l1_loss;
using retrograd::soft_margin_loss;
using retrograd::softmax;
using retrograd::softplus;
using retrograd::softshrink;
using retrograd::sort;
using retrograd::split;
using retrograd::split_with_sizes;
using retrograd::sqrt;
using retrograd::square;
using retrograd::squeeze;
using retrograd::stack;
using retrograd::std;
using retrograd::std_mean;
using retrograd::sub;
using retrograd::subtract;
using retrograd::sum;
using retrograd::sum_to_size;
using retrograd::swapaxes;
using retrograd::swapdims;
using retrograd::take;
using retrograd::take_along_dim;
using retrograd::tan;
using retrograd::tanh;
using retrograd::tensor_split;
using retrograd::tensordot;
using retrograd::threshold;
using retrograd::tile;
using retrograd::to;
using retrograd::topk;
using retrograd::trace;
using retrograd::transpose;
using retrograd::trapezoid;
using retrograd::tril;
using retrograd::tril_indices;
using retrograd::triplet_margin_loss;
using retrograd::triu;
using retrograd::triu_indices;
using retrograd::true_divide;
using retrograd::trunc;
using retrograd::unbind;
using retrograd::unflatten;
using retrograd::unfold;
using retrograd::unique_consecutive;
using retrograd::unsqueeze;
using retrograd::vander;
using retrograd::var;
using retrograd::var_mean;
using retrograd::vdot;
using retrograd::view;
using retrograd::view_as;
using retrograd::vsplit;
using retrograd::vstack;
using retrograd::where;
using retrograd::xlogy;
using retrograd::zeros;
using retrograd::zeros_like;

// In place.
using retrograd::abs_;
using retrograd::acos_;
using retrograd::acosh_;
using retrograd::addmv_;
using retrograd::alpha_dropout_;
using retrograd::as_strided_;
using retrograd::asin_;
using retrograd::asinh_;
using retrograd::atan_;
using retrograd::atanh_;
using retrograd::bitwise_and_;
using retrograd::bitwise_left_shift_;
using retrograd::bitwise_not_;
using retrograd::bitwise_or_;
using retrograd::bitwise_right_shift_;
using retrograd::bitwise_xor_;
using retrograd::ceil_;
using retrograd::celu_;
using retrograd::clamp_;
using retrograd::clamp_max_;
using retrograd::clamp_min_;
using retrograd::copysign_;
using retrograd::cos_;
using retrograd::cosh_;
using retrograd::deg2rad_;
using retrograd::digamma_;
using retrograd::dropout_;
using retrograd::elu_;
using retrograd::erf_;
using retrograd::erfc_;
using retrograd::erfinv_;
using retrograd::exp2_;
using retrograd::exp_;
using retrograd::expm1_;
using retrograd::feature_alpha_dropout_;
using retrograd::feature_dropout_;
using retrograd::fill_;
using retrograd::floor_;
using retrograd::floor_divide_;
using retrograd::frac_;
using retrograd::gcd_;
using retrograd::gelu_;
using retrograd::hardsigmoid_;
using retrograd::hardswish_;
using retrograd::hardtanh_;
using retrograd::heaviside_;
using retrograd::index_put_;
using retrograd::lcm_;
using retrograd::ldexp_;
using retrograd::leaky_relu_;
using retrograd::lgamma_;
using retrograd::log10_;
using retrograd::log1p_;
using retrograd::log2_;
using retrograd::log_;
using retrograd::logical_not_;
using retrograd::logit_;
using retrograd::mish_;
using retrograd::nan_to_num_;
using retrograd::neg_;
using retrograd::nextafter_;
using retrograd::rad2deg_;
using retrograd::reciprocal_;
using retrograd::relu6_;
using retrograd::relu_;
using retrograd::round_;
using retrograd::rsqrt_;
using retrograd::selu_;
using retrograd::sgn_;
using retrograd::sigmoid_;
using retrograd::sign_;
using retrograd::silu_;
using retrograd::sin_;
using retrograd::sinc_;
using retrograd::sinh_;
using retrograd::sqrt_;
using retrograd::square_;
using retrograd::tan_;
using retrograd::tanh_;
using retrograd::threshold_;
using retrograd::trunc_;
using retrograd::xlogy_;
using retrograd::zero_;

// Other names of libtorch for some of these.
inline Tensor concat(const retrograd::Tensors& tensors, int64_t dim = 0) { return cat(tensors, dim); }
inline Tensor concatenate(const retrograd::Tensors& tensors, int64_t dim = 0) { return cat(tensors, dim); }
inline Tensor i0(const retrograd::Operand& x) { return retrograd::special::i0(x); }
inline Tensor log_sigmoid(const retrograd::Operand& x) { return retrograd::logsigmoid(x); }

/// The positions where the condition holds: one int64 vector for each dim.
inline retrograd::Tensors where(const retrograd::Operand& condition) {
  return retrograd::unbind(retrograd::nonzero(condition), 1);
}
/// All expanded to the shape that they broadcast to.
retrograd::Tensors broadcast_tensors(const retrograd::Tensors& tensors,
                                     retrograd::SourceLocation where = retrograd::SourceLocation::current());
inline retrograd::UniqueResult _unique2(const retrograd::Operand& x, bool sorted = true,
                                        bool return_inverse = false, bool return_counts = false) {
  return retrograd::unique(x, sorted, return_inverse, return_counts);
}
inline std::tuple<Tensor, Tensor> _unique(const retrograd::Operand& x, bool sorted = true,
                                          bool return_inverse = false) {
  const auto [values, inverse, counts] = retrograd::unique(x, sorted, return_inverse);
  return {values, inverse};
}
inline retrograd::UniqueResult unique_dim(const retrograd::Operand& x, int64_t dim, bool sorted = true,
                                          bool return_inverse = false, bool return_counts = false) {
  return retrograd::unique(x, sorted, return_inverse, return_counts, dim);
}
Tensor upsample_nearest2d(const retrograd::Operand& x, IntArrayRef output_size);
Tensor upsample_bilinear2d(const retrograd::Operand& x, IntArrayRef output_size, bool align_corners);

// ATen's parameters where they are not the library's. Templates where the library's
// form would become ambiguous.

/// Along `dim`, or the first dim of `a` that has size 3. Error(bad_dim) when there is none.
inline Tensor cross(const retrograd::Operand& a, const retrograd::Operand& b,
                    std::optional<int64_t> dim = {}) {
  if (dim) return retrograd::linalg::cross(a, b, *dim);
  int64_t first = 0;
  for (const int64_t size : a.tensor("cross").sizes()) {
    if (size == 3) return retrograd::linalg::cross(a, b, first);
    ++first;
  }
  retrograd::fail(retrograd::Category::bad_dim, "cross",
                  "no dim has size 3. Hint: the operands are vectors of 3", a.where());
}
/// A negative padding_idx: none. Error(unsupported) for sparse gradients.
template <std::integral Index>
Tensor embedding(const retrograd::Operand& weight, const Tensor& indices, Index padding_idx,
                 bool scale_grad_by_freq = false, bool sparse = false) {
  if (sparse)
    retrograd::fail(retrograd::Category::unsupported, "embedding",
                    "there are no sparse gradients. Hint: sparse = false", weight.where());
  std::optional<int64_t> padding;
  if (padding_idx >= 0) padding = static_cast<int64_t>(padding_idx);
  return retrograd::embedding(weight, indices, padding, scale_grad_by_freq);
}
template <std::integral Mode, class... T>
Tensor embedding_bag(Tensor, Tensor, Tensor, bool, Mode, T&&...) = delete;  // (indices, weight, ..., "sum")
template <std::same_as<bool> Stable>
retrograd::ValuesAndIndices sort(const retrograd::Operand& x, Stable stable, int64_t dim = -1,
                                 bool descending = false) {
  return retrograd::sort(x, dim, descending, stable);
}
template <std::same_as<bool> Stable>
Tensor argsort(const retrograd::Operand& x, Stable stable, int64_t dim = -1, bool descending = false) {
  return retrograd::argsort(x, dim, descending, stable);
}
template <std::same_as<bool> Unbiased>
std::tuple<Tensor, Tensor> std_mean(const retrograd::Operand& x, Unbiased unbiased) {
  return retrograd::std_mean(x, {}, unbiased ? 1 : 0);
}
template <std::same_as<bool> Unbiased>
std::tuple<Tensor, Tensor> var_mean(const retrograd::Operand& x, Unbiased unbiased) {
  return retrograd::var_mean(x, {}, unbiased ? 1 : 0);
}

// With ATen's last argument, which asks for cuDNN: it changes nothing here.
inline Tensor batch_norm(const retrograd::Operand& input, const Tensor& weight, const Tensor& bias,
                         const Tensor& running_mean, const Tensor& running_var, bool training,
                         Scalar momentum, Scalar eps, bool /*cudnn_enabled*/) {
  return retrograd::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}
inline Tensor instance_norm(const retrograd::Operand& input, const Tensor& weight, const Tensor& bias,
                            const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                            Scalar momentum, Scalar eps, bool /*cudnn_enabled*/) {
  return retrograd::instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum,
                                  eps);
}
inline Tensor layer_norm(const retrograd::Operand& input, const retrograd::Shape& normalized_shape,
                         const Tensor& weight, const Tensor& bias, Scalar eps, bool /*cudnn_enable*/) {
  return retrograd::layer_norm(input, normalized_shape, weight, bias, eps);
}
inline Tensor group_norm(const retrograd::Operand& input, int64_t num_groups, const Tensor& weight,
                         const Tensor& bias, Scalar eps, bool /*cudnn_enabled*/) {
  return retrograd::group_norm(input, num_groups, weight, bias, eps);
}

namespace indexing {
using retrograd::indexing::Ellipsis;
using retrograd::indexing::EllipsisIndexType;
using retrograd::indexing::None;
using retrograd::indexing::Slice;
using retrograd::indexing::TensorIndex;
}  // namespace indexing

}  // namespace torch
#pragma GCC visibility pop
