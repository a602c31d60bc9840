// Convolution layers. Parameters, their names, shapes and initial values are PyTorch's: weight and bias uniform in
// +-1/sqrt(fan), where fan is the second size of weight times the number of kernel elements.
//
//   nn::Conv2d conv{this, "conv", 3, 64, 7, {.stride = 2, .padding = 3}};
#pragma once

#include "nn/module.h"
#include "ops/convolution.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

/// Lists have an entry per spatial dim, or one for all.
struct ConvOptions {
  IntList stride = 1;
  ConvPadding padding = 0;  // or "same", "valid"
  IntList dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};

struct ConvTransposeOptions {
  IntList stride = 1, padding = 0, output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  IntList dilation = 1;
};

/// Base of all of them: weight, and bias [out] or none.
class ConvLayer : public Module {
 public:
  Parameter weight, bias;

 protected:
  ConvLayer(Module* parent, std::string name, const Shape& weight_shape, int64_t out, bool has_bias);
};

/// x (batch, in, spatial...) -> (batch, out, spatial...), with `Dims` spatial dims; weight [out, in / groups,
/// kernel...]. One number as kernel counts for all dims. Error(bad_argument) unless `groups` divides both numbers of
/// channels.
template <int Dims>
class Conv : public ConvLayer {
 public:
  Conv(Module* parent, std::string name, int64_t in, int64_t out, const IntList& kernel,
       ConvOptions options = {}, SourceLocation where = SourceLocation::current());
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }

 private:
  ConvOptions options_;
};

/// The transposed form; weight [in, out / groups, kernel...].
template <int Dims>
class ConvTranspose : public ConvLayer {
 public:
  ConvTranspose(Module* parent, std::string name, int64_t in, int64_t out, const IntList& kernel,
                ConvTransposeOptions options = {}, SourceLocation where = SourceLocation::current());
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }

 private:
  ConvTransposeOptions options_;
};

using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;
using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

extern template class Conv<1>;
extern template class Conv<2>;
extern template class Conv<3>;
extern template class ConvTranspose<1>;
extern template class ConvTranspose<2>;
extern template class ConvTranspose<3>;

}  // namespace retrograd::nn
#pragma GCC visibility pop
