// Models of the memory benchmark, besides Llama and those of train/models.h. Each keeps one batch of random data.
//
//   Cnn    a residual network of 32 x 32 images: a convolution, three stages of two blocks with 16, 32 and 64 channels,
//          batch norm and relu behind each convolution, mean of all pixels, and a linear layer; cross entropy of 10
//          classes. In training, so each forward writes to the running statistics
//   Chain  equal layers, each linear and gelu, on many more rows than a layer is wide: what is saved is large against
//          the weights, and each value is made of the one before; mean of squares
#pragma once

#include "retrograd/retrograd.h"

namespace bench {

class Cnn : public retrograd::nn::Module {
 public:
  explicit Cnn(int64_t batch);
  retrograd::Tensor loss() const;

 private:
  // Two convolutions, the first with a stride, and what they are added to: their input, or a 1 x 1 convolution of it.
  struct Block : Module {
    Block(Module* parent, std::string name, int64_t in, int64_t out, int64_t stride);
    retrograd::Tensor forward(const retrograd::Tensor& x) const;

    retrograd::nn::Conv2d conv1, conv2;
    retrograd::nn::BatchNorm2d norm1, norm2;
    retrograd::nn::ModuleList<retrograd::nn::Conv2d> shortcut{this, "shortcut"};  // at most one
  };
  static constexpr int64_t kSide = 32, kColours = 3, kChannels = 16, kClasses = 10;
  static constexpr int kStages = 3, kBlocks = 2;

  retrograd::nn::Conv2d conv{this, "conv", kColours, kChannels, 3, {.padding = 1, .bias = false}};
  retrograd::nn::BatchNorm2d norm{this, "norm", kChannels};
  retrograd::nn::ModuleList<Block> blocks{this, "blocks"};
  retrograd::nn::Linear head{this, "head", kChannels << (kStages - 1), kClasses};
  retrograd::Tensor images_, classes_;
};

class Chain : public retrograd::nn::Module {
 public:
  Chain(int64_t layers, int64_t rows);
  retrograd::Tensor loss() const;

 private:
  static constexpr int64_t kWidth = 64;
  retrograd::nn::ModuleList<retrograd::nn::Linear> layers{this, "layers"};
  retrograd::Tensor x_;
};

}  // namespace bench
