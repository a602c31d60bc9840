// See nn/activations.h.
#include "nn/activations.h"

#include <fmt/format.h>

#include "nn/functional.h"
#include "ops/creation.h"
#include "ops/random_activations.h"

namespace retrograd::inline v0::nn {

namespace F = functional;

namespace {

// What is printed of `inplace`, behind `others`.
std::string with_inplace(std::string others, bool inplace) {
  if (!inplace) return others;
  return others.empty() ? "inplace=true" : others + ", inplace=true";
}

}  // namespace

Tensor Hardsigmoid::forward(Operand x) const { return F::hardsigmoid(x); }
Tensor Hardswish::forward(Operand x) const { return F::hardswish(x); }
Tensor LogSigmoid::forward(Operand x) const { return F::logsigmoid(x); }
Tensor Mish::forward(Operand x) const { return F::mish(x); }
Tensor SiLU::forward(Operand x) const { return F::silu(x); }
Tensor Sigmoid::forward(Operand x) const { return F::sigmoid(x); }
Tensor Softsign::forward(Operand x) const { return F::softsign(x); }
Tensor Tanh::forward(Operand x) const { return F::tanh(x); }
Tensor Tanhshrink::forward(Operand x) const { return F::tanhshrink(x); }

Tensor ReLU::forward(Operand x) const { return options.inplace ? x.tensor().relu_(x.where()) : F::relu(x); }
std::string ReLU::extra_repr() const { return with_inplace("", options.inplace); }

Tensor ReLU6::forward(Operand x) const {
  return options.inplace ? x.tensor().relu6_(x.where()) : F::relu6(x);
}
std::string ReLU6::extra_repr() const { return with_inplace("", options.inplace); }

Tensor SELU::forward(Operand x) const { return options.inplace ? x.tensor().selu_(x.where()) : F::selu(x); }
std::string SELU::extra_repr() const { return with_inplace("", options.inplace); }

Tensor ELU::forward(Operand x) const {
  return options.inplace ? x.tensor().elu_(options.alpha, x.where()) : F::elu(x, options.alpha);
}
std::string ELU::extra_repr() const {
  return with_inplace(fmt::format("alpha={}", options.alpha), options.inplace);
}

Tensor CELU::forward(Operand x) const {
  return options.inplace ? x.tensor().celu_(options.alpha, x.where()) : F::celu(x, options.alpha);
}
std::string CELU::extra_repr() const {
  return with_inplace(fmt::format("alpha={}", options.alpha), options.inplace);
}

Tensor LeakyReLU::forward(Operand x) const {
  return options.inplace ? x.tensor().leaky_relu_(options.negative_slope, x.where())
                         : F::leaky_relu(x, options.negative_slope);
}
std::string LeakyReLU::extra_repr() const {
  return with_inplace(fmt::format("negative_slope={}", options.negative_slope), options.inplace);
}

Hardtanh::Hardtanh(Module* parent, std::string name, HardtanhOptions options, SourceLocation where)
    : OptionsLayer(parent, std::move(name), options) {
  if (!(options.min_val < options.max_val))
    fail(Category::bad_argument, type_name,
         fmt::format("min_val {} is not below max_val {}", options.min_val, options.max_val), where);
}

Tensor Hardtanh::forward(Operand x) const {
  return options.inplace ? x.tensor().hardtanh_(options.min_val, options.max_val, x.where())
                         : F::hardtanh(x, options.min_val, options.max_val);
}
std::string Hardtanh::extra_repr() const {
  return with_inplace(fmt::format("min_val={}, max_val={}", options.min_val, options.max_val),
                      options.inplace);
}

Tensor RReLU::forward(Operand x) const {
  const auto& [lower, upper, inplace] = options;
  return inplace ? rrelu_(x.tensor(), lower, upper, is_training(), x.where())
                 : F::rrelu(x, lower, upper, is_training());
}
std::string RReLU::extra_repr() const {
  return with_inplace(fmt::format("lower={}, upper={}", options.lower, options.upper), options.inplace);
}

Tensor GELU::forward(Operand x) const { return F::gelu(x, options.approximate); }
std::string GELU::extra_repr() const { return fmt::format("approximate={}", options.approximate); }

Tensor GLU::forward(Operand x) const { return F::glu(x, options.dim); }
std::string GLU::extra_repr() const { return fmt::format("dim={}", options.dim); }

Tensor Hardshrink::forward(Operand x) const { return F::hardshrink(x, options.lambd); }
std::string Hardshrink::extra_repr() const { return fmt::format("{}", options.lambd); }

Tensor Softshrink::forward(Operand x) const { return F::softshrink(x, options.lambd); }
std::string Softshrink::extra_repr() const { return fmt::format("{}", options.lambd); }

Tensor Softplus::forward(Operand x) const { return F::softplus(x, options.beta, options.threshold); }
std::string Softplus::extra_repr() const {
  return fmt::format("beta={}, threshold={}", options.beta, options.threshold);
}

PReLU::PReLU(Module* parent, std::string name, PReLUOptions options)
    : OptionsLayer(parent, std::move(name), options),
      weight(this, "weight", full({options.num_parameters}, options.init)) {}

Tensor PReLU::forward(Operand x) const { return F::prelu(x, Operand(weight, x.where())); }
std::string PReLU::extra_repr() const { return fmt::format("num_parameters={}", options.num_parameters); }

Threshold::Threshold(Module* parent, std::string name, double threshold, double value, InplaceOptions options)
    : Layer(parent, std::move(name)), threshold(threshold), value(value), options(options) {}

Tensor Threshold::forward(Operand x) const {
  return options.inplace ? x.tensor().threshold_(threshold, value, x.where())
                         : F::threshold(x, threshold, value);
}
std::string Threshold::extra_repr() const {
  return with_inplace(fmt::format("threshold={}, value={}", threshold, value), options.inplace);
}

Tensor Softmax::forward(Operand x) const { return F::softmax(x, dim); }
Tensor Softmin::forward(Operand x) const { return F::softmin(x, dim); }
Tensor LogSoftmax::forward(Operand x) const { return F::log_softmax(x, dim); }

Tensor Softmax2d::forward(Operand x) const {
  if (const int64_t dims = x.defined_tensor(type_name).dim(); dims != 3 && dims != 4)
    fail(Category::bad_dim, type_name, "(N, C, H, W) or (C, H, W) is needed, not " + describe(x.tensor()),
         x.where());
  return F::softmax(x, -3);
}

std::tuple<double, double, InplaceOptions> Threshold::arguments() const {
  return {threshold, value, options};
}

}  // namespace retrograd::nn
