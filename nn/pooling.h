// Pooling and resampling layers: modules without parameters. Sizes are one number for all dims or one for
// each, and errors are those of the functions (ops/pooling.h, ops/interpolate.h).
#pragma once

#include "nn/module.h"
#include "ops/interpolate.h"
#include "ops/pooling.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct MaxPoolOptions {
  IntList stride = {};  // empty: the kernel's size
  IntList padding = 0, dilation = 1;
  bool ceil_mode = false;
};

/// x (N, C, H, W) or (C, H, W): the largest elements of windows.
class MaxPool2d : public Module {
 public:
  MaxPool2d(Module* parent, std::string name, const IntList& kernel_size, MaxPoolOptions options = {})
      : Module(parent, std::move(name)), kernel_size_(kernel_size), options_(options) {}
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }

 private:
  IntList kernel_size_;
  MaxPoolOptions options_;
};

struct AvgPoolOptions {
  IntList stride = {};  // empty: the kernel's size
  IntList padding = 0;
  bool ceil_mode = false, count_include_pad = true;
  std::optional<int64_t> divisor_override = {};
};

/// x (N, C, H, W) or (C, H, W): averages over windows.
class AvgPool2d : public Module {
 public:
  AvgPool2d(Module* parent, std::string name, const IntList& kernel_size, AvgPoolOptions options = {})
      : Module(parent, std::move(name)), kernel_size_(kernel_size), options_(options) {}
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }

 private:
  IntList kernel_size_;
  AvgPoolOptions options_;
};

/// x (N, C, H, W) or (C, H, W): averages over windows that cover it, output_size of them.
class AdaptiveAvgPool2d : public Module {
 public:
  AdaptiveAvgPool2d(Module* parent, std::string name, AdaptiveSize output_size)
      : Module(parent, std::move(name)), output_size_(std::move(output_size)) {}
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }

 private:
  AdaptiveSize output_size_;
};

/// x (N, C, ...): the dims after C resampled. `options.mode` must outlive the layer, as a literal does.
class Upsample : public Module {
 public:
  Upsample(Module* parent, std::string name, InterpolateOptions options)
      : Module(parent, std::move(name)), options_(std::move(options)) {}
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }

 private:
  InterpolateOptions options_;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
