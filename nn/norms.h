// Normalisation layers. Parameters, buffers, their names, shapes and initial values are PyTorch's. Functions and
// errors: ops/norms.h, ops/channels.h.
//
//   nn::BatchNorm2d norm{this, "norm", 64, {.momentum = 0.01}};
//
// Running statistics are buffers: running_mean and running_var [channels], num_batches_tracked int64. A recorded
// function reads and writes them in each run.
#pragma once

#include <optional>

#include "nn/layer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // none: the running statistics are averages over all batches so far
  bool affine = true;                    // weight (ones) and bias (zeros)
  bool track_running_stats = true;       // without them, each batch's own statistics are used in eval(), too
};

struct InstanceNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = false;
  bool track_running_stats = false;
};

/// Base of batch and instance norms: parameters and buffers with a value per channel.
class ChannelNorm : public Module {
 public:
  /// Statistics as they are at the beginning.
  void reset_running_stats();

  const int64_t num_features;
  Parameter weight, bias;
  Buffer running_mean, running_var, num_batches_tracked;

 protected:
  ChannelNorm(Module* parent, std::string name, int64_t num_features, bool affine, bool track);
};

/// What batch norms of all numbers of dims have in common.
class AnyBatchNorm : public ChannelNorm {
 public:
  std::string extra_repr() const;
  std::tuple<int64_t, BatchNormOptions> arguments() const;

  const BatchNormOptions options;

 protected:
  AnyBatchNorm(Module* parent, std::string name, int64_t num_features, BatchNormOptions options = {});
  Tensor normalize(Operand x) const;

 private:
  Tensor move_by_average(Operand x) const;
};

/// Normalises each channel over all other dims: in training by the batch's mean and variance, towards which the running
/// statistics move by `momentum`; in eval() by the running statistics. Operands: (N, C) or (N, C, L), (N, C, H, W), (N,
/// C, D, H, W). Error(bad_dim) for others.
template <int Dims>
class BatchNorm : public Layer<BatchNorm<Dims>, AnyBatchNorm> {
 public:
  static constexpr std::string_view type_name =
      detail::name_for(Dims, "BatchNorm1d", "BatchNorm2d", "BatchNorm3d");
  BatchNorm(Module* parent, std::string name, int64_t num_features, BatchNormOptions options = {})
      : Layer<BatchNorm, AnyBatchNorm>(parent, std::move(name), num_features, options) {}
  Tensor forward(Operand x) const;
};

/// What instance norms of all numbers of dims have in common.
class AnyInstanceNorm : public ChannelNorm {
 public:
  std::string extra_repr() const;
  std::tuple<int64_t, InstanceNormOptions> arguments() const;

  const InstanceNormOptions options;

 protected:
  AnyInstanceNorm(Module* parent, std::string name, int64_t num_features, InstanceNormOptions options = {});
  Tensor normalize(const Tensor& x) const;
};

/// Normalises each channel of each sample, by its own statistics; with track_running_stats in eval() by the running
/// ones. Operands: (N, C, L), (N, C, H, W), (N, C, D, H, W), or these without N. Error(bad_dim) for others.
template <int Dims>
class InstanceNorm : public Layer<InstanceNorm<Dims>, AnyInstanceNorm> {
 public:
  static constexpr std::string_view type_name =
      detail::name_for(Dims, "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d");
  InstanceNorm(Module* parent, std::string name, int64_t num_features, InstanceNormOptions options = {})
      : Layer<InstanceNorm, AnyInstanceNorm>(parent, std::move(name), num_features, options) {}
  Tensor forward(Operand x) const;
};

using BatchNorm1d = BatchNorm<1>;
using BatchNorm2d = BatchNorm<2>;
using BatchNorm3d = BatchNorm<3>;
using InstanceNorm1d = InstanceNorm<1>;
using InstanceNorm2d = InstanceNorm<2>;
using InstanceNorm3d = InstanceNorm<3>;

extern template class BatchNorm<1>;
extern template class BatchNorm<2>;
extern template class BatchNorm<3>;
extern template class InstanceNorm<1>;
extern template class InstanceNorm<2>;
extern template class InstanceNorm<3>;

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};

/// (N, C, ...): over groups of C / num_groups channels and all further dims. weight, bias [num_channels].
class GroupNorm : public Layer<GroupNorm> {
 public:
  static constexpr std::string_view type_name = "GroupNorm";
  /// Error(bad_argument) unless num_groups divides num_channels.
  GroupNorm(Module* parent, std::string name, int64_t num_groups, int64_t num_channels,
            GroupNormOptions options = {}, SourceLocation where = SourceLocation::current());
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
  std::tuple<int64_t, int64_t, GroupNormOptions> arguments() const;

  const int64_t num_groups, num_channels;
  const GroupNormOptions options;
  Parameter weight, bias;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  // a weight, and a bias if `bias`
  bool bias = true;
};

/// Over the last dims, whose sizes are `normalized_shape`: (x - mean) / sqrt(var + eps) * weight + bias; weight ones,
/// bias zeros.
class LayerNorm : public Layer<LayerNorm> {
 public:
  static constexpr std::string_view type_name = "LayerNorm";
  LayerNorm(Module* parent, std::string name, const IntArray& normalized_shape,
            LayerNormOptions options = {});
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
  std::tuple<IntArray, LayerNormOptions> arguments() const;

  const IntArray normalized_shape;
  const LayerNormOptions options;
  Parameter weight, bias;
};

struct RMSNormOptions {
  std::optional<double> eps = {};  // none: the machine epsilon (ops/norms.h)
  bool elementwise_affine = true;
};

/// The same without mean and bias: x / sqrt(mean(x^2) + eps) * weight.
class RMSNorm : public Layer<RMSNorm> {
 public:
  static constexpr std::string_view type_name = "RMSNorm";
  RMSNorm(Module* parent, std::string name, const IntArray& normalized_shape, RMSNormOptions options = {});
  Tensor forward(Operand x) const;
  std::string extra_repr() const;
  std::tuple<IntArray, RMSNormOptions> arguments() const;

  const IntArray normalized_shape;
  const RMSNormOptions options;
  Parameter weight;
};

struct ResponseNormOptions {
  double alpha = 1e-4, beta = 0.75, k = 1.0;
};

/// Base of the norms by neighbouring channels: x / (k + alpha / size * sum of squares)^beta.
template <class Self>
class ResponseNorm : public Layer<Self> {
 public:
  ResponseNorm(Module* parent, std::string name, int64_t size, ResponseNormOptions options = {})
      : Layer<Self>(parent, std::move(name)), size(size), options(options) {}
  std::string extra_repr() const;
  std::tuple<int64_t, ResponseNormOptions> arguments() const { return {size, options}; }

  const int64_t size;
  const ResponseNormOptions options;
};

/// (N, C, ...): over `size` channels (ops/channels.h).
struct LocalResponseNorm : ResponseNorm<LocalResponseNorm> {
  static constexpr std::string_view type_name = "LocalResponseNorm";
  using ResponseNorm::ResponseNorm;
  Tensor forward(Operand x) const;
};

/// (N, C, H, W): over (size - 1) / 2 channels on each side, which is local_response_norm for odd sizes. PyTorch's also
/// counts channel 0 in the sums of all channels from (size + 1) / 2 on, and has the gradients of other sums.
struct CrossMapLRN2d : ResponseNorm<CrossMapLRN2d> {
  static constexpr std::string_view type_name = "CrossMapLRN2d";
  using ResponseNorm::ResponseNorm;
  Tensor forward(Operand x) const;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
