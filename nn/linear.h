// Linear layers. Parameters, their names, shapes and initial values are PyTorch's.
//
//   nn::Linear fc{this, "fc", 64, 10, {.bias = false}};
#pragma once

#include "nn/layer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct LinearOptions {
  bool bias = true;
};

/// x (..., in) -> (..., out): x weight' + bias. weight [out, in], bias [out], both uniform in +-1/sqrt(in).
class Linear : public Layer<Linear> {
 public:
  static constexpr std::string_view type_name = "Linear";
  Linear(Module* parent, std::string name, int64_t in_features, int64_t out_features,
         LinearOptions options = {});
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
  std::tuple<int64_t, int64_t, LinearOptions> arguments() const;

  const int64_t in_features, out_features;
  const LinearOptions options;
  Parameter weight, bias;
};
extern template class Layer<Linear>;  // many modules have one: its functions would be compiled in every program

/// x1 (..., in1), x2 (..., in2) -> (..., out): x1' weight[o] x2 + bias[o]. weight [out, in1, in2], bias [out], both
/// uniform in +-1/sqrt(in1).
class Bilinear : public Layer<Bilinear> {
 public:
  static constexpr std::string_view type_name = "Bilinear";
  Bilinear(Module* parent, std::string name, int64_t in1_features, int64_t in2_features, int64_t out_features,
           LinearOptions options = {});
  Tensor forward(Operand x1, const Tensor& x2) const;
  std::string extra_repr() const;
  std::tuple<int64_t, int64_t, int64_t, LinearOptions> arguments() const;

  const int64_t in1_features, in2_features, out_features;
  const LinearOptions options;
  Parameter weight, bias;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
