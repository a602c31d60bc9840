// See torch/nn/modules/norms.h.
#include "torch/nn/modules/norms.h"

namespace torch::nn {

namespace {

rn::BatchNormOptions layer_options(const BatchNormOptions& o) {
  return {.eps = o.eps(),
          .momentum = o.momentum(),
          .affine = o.affine(),
          .track_running_stats = o.track_running_stats()};
}

rn::InstanceNormOptions layer_options(const InstanceNormOptions& o) {
  return {.eps = o.eps(),
          .momentum = o.momentum(),
          .affine = o.affine(),
          .track_running_stats = o.track_running_stats()};
}

}  // namespace

BatchNorm1dImpl::BatchNorm1dImpl(const BatchNorm1dOptions& o)
    : Wrapped(o, o.num_features(), layer_options(o)) {}
BatchNorm2dImpl::BatchNorm2dImpl(const BatchNorm2dOptions& o)
    : Wrapped(o, o.num_features(), layer_options(o)) {}
BatchNorm3dImpl::BatchNorm3dImpl(const BatchNorm3dOptions& o)
    : Wrapped(o, o.num_features(), layer_options(o)) {}
InstanceNorm1dImpl::InstanceNorm1dImpl(const InstanceNorm1dOptions& o)
    : Wrapped(o, o.num_features(), layer_options(o)) {}
InstanceNorm2dImpl::InstanceNorm2dImpl(const InstanceNorm2dOptions& o)
    : Wrapped(o, o.num_features(), layer_options(o)) {}
InstanceNorm3dImpl::InstanceNorm3dImpl(const InstanceNorm3dOptions& o)
    : Wrapped(o, o.num_features(), layer_options(o)) {}
LayerNormImpl::LayerNormImpl(const LayerNormOptions& o)
    : Wrapped(o, o.normalized_shape(),
              rn::LayerNormOptions{.eps = o.eps(), .elementwise_affine = o.elementwise_affine()}) {}
GroupNormImpl::GroupNormImpl(const GroupNormOptions& o)
    : Wrapped(o, o.num_groups(), o.num_channels(),
              rn::GroupNormOptions{.eps = o.eps(), .affine = o.affine()}) {}
LocalResponseNormImpl::LocalResponseNormImpl(const LocalResponseNormOptions& o)
    : Wrapped(o, o.size(), rn::ResponseNormOptions{.alpha = o.alpha(), .beta = o.beta(), .k = o.k()}) {}
CrossMapLRN2dImpl::CrossMapLRN2dImpl(const CrossMapLRN2dOptions& o)
    : Wrapped(
          o, o.size(),
          rn::ResponseNormOptions{.alpha = o.alpha(), .beta = o.beta(), .k = static_cast<double>(o.k())}) {}

}  // namespace torch::nn
