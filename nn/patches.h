// Layers that only rearrange: windows of pictures as columns and back, channels as pixels and back, channels among each
// other. Functions and errors: ops/patches.h, ops/channels.h.
#pragma once

#include "nn/layer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

/// Lists have one entry for both dims, or two.
struct UnfoldOptions {
  IntList dilation = 1, padding = 0, stride = 1;
};

/// (N, C, H, W) or (C, H, W) -> (N, C kernel elements, windows) or without N.
class Unfold : public Layer<Unfold> {
 public:
  static constexpr std::string_view type_name = "Unfold";
  Unfold(Module* parent, std::string name, const IntList& kernel_size, UnfoldOptions options = {});
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
  std::tuple<IntList, UnfoldOptions> arguments() const;

  const IntList kernel_size;
  const UnfoldOptions options;
};

/// The transpose: (N, C kernel elements, windows) or without N -> (N, C, *output_size).
class Fold : public Layer<Fold> {
 public:
  static constexpr std::string_view type_name = "Fold";
  Fold(Module* parent, std::string name, const IntList& output_size, const IntList& kernel_size,
       UnfoldOptions options = {});
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
  std::tuple<IntList, IntList, UnfoldOptions> arguments() const;

  const IntList output_size, kernel_size;
  const UnfoldOptions options;
};

/// Base of the layers below, which have one number.
template <class Self>
class ByFactor : public Layer<Self> {
 public:
  ByFactor(Module* parent, std::string name, int64_t factor)
      : Layer<Self>(parent, std::move(name)), factor(factor) {}
  std::tuple<int64_t> arguments() const { return {factor}; }

  const int64_t factor;
};

/// (*, C r^2, H, W) -> (*, C, H r, W r).
struct PixelShuffle : ByFactor<PixelShuffle> {
  static constexpr std::string_view type_name = "PixelShuffle";
  using ByFactor::ByFactor;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

/// (*, C, H r, W r) -> (*, C r^2, H, W).
struct PixelUnshuffle : ByFactor<PixelUnshuffle> {
  static constexpr std::string_view type_name = "PixelUnshuffle";
  using ByFactor::ByFactor;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

/// (N, C, *): channels in `factor` groups, mixed.
struct ChannelShuffle : ByFactor<ChannelShuffle> {
  static constexpr std::string_view type_name = "ChannelShuffle";
  using ByFactor::ByFactor;
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
