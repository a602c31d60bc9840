// Initial values of parameters, written in place, with no record. Names, formulas and defaults are PyTorch's
// (torch.nn.init). Each returns its tensor. Random ones draw from the default generator: the same seed and the same
// order of calls give the same values. A tensor without elements stays as it is.
#pragma once

#include <string_view>

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn::init {

/// Uniform in [low, high); rounding to the dtype may give high.
const Tensor& uniform_(const Tensor& x, double low = 0, double high = 1,
                       SourceLocation where = SourceLocation::current());
const Tensor& normal_(const Tensor& x, double mean = 0, double std = 1,
                      SourceLocation where = SourceLocation::current());
/// The normal distribution between a and b. Error(bad_argument) unless std > 0 and a < b.
const Tensor& trunc_normal_(const Tensor& x, double mean = 0, double std = 1, double a = -2, double b = 2,
                            SourceLocation where = SourceLocation::current());
const Tensor& constant_(const Tensor& x, double value, SourceLocation where = SourceLocation::current());
const Tensor& zeros_(const Tensor& x, SourceLocation where = SourceLocation::current());
const Tensor& ones_(const Tensor& x, SourceLocation where = SourceLocation::current());

/// Ones on the diagonal of a matrix. Error(bad_dim) for another tensor.
const Tensor& eye_(const Tensor& x, SourceLocation where = SourceLocation::current());
/// The weight of a convolution [out, in, kernel...] that gives its input, as far as there are channels; with groups, in
/// each group. Errors: bad_dim unless there are 3, 4 or 5 dims, bad_argument unless `groups` divides out.
const Tensor& dirac_(const Tensor& x, int64_t groups = 1, SourceLocation where = SourceLocation::current());
/// Rows or columns, whichever are fewer, that are orthogonal to each other and have the length `gain`: Saxe et al.
/// 2013. Dims after the first count as one. Errors: bad_dim below two dims, dtype_mismatch.
const Tensor& orthogonal_(const Tensor& x, double gain = 1, SourceLocation where = SourceLocation::current());
/// A matrix of normal values, with ceil(sparsity * rows) zeros in each column: Martens 2010. Errors: bad_dim for
/// another tensor, bad_argument unless 0 <= sparsity <= 1.
const Tensor& sparse_(const Tensor& x, double sparsity, double std = 0.01,
                      SourceLocation where = SourceLocation::current());

/// The number of inputs that one output of a weight [out, in, kernel...] depends on, and the reverse. Error(bad_dim)
/// below two dims.
struct Fans {
  int64_t in, out;
};
Fans fans(const Tensor& weight, SourceLocation where = SourceLocation::current());

/// What a layer's values are scaled by so that this function keeps their variance: 1 for "linear", "conv1d", ...,
/// "conv_transpose3d" and "sigmoid", 5/3 for "tanh", sqrt(2) for "relu", sqrt(2 / (1 + param^2)) for "leaky_relu" with
/// the slope param, 3/4 for "selu". Error(bad_argument) for another one.
double calculate_gain(std::string_view nonlinearity, double param = 0.01,
                      SourceLocation where = SourceLocation::current());

/// He et al. 2015: the deviation is gain / sqrt(fan), with the fan of `mode`, "fan_in" or "fan_out", and the gain of
/// the nonlinearity with the parameter a. With a = sqrt(5) it is PyTorch's default for linear layers. Errors: bad_dim
/// below two dims, bad_argument for another mode or nonlinearity.
const Tensor& kaiming_uniform_(const Tensor& weight, double a = 0, std::string_view mode = "fan_in",
                               std::string_view nonlinearity = "leaky_relu",
                               SourceLocation where = SourceLocation::current());
const Tensor& kaiming_normal_(const Tensor& weight, double a = 0, std::string_view mode = "fan_in",
                              std::string_view nonlinearity = "leaky_relu",
                              SourceLocation where = SourceLocation::current());
/// Glorot and Bengio 2010: the deviation is gain sqrt(2 / (fan_in + fan_out)).
const Tensor& xavier_uniform_(const Tensor& weight, double gain = 1,
                              SourceLocation where = SourceLocation::current());
const Tensor& xavier_normal_(const Tensor& weight, double gain = 1,
                             SourceLocation where = SourceLocation::current());

}  // namespace retrograd::nn::init
#pragma GCC visibility pop
