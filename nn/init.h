// Initial values of parameters, written in place, with no record. Names and formulas are PyTorch's (torch.nn.init).
// Random ones draw from the default generator: the same seed and the same order of calls give the same values.
#pragma once

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn::init {

/// Uniform in [low, high); rounding to the dtype may give high.
void uniform_(const Tensor& x, double low = 0, double high = 1,
              SourceLocation where = SourceLocation::current());
void normal_(const Tensor& x, double mean = 0, double std = 1,
             SourceLocation where = SourceLocation::current());
void constant_(const Tensor& x, double value, SourceLocation where = SourceLocation::current());
void zeros_(const Tensor& x, SourceLocation where = SourceLocation::current());
void ones_(const Tensor& x, SourceLocation where = SourceLocation::current());

/// The number of inputs that one output of a weight [out, in, kernel...] depends on, and the reverse. Error(bad_dim)
/// below two dims.
struct Fans {
  int64_t in, out;
};
Fans fans(const Tensor& weight, SourceLocation where = SourceLocation::current());

/// Uniform in +-sqrt(6 / ((1 + a^2) fan_in)): He et al. 2015, for a leaky relu with negative slope a. a = sqrt(5) is
/// PyTorch's default for linear layers.
void kaiming_uniform_(const Tensor& weight, double a = 0, SourceLocation where = SourceLocation::current());
/// Uniform in +-gain sqrt(6 / (fan_in + fan_out)): Glorot and Bengio 2010.
void xavier_uniform_(const Tensor& weight, double gain = 1, SourceLocation where = SourceLocation::current());

}  // namespace retrograd::nn::init
#pragma GCC visibility pop
