// Convolution layers. Parameters, their names, shapes and initial values are PyTorch's: weight and bias uniform in
// +-1/sqrt(fan), where fan is the second size of weight times the number of kernel elements. Functions and errors:
// ops/convolution.h.
//
//   nn::Conv2d conv{this, "conv", 3, 64, 7, {.stride = 2, .padding = 3}};
#pragma once

#include "nn/layer.h"
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
  std::string padding_mode =
      "zeros";  // or "reflect", "replicate", "circular": what the padding is made of
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
  const int64_t in_channels, out_channels;
  const IntList kernel_size;
  Parameter weight, bias;

 protected:
  ConvLayer(Module* parent, std::string name, int64_t in, int64_t out, const IntList& kernel,
            const Shape& weight_shape, bool has_bias);
};

/// x (batch, in, spatial...) -> (batch, out, spatial...), with `Dims` spatial dims; weight [out, in / groups,
/// kernel...]. One number as kernel counts for all dims. Error(bad_argument) unless `groups` divides both numbers of
/// channels, and for an unknown padding_mode.
template <int Dims>
class Conv : public Layer<Conv<Dims>, ConvLayer> {
 public:
  static constexpr std::string_view type_name = detail::name_for(Dims, "Conv1d", "Conv2d", "Conv3d");
  Conv(Module* parent, std::string name, int64_t in, int64_t out, const IntList& kernel,
       ConvOptions options = {}, SourceLocation where = SourceLocation::current());
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
  std::tuple<int64_t, int64_t, IntList, ConvOptions> arguments() const {
    return {this->in_channels, this->out_channels, this->kernel_size, options};
  }

  const ConvOptions options;

 private:
  IntArray border() const;
};

/// The transposed form; weight [in, out / groups, kernel...]. forward(x, output_size), with an entry per spatial dim or
/// per dim, selects one of the sizes that a convolution with these options maps to x's, in place of
/// options.output_padding. Error(bad_argument) for another size.
template <int Dims>
class ConvTranspose : public Layer<ConvTranspose<Dims>, ConvLayer> {
 public:
  static constexpr std::string_view type_name =
      detail::name_for(Dims, "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d");
  ConvTranspose(Module* parent, std::string name, int64_t in, int64_t out, const IntList& kernel,
                ConvTransposeOptions options = {}, SourceLocation where = SourceLocation::current());
  Tensor forward(Operand x, const IntList& output_size = {}) const;
  Tensor operator()(Operand x) const { return this->call(*this, x); }
  Tensor operator()(Operand x, const IntList& output_size) const { return this->call(*this, x, output_size); }
  std::string extra_repr() const;
  std::tuple<int64_t, int64_t, IntList, ConvTransposeOptions> arguments() const {
    return {this->in_channels, this->out_channels, this->kernel_size, options};
  }

  const ConvTransposeOptions options;

 private:
  IntList output_padding_for(Operand x, const IntList& output_size) const;
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
