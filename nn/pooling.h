// Pooling and resampling layers: modules without parameters. Operands are (N, C, ...) or (C, ...) with as many dims
// after C, the grid, as the name of the layer says. Sizes are one number for all dims of the grid or one for each. What
// is computed, and errors: ops/pooling.h, ops/unpooling.h, ops/patches.h (LPPool), ops/interpolate.h.
//
//   nn::MaxPool2d pool{this, "pool", 3, {.stride = 2, .padding = 1}};
//
// forward_with_indices, where there is one, also gives the places of the elements that were taken; it runs no hooks.
#pragma once

#include "nn/layer.h"
#include "ops/interpolate.h"
#include "ops/pooling.h"
#include "ops/unpooling.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct MaxPoolOptions {
  IntList stride = {};  // empty: the kernel's size
  IntList padding = 0, dilation = 1;
  bool ceil_mode = false;
};

/// The largest elements of windows.
template <int Dims>
class MaxPool : public Layer<MaxPool<Dims>> {
 public:
  static constexpr std::string_view type_name = detail::name_for(Dims, "MaxPool1d", "MaxPool2d", "MaxPool3d");
  MaxPool(Module* parent, std::string name, const IntList& kernel_size, MaxPoolOptions options = {})
      : Layer<MaxPool>(parent, std::move(name)), kernel_size(kernel_size), options(options) {}
  Tensor forward(Operand x) const { return forward_with_indices(x).values; }
  MaxPoolResult forward_with_indices(Operand x) const;
  std::string extra_repr() const;
  std::tuple<IntList, MaxPoolOptions> arguments() const { return {kernel_size, options}; }

  const IntList kernel_size;
  const MaxPoolOptions options;
};

struct MaxUnpoolOptions {
  IntList stride = {};  // empty: the kernel's size
  IntList padding = 0;
};

/// The grid that a MaxPool with these arguments gave x and its indices for, with zeros at all other places. output_size
/// selects one of the sizes that pool to this one.
template <int Dims>
class MaxUnpool : public Layer<MaxUnpool<Dims>> {
 public:
  static constexpr std::string_view type_name =
      detail::name_for(Dims, "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d");
  MaxUnpool(Module* parent, std::string name, const IntList& kernel_size, MaxUnpoolOptions options = {})
      : Layer<MaxUnpool>(parent, std::move(name)), kernel_size(kernel_size), options(options) {}
  Tensor forward(Operand x, const Tensor& indices, const IntList& output_size = {}) const;
  Tensor operator()(Operand x, const Tensor& indices, const IntList& output_size = {}) const {
    return this->call(*this, x, indices, output_size);
  }
  std::string extra_repr() const;
  std::tuple<IntList, MaxUnpoolOptions> arguments() const { return {kernel_size, options}; }

  const IntList kernel_size;
  const MaxUnpoolOptions options;
};

struct FractionalMaxPoolOptions {
  IntList output_size = {};  // either this
  PerDim<double> output_ratio = {};
  Tensor random_samples = {};  // where windows begin (ops/unpooling.h), a buffer; none: drawn in each call
};

/// The largest elements of windows at random places, which spread evenly over the grid.
template <int Dims>
requires(Dims == 2 || Dims == 3) class FractionalMaxPool : public Layer<FractionalMaxPool<Dims>> {
 public:
  static constexpr std::string_view type_name =
      detail::name_for(Dims, "", "FractionalMaxPool2d", "FractionalMaxPool3d");
  FractionalMaxPool(Module* parent, std::string name, const IntList& kernel_size,
                    FractionalMaxPoolOptions options)
      : Layer<FractionalMaxPool>(parent, std::move(name)),
        kernel_size(kernel_size),
        options(std::move(options)),
        random_samples(this, "_random_samples", detail::sharing(this->options.random_samples)) {}
  Tensor forward(Operand x) const { return forward_with_indices(x).values; }
  MaxPoolResult forward_with_indices(Operand x) const;
  std::string extra_repr() const;
  std::tuple<IntList, FractionalMaxPoolOptions> arguments() const { return {kernel_size, options}; }

  const IntList kernel_size;
  const FractionalMaxPoolOptions options;
  Buffer random_samples;
};

struct AvgPoolOptions {
  IntList stride = {};  // empty: the kernel's size
  IntList padding = 0;
  bool ceil_mode = false, count_include_pad = true;
  std::optional<int64_t> divisor_override = {};  // not for one dim
};

