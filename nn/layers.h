// Layers: modules with one forward. Parameters, their names, shapes and initial values are PyTorch's.
// A layer is called like a function. Options are structs: `nn::Linear fc{this, "fc", 64, 10, {.bias = false}}`.
#pragma once

#include "nn/module.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct LinearOptions {
  bool bias = true;
};

/// x (..., in) -> (..., out): x weight' + bias. weight [out, in], bias [out], both uniform in +-1/sqrt(in).
class Linear : public Module {
 public:
  Linear(Module* parent, std::string name, int64_t in, int64_t out, LinearOptions options = {});
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }

  Parameter weight, bias;
};

/// index (...) of int64 or int32 -> (..., width). weight [rows, width], standard normal.
class Embedding : public Module {
 public:
  Embedding(Module* parent, std::string name, int64_t rows, int64_t width);
  Tensor forward(Operand index) const;
  Tensor operator()(Operand index) const { return call(*this, index); }

  Parameter weight;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool bias = true;
};

/// Over the last dims, whose sizes are `normalized_shape`: (x - mean) / sqrt(var + eps) * weight + bias; weight ones,
/// bias zeros.
class LayerNorm : public Module {
 public:
  LayerNorm(Module* parent, std::string name, const IntArray& normalized_shape,
            LayerNormOptions options = {});
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }

  Parameter weight, bias;

 private:
  IntArray normalized_shape_;
  double eps_;
};

/// In training zeroes each element with probability p and scales the others by 1 / (1 - p). Error(bad_argument) unless
/// 0 <= p <= 1.
class Dropout : public Module {
 public:
  Dropout(Module* parent, std::string name, double p = 0.5, SourceLocation where = SourceLocation::current());
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }

 private:
  double p_;
};

class ReLU : public Module {
 public:
  using Module::Module;
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }
};

struct GELUOptions {
  std::string_view approximate = "none";  // or "tanh"
};

class GELU : public Module {
 public:
  GELU(Module* parent, std::string name, GELUOptions options = {})
      : Module(parent, std::move(name)), options_(options) {}
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }

 private:
  GELUOptions options_;
};

struct CausalSelfAttentionOptions {
  bool bias = true;
};

/// Multi-head self-attention of a sequence, where each position attends to itself and earlier ones: x (batch, length,
/// width) -> the same shape. Children: qkv [3 width, width], with queries, keys and values packed in this order, each a
/// row of heads; proj [width, width].
class CausalSelfAttention : public Module {
 public:
  /// Error(bad_argument) unless `heads` divides `width`.
  CausalSelfAttention(Module* parent, std::string name, int64_t width, int64_t heads,
                      CausalSelfAttentionOptions options = {},
                      SourceLocation where = SourceLocation::current());
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }

  Linear qkv, proj;

 private:
  int64_t heads_;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
