// See nn/norms.h.
#include "nn/norms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nn/functional.h"
#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn {

namespace F = functional;

namespace {

Tensor ones_if(bool wanted, const Shape& shape) { return wanted ? ones(shape) : Tensor(); }
Tensor zeros_if(bool wanted, const Shape& shape) { return wanted ? zeros(shape) : Tensor(); }

// Error(bad_dim) unless x has one of two numbers of dims.
void check_channel_dims(std::string_view type, Operand x, int64_t least, int64_t most) {
  const int64_t dims = x.defined_tensor(type).dim();
  if (dims != least && dims != most)
    fail(Category::bad_dim, type,
         least == most ? fmt::format("{} dims are needed, not {}", most, describe(x.tensor()))
                       : fmt::format("{} or {} dims are needed, not {}", least, most, describe(x.tensor())),
         x.where());
}

std::string channel_norm_text(int64_t features, double eps, const std::string& momentum, bool affine,
                              bool track) {
  return fmt::format("{}, eps={}, momentum={}, affine={}, track_running_stats={}", features, eps, momentum,
                     affine, track);
}

}  // namespace

ChannelNorm::ChannelNorm(Module* parent, std::string name, int64_t num_features, bool affine, bool track)
    : Module(parent, std::move(name)),
      num_features(num_features),
      weight(this, "weight", ones_if(affine, {num_features})),
      bias(this, "bias", zeros_if(affine, {num_features})),
      running_mean(this, "running_mean", zeros_if(track, {num_features})),
      running_var(this, "running_var", ones_if(track, {num_features})),
      num_batches_tracked(this, "num_batches_tracked", track ? zeros({}, {kInt64}) : Tensor()) {}