/// Averages over windows.
template <int Dims>
class AvgPool : public Layer<AvgPool<Dims>> {
 public:
  static constexpr std::string_view type_name = detail::name_for(Dims, "AvgPool1d", "AvgPool2d", "AvgPool3d");
  /// Error(bad_argument) for a divisor_override of AvgPool1d.
  AvgPool(Module* parent, std::string name, const IntList& kernel_size, AvgPoolOptions options = {},
          SourceLocation where = SourceLocation::current());
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
  std::tuple<IntList, AvgPoolOptions> arguments() const { return {kernel_size, options}; }

  const IntList kernel_size;
  const AvgPoolOptions options;
};

struct LPPoolOptions {
  IntList stride = {};  // empty: the kernel's size
  bool ceil_mode = false;
};

/// (sum x^norm_type)^(1 / norm_type) over windows.
template <int Dims>
class LPPool : public Layer<LPPool<Dims>> {
 public:
  static constexpr std::string_view type_name = detail::name_for(Dims, "LPPool1d", "LPPool2d", "LPPool3d");
  LPPool(Module* parent, std::string name, double norm_type, const IntList& kernel_size,
         LPPoolOptions options = {})
      : Layer<LPPool>(parent, std::move(name)),
        norm_type(norm_type),
        kernel_size(kernel_size),
        options(options) {}
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
  std::tuple<double, IntList, LPPoolOptions> arguments() const { return {norm_type, kernel_size, options}; }

  const double norm_type;
  const IntList kernel_size;
  const LPPoolOptions options;
};

/// Base of pools over windows that cover the grid, output_size of them; nullopt keeps a dim.
template <class Self, int Dims>
class AdaptivePool : public Layer<Self> {
 public:
  AdaptivePool(Module* parent, std::string name, AdaptiveSize output_size)
      : Layer<Self>(parent, std::move(name)), output_size(std::move(output_size)) {}
  std::string extra_repr() const;
  std::tuple<AdaptiveSize> arguments() const { return {output_size}; }

  const AdaptiveSize output_size;
};

/// Averages.
template <int Dims>
struct AdaptiveAvgPool : AdaptivePool<AdaptiveAvgPool<Dims>, Dims> {
  static constexpr std::string_view type_name =
      detail::name_for(Dims, "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d");
  using AdaptivePool<AdaptiveAvgPool, Dims>::AdaptivePool;
  Tensor forward(Operand x) const;
};

/// The largest elements.
template <int Dims>
struct AdaptiveMaxPool : AdaptivePool<AdaptiveMaxPool<Dims>, Dims> {
  static constexpr std::string_view type_name =
      detail::name_for(Dims, "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d");
  using AdaptivePool<AdaptiveMaxPool, Dims>::AdaptivePool;
  Tensor forward(Operand x) const { return forward_with_indices(x).values; }
  MaxPoolResult forward_with_indices(Operand x) const;
};

/// x (N, C, ...): the dims after C resampled.
class Upsample : public Layer<Upsample> {
 public:
  static constexpr std::string_view type_name = "Upsample";
  Upsample(Module* parent, std::string name, InterpolateOptions options);
  Tensor forward(Operand x) const { return interpolate(x, options); }
  std::string extra_repr() const;
  std::tuple<InterpolateOptions> arguments() const;

  const InterpolateOptions options;
};

using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;
using MaxUnpool1d = MaxUnpool<1>;
using MaxUnpool2d = MaxUnpool<2>;
using MaxUnpool3d = MaxUnpool<3>;
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;
using LPPool1d = LPPool<1>;
using LPPool2d = LPPool<2>;
using LPPool3d = LPPool<3>;
using AdaptiveAvgPool1d = AdaptiveAvgPool<1>;
using AdaptiveAvgPool2d = AdaptiveAvgPool<2>;
using AdaptiveAvgPool3d = AdaptiveAvgPool<3>;
using AdaptiveMaxPool1d = AdaptiveMaxPool<1>;
using AdaptiveMaxPool2d = AdaptiveMaxPool<2>;
using AdaptiveMaxPool3d = AdaptiveMaxPool<3>;
using FractionalMaxPool2d = FractionalMaxPool<2>;
using FractionalMaxPool3d = FractionalMaxPool<3>;

}  // namespace retrograd::nn
#pragma GCC visibility pop
