// Activation layers: each is the function of its name (ops/activations.h, ops/shrinkage.h, ops/random_activations.h),
// which says what it computes, for which dtypes, and with which errors. Results have the shape of x, but for GLU.
//
//   nn::LeakyReLU activation{this, "activation", {.negative_slope = 0.2}};
//
// `inplace` writes the result into the operand, under the rules of all in-place ops (engine/inplace.h).
#pragma once

#include "nn/layer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

// ---- without arguments ----

struct Hardsigmoid : Layer<Hardsigmoid> {
  static constexpr std::string_view type_name = "Hardsigmoid";
  using Layer::Layer;
  Tensor forward(Operand x) const;
};

struct Hardswish : Layer<Hardswish> {
  static constexpr std::string_view type_name = "Hardswish";
  using Layer::Layer;
  Tensor forward(Operand x) const;
};

struct LogSigmoid : Layer<LogSigmoid> {
  static constexpr std::string_view type_name = "LogSigmoid";
  using Layer::Layer;
  Tensor forward(Operand x) const;
};

struct Mish : Layer<Mish> {
  static constexpr std::string_view type_name = "Mish";
  using Layer::Layer;
  Tensor forward(Operand x) const;
};

struct SiLU : Layer<SiLU> {
  static constexpr std::string_view type_name = "SiLU";
  using Layer::Layer;
  Tensor forward(Operand x) const;
};

struct Sigmoid : Layer<Sigmoid> {
  static constexpr std::string_view type_name = "Sigmoid";
  using Layer::Layer;
  Tensor forward(Operand x) const;
};

struct Softsign : Layer<Softsign> {
  static constexpr std::string_view type_name = "Softsign";
  using Layer::Layer;
  Tensor forward(Operand x) const;
};

struct Tanh : Layer<Tanh> {
  static constexpr std::string_view type_name = "Tanh";
  using Layer::Layer;
  Tensor forward(Operand x) const;
};

struct Tanhshrink : Layer<Tanhshrink> {
  static constexpr std::string_view type_name = "Tanhshrink";
  using Layer::Layer;
  Tensor forward(Operand x) const;
};

// ---- with options ----

struct InplaceOptions {
  bool inplace = false;
};

struct ReLU : OptionsLayer<ReLU, InplaceOptions> {
  static constexpr std::string_view type_name = "ReLU";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct ReLU6 : OptionsLayer<ReLU6, InplaceOptions> {
  static constexpr std::string_view type_name = "ReLU6";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct SELU : OptionsLayer<SELU, InplaceOptions> {
  static constexpr std::string_view type_name = "SELU";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct ELUOptions {
  double alpha = 1.0;
  bool inplace = false;
};

struct ELU : OptionsLayer<ELU, ELUOptions> {
  static constexpr std::string_view type_name = "ELU";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct CELU : OptionsLayer<CELU, ELUOptions> {
  static constexpr std::string_view type_name = "CELU";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct LeakyReLUOptions {
  double negative_slope = 0.01;
  bool inplace = false;
};

struct LeakyReLU : OptionsLayer<LeakyReLU, LeakyReLUOptions> {
  static constexpr std::string_view type_name = "LeakyReLU";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct HardtanhOptions {
  double min_val = -1.0, max_val = 1.0;
  bool inplace = false;
};

class Hardtanh : public OptionsLayer<Hardtanh, HardtanhOptions> {
 public:
  static constexpr std::string_view type_name = "Hardtanh";
  /// Error(bad_argument) unless min_val < max_val.
  explicit Hardtanh(Module* parent = nullptr, std::string name = {}, HardtanhOptions options = {},
                    SourceLocation where = SourceLocation::current());
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct RReLUOptions {
  double lower = 1.0 / 8, upper = 1.0 / 3;
  bool inplace = false;
};

/// In training the slope of negative elements is drawn from [lower, upper), else it is the middle.
class RReLU : public OptionsLayer<RReLU, RReLUOptions> {
 public:
  static constexpr std::string_view type_name = "RReLU";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct GELUOptions {
  std::string approximate = "none";  // or "tanh"
};

struct GELU : OptionsLayer<GELU, GELUOptions> {
  static constexpr std::string_view type_name = "GELU";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct GLUOptions {
  int64_t dim = -1;
};

/// Half of the size along `dim`: the first half of x times sigmoid of the second.
struct GLU : OptionsLayer<GLU, GLUOptions> {
  static constexpr std::string_view type_name = "GLU";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct ShrinkOptions {
  double lambd = 0.5;
};

struct Hardshrink : OptionsLayer<Hardshrink, ShrinkOptions> {
  static constexpr std::string_view type_name = "Hardshrink";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct Softshrink : OptionsLayer<Softshrink, ShrinkOptions> {
  static constexpr std::string_view type_name = "Softshrink";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct SoftplusOptions {
  double beta = 1.0, threshold = 20.0;
};

struct Softplus : OptionsLayer<Softplus, SoftplusOptions> {
  static constexpr std::string_view type_name = "Softplus";
  using OptionsLayer::OptionsLayer;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

struct PReLUOptions {
  int64_t num_parameters = 1;  // or one for each index of x's dim 1
  double init = 0.25;
};

/// Has a parameter: weight [num_parameters], the slope of negative elements.
class PReLU : public OptionsLayer<PReLU, PReLUOptions> {
 public:
  static constexpr std::string_view type_name = "PReLU";
  explicit PReLU(Module* parent = nullptr, std::string name = {}, PReLUOptions options = {});
  Tensor forward(Operand x) const;
  std::string extra_repr() const;

  Parameter weight;
};

// ---- with arguments that have no default ----

class Threshold : public Layer<Threshold> {
 public:
  static constexpr std::string_view type_name = "Threshold";
  Threshold(Module* parent, std::string name, double threshold, double value, InplaceOptions options = {});
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
  std::tuple<double, double, InplaceOptions> arguments() const;

  const double threshold, value;
  const InplaceOptions options;
};

/// Base of softmax and its relatives along a dim.
template <class Self>
class AlongDim : public Layer<Self> {
 public:
  AlongDim(Module* parent, std::string name, int64_t dim) : Layer<Self>(parent, std::move(name)), dim(dim) {}
  std::tuple<int64_t> arguments() const { return {dim}; }
  std::string extra_repr() const { return "dim=" + std::to_string(dim); }

  const int64_t dim;
};

struct Softmax : AlongDim<Softmax> {
  static constexpr std::string_view type_name = "Softmax";
  using AlongDim::AlongDim;
  Tensor forward(Operand x) const;
};

struct Softmin : AlongDim<Softmin> {
  static constexpr std::string_view type_name = "Softmin";
  using AlongDim::AlongDim;
  Tensor forward(Operand x) const;
};

struct LogSoftmax : AlongDim<LogSoftmax> {
  static constexpr std::string_view type_name = "LogSoftmax";
  using AlongDim::AlongDim;
  Tensor forward(Operand x) const;
};

/// softmax over the channels of (N, C, H, W) or (C, H, W). Error(bad_dim) for another number of dims.
struct Softmax2d : Layer<Softmax2d> {
  static constexpr std::string_view type_name = "Softmax2d";
  using Layer::Layer;
  Tensor forward(Operand x) const;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
