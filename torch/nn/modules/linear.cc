// See torch/nn/modules/linear.h.
#include "torch/nn/modules/linear.h"

namespace torch::nn {

LinearImpl::LinearImpl(const LinearOptions& o)
    : Wrapped(o, o.in_features(), o.out_features(), rn::LinearOptions{.bias = o.bias()}) {}
BilinearImpl::BilinearImpl(const BilinearOptions& o)
    : Wrapped(o, o.in1_features(), o.in2_features(), o.out_features(), rn::LinearOptions{.bias = o.bias()}) {}
FlattenImpl::FlattenImpl(const FlattenOptions& o)
    : Wrapped(o, rn::FlattenOptions{.start_dim = o.start_dim(), .end_dim = o.end_dim()}) {}
UnflattenImpl::UnflattenImpl(const UnflattenOptions& o) : Wrapped(o, o.dim(), o.sizes()) {}
IdentityImpl::IdentityImpl(const NoOptions& o) : Wrapped(o) {}

}  // namespace torch::nn
