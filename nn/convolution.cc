// See nn/convolution.h. Each forward opens the scope of its caller's line, as in nn/layers.cc.
#include "nn/convolution.h"

#include <fmt/format.h>

#include <cmath>

#include "nn/init.h"
#include "ops/creation.h"

namespace retrograd::inline v0::nn {
namespace {

// [first, second / groups, kernel...] with a kernel of `dims` sizes.
Shape weight_shape(int dims, int64_t first, int64_t second, const IntList& kernel, int64_t groups,
                   SourceLocation where) {
  if (kernel.size() != 1 && kernel.size() != dims)
    fail(Category::bad_argument, "Conv", fmt::format("the kernel needs 1 or {} sizes", dims), where);
  if (groups < 1 || first % groups != 0 || second % groups != 0)
    fail(Category::bad_argument, "Conv",
         fmt::format("{} groups do not divide {} and {} channels", groups, first, second), where);
  Shape shape{first, second / groups};
  for (int d = 0; d < dims; ++d) shape.push_back(kernel[kernel.size() == 1 ? 0 : d]);
  return shape;
}

}  // namespace

ConvLayer::ConvLayer(Module* parent, std::string name, const Shape& weight_shape, int64_t out, bool has_bias)
    : Module(parent, std::move(name)),
      weight(this, "weight", empty(weight_shape)),
      bias(this, "bias", has_bias ? empty({out}) : Tensor()) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  const double bound = 1 / std::sqrt(static_cast<double>(init::fans(weight).in));
  if (has_bias) init::uniform_(bias, -bound, bound);
}

template <int Dims>
Conv<Dims>::Conv(Module* parent, std::string name, int64_t in, int64_t out, const IntList& kernel,
                 ConvOptions options, SourceLocation where)
    : ConvLayer(parent, std::move(name), weight_shape(Dims, out, in, kernel, options.groups, where), out,
                options.bias),
      options_(options) {}

template <int Dims>
Tensor Conv<Dims>::forward(Operand x) const {
  CallScope scope(x.where());
  constexpr auto function = Dims == 1 ? conv1d : Dims == 2 ? conv2d : conv3d;
  return function(x, weight, bias, options_.stride, options_.padding, options_.dilation, options_.groups);
}

template <int Dims>
ConvTranspose<Dims>::ConvTranspose(Module* parent, std::string name, int64_t in, int64_t out,
                                   const IntList& kernel, ConvTransposeOptions options, SourceLocation where)
    : ConvLayer(parent, std::move(name), weight_shape(Dims, in, out, kernel, options.groups, where), out,
                options.bias),
      options_(options) {}

template <int Dims>
Tensor ConvTranspose<Dims>::forward(Operand x) const {
  CallScope scope(x.where());
  constexpr auto function = Dims == 1 ? conv_transpose1d : Dims == 2 ? conv_transpose2d : conv_transpose3d;
  return function(x, weight, bias, options_.stride, options_.padding, options_.output_padding,
                  options_.groups, options_.dilation);
}

template class Conv<1>;
template class Conv<2>;
template class Conv<3>;
template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;

}  // namespace retrograd::nn