void ChannelNorm::reset_running_stats() {
  if (!running_mean.defined()) return;
  const NoGradGuard no_grad;
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

// ---- batch norms ----

AnyBatchNorm::AnyBatchNorm(Module* parent, std::string name, int64_t num_features, BatchNormOptions options)
    : ChannelNorm(parent, std::move(name), num_features, options.affine, options.track_running_stats),
      options(options) {}

Tensor AnyBatchNorm::normalize(Operand x) const {
  const bool tracked = running_mean.defined();
  if (!tracked || !is_training())
    return F::batch_norm(x, running_mean, running_var, weight, bias, !tracked, 0.0, options.eps);
  num_batches_tracked.add_(1);
  if (!options.momentum) return move_by_average(x);
  return F::batch_norm(x, running_mean, running_var, weight, bias, true, *options.momentum, options.eps);
}

// The factor by which the statistics move, 1 / num_batches_tracked, is a tensor: a recorded function computes it in
// each run. With a momentum of 1 the statistics of this batch are what `mean` and `variance` become.
Tensor AnyBatchNorm::move_by_average(Operand x) const {
  const Tensor mean = zeros_like(running_mean), variance = zeros_like(running_var);
  const Tensor y = F::batch_norm(x, mean, variance, weight, bias, true, 1.0, options.eps);
  const NoGradGuard no_grad;
  const Tensor factor = reciprocal(num_batches_tracked.to(running_mean.dtype()));
  running_mean.add_(mul(sub(mean, running_mean), factor));
  running_var.add_(mul(sub(variance, running_var), factor));
  return y;
}

std::string AnyBatchNorm::extra_repr() const {
  return channel_norm_text(num_features, options.eps,
                           options.momentum ? fmt::format("{}", *options.momentum) : "None", options.affine,
                           options.track_running_stats);
}

template <int Dims>
Tensor BatchNorm<Dims>::forward(Operand x) const {
  const CallScope scope(x.where());
  check_channel_dims(type_name, x, Dims == 1 ? 2 : Dims + 2, Dims + 2);
  return this->normalize(x);
}

// ---- instance norms ----

AnyInstanceNorm::AnyInstanceNorm(Module* parent, std::string name, int64_t num_features,
                                 InstanceNormOptions options)
    : ChannelNorm(parent, std::move(name), num_features, options.affine, options.track_running_stats),
      options(options) {}

Tensor AnyInstanceNorm::normalize(const Tensor& x) const {
  const bool own = is_training() || !options.track_running_stats;
  return F::instance_norm(x, running_mean, running_var, weight, bias, own, options.momentum, options.eps);
}

std::string AnyInstanceNorm::extra_repr() const {
  return channel_norm_text(num_features, options.eps, fmt::format("{}", options.momentum), options.affine,
                           options.track_running_stats);
}

template <int Dims>
Tensor InstanceNorm<Dims>::forward(Operand x) const {
  const CallScope scope(x.where());
  check_channel_dims(type_name, x, Dims + 1, Dims + 2);
  if (x.tensor().dim() == Dims + 2) return this->normalize(x.tensor());
  return squeeze(this->normalize(unsqueeze(x, 0)), {0});
}

template class BatchNorm<1>;
template class BatchNorm<2>;
template class BatchNorm<3>;
template class InstanceNorm<1>;
template class InstanceNorm<2>;
template class InstanceNorm<3>;

// ---- norms of samples ----

GroupNorm::GroupNorm(Module* parent, std::string name, int64_t num_groups, int64_t num_channels,
                     GroupNormOptions options, SourceLocation where)
    : Layer(parent, std::move(name)),
      num_groups(num_groups),
      num_channels(num_channels),
      options(options),
      weight(this, "weight", ones_if(options.affine, {num_channels})),
      bias(this, "bias", zeros_if(options.affine, {num_channels})) {
  if (num_groups < 1 || num_channels % num_groups != 0)
    fail(Category::bad_argument, type_name,
         fmt::format("{} channels do not make {} groups", num_channels, num_groups), where);
}

Tensor GroupNorm::forward(Operand x) const { return F::group_norm(x, num_groups, weight, bias, options.eps); }

std::string GroupNorm::extra_repr() const {
  return fmt::format("{}, {}, eps={}, affine={}", num_groups, num_channels, options.eps, options.affine);
}

LayerNorm::LayerNorm(Module* parent, std::string name, const IntArray& normalized_shape,
                     LayerNormOptions options)
    : Layer(parent, std::move(name)),
      normalized_shape(normalized_shape),
      options(options),
      weight(this, "weight", ones_if(options.elementwise_affine, normalized_shape)),
      bias(this, "bias", zeros_if(options.elementwise_affine && options.bias, normalized_shape)) {}

Tensor LayerNorm::forward(Operand x) const {
  return F::layer_norm(x, normalized_shape, weight, bias, options.eps);
}

std::string LayerNorm::extra_repr() const {
  return fmt::format("[{}], eps={}, elementwise_affine={}", fmt::join(normalized_shape, ", "), options.eps,
                     options.elementwise_affine);
}

RMSNorm::RMSNorm(Module* parent, std::string name, const IntArray& normalized_shape, RMSNormOptions options)
    : Layer(parent, std::move(name)),
      normalized_shape(normalized_shape),
      options(options),
      weight(this, "weight", ones_if(options.elementwise_affine, normalized_shape)) {}

Tensor RMSNorm::forward(Operand x) const {
  std::optional<Scalar> eps;
  if (options.eps) eps = *options.eps;
  return F::rms_norm(x, normalized_shape, weight, eps);
}

std::string RMSNorm::extra_repr() const {
  return fmt::format("[{}], eps={}, elementwise_affine={}", fmt::join(normalized_shape, ", "),
                     options.eps ? fmt::format("{}", *options.eps) : "None", options.elementwise_affine);
}

// ---- norms by neighbouring channels ----

template <class Self>
std::string ResponseNorm<Self>::extra_repr() const {
  return fmt::format("{}, alpha={}, beta={}, k={}", size, options.alpha, options.beta, options.k);
}

Tensor LocalResponseNorm::forward(Operand x) const {
  return F::local_response_norm(x, size, options.alpha, options.beta, options.k);
}

// The sum is divided by `size` also where it has one channel less.
Tensor CrossMapLRN2d::forward(Operand x) const {
  check_channel_dims(type_name, x, 4, 4);
  if (size < 1)
    fail(Category::bad_argument, type_name, fmt::format("the size {} is not positive", size), x.where());
  const int64_t channels = 2 * ((size - 1) / 2) + 1;
  const double alpha = options.alpha * static_cast<double>(channels) / static_cast<double>(size);
  return F::local_response_norm(x, channels, alpha, options.beta, options.k);
}

template class ResponseNorm<LocalResponseNorm>;
template class ResponseNorm<CrossMapLRN2d>;

std::tuple<int64_t, BatchNormOptions> AnyBatchNorm::arguments() const { return {num_features, options}; }
std::tuple<int64_t, InstanceNormOptions> AnyInstanceNorm::arguments() const {
  return {num_features, options};
}
std::tuple<int64_t, int64_t, GroupNormOptions> GroupNorm::arguments() const {
  return {num_groups, num_channels, options};
}
std::tuple<IntArray, LayerNormOptions> LayerNorm::arguments() const { return {normalized_shape, options}; }
std::tuple<IntArray, RMSNormOptions> RMSNorm::arguments() const { return {normalized_shape, options}; }

}  // namespace retrograd::nn
