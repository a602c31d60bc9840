// See nn/linear.h.
#include "nn/linear.h"

#include <cmath>

#include <fmt/format.h>

#include "nn/init.h"
#include "ops/creation.h"
#include "ops/matmul.h"
#include "ops/vector_pairs.h"

namespace retrograd::inline v0::nn {
namespace {

// Uniform in +-1/sqrt(fan).
void init_by_fan(const Tensor& parameter, int64_t fan) {
  if (!parameter.defined() || fan == 0) return;
  const double bound = 1 / std::sqrt(static_cast<double>(fan));
  init::uniform_(parameter, -bound, bound);
}

}  // namespace

Linear::Linear(Module* parent, std::string name, int64_t in_features, int64_t out_features,
               LinearOptions options)
    : Layer(parent, std::move(name)),
      in_features(in_features),
      out_features(out_features),
      options(options),
      weight(this, "weight", empty({out_features, in_features})),
      bias(this, "bias", options.bias ? empty({out_features}) : Tensor()) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  init_by_fan(bias, in_features);
}

Tensor Linear::forward(Operand x) const { return linear(x, weight, bias); }

std::string Linear::extra_repr() const {
  return fmt::format("in_features={}, out_features={}, bias={}", in_features, out_features, options.bias);
}

Bilinear::Bilinear(Module* parent, std::string name, int64_t in1_features, int64_t in2_features,
                   int64_t out_features, LinearOptions options)
    : Layer(parent, std::move(name)),
      in1_features(in1_features),
      in2_features(in2_features),
      out_features(out_features),
      options(options),
      weight(this, "weight", empty({out_features, in1_features, in2_features})),
      bias(this, "bias", options.bias ? empty({out_features}) : Tensor()) {
  init_by_fan(weight, in1_features);
  init_by_fan(bias, in1_features);
}

Tensor Bilinear::forward(Operand x1, const Tensor& x2) const { return bilinear(x1, x2, weight, bias); }

std::string Bilinear::extra_repr() const {
  return fmt::format("in1_features={}, in2_features={}, out_features={}, bias={}", in1_features, in2_features,
                     out_features, options.bias);
}

std::tuple<int64_t, int64_t, LinearOptions> Linear::arguments() const {
  return {in_features, out_features, options};
}
std::tuple<int64_t, int64_t, int64_t, LinearOptions> Bilinear::arguments() const {
  return {in1_features, in2_features, out_features, options};
}

template class Layer<Linear>;

}  // namespace retrograd::nn
