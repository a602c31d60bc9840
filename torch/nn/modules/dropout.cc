// See torch/nn/modules/dropout.h.
#include "torch/nn/modules/dropout.h"

namespace torch::nn {

DropoutImpl::DropoutImpl(const DropoutOptions& o)
    : Wrapped(o, o.p(), rn::DropoutOptions{.inplace = o.inplace()}) {}
Dropout2dImpl::Dropout2dImpl(const Dropout2dOptions& o)
    : Wrapped(o, o.p(), rn::DropoutOptions{.inplace = o.inplace()}) {}
Dropout3dImpl::Dropout3dImpl(const Dropout3dOptions& o)
    : Wrapped(o, o.p(), rn::DropoutOptions{.inplace = o.inplace()}) {}
AlphaDropoutImpl::AlphaDropoutImpl(const AlphaDropoutOptions& o)
    : Wrapped(o, o.p(), rn::DropoutOptions{.inplace = o.inplace()}) {}
FeatureAlphaDropoutImpl::FeatureAlphaDropoutImpl(const FeatureAlphaDropoutOptions& o)
    : Wrapped(o, o.p(), rn::DropoutOptions{.inplace = o.inplace()}) {}

}  // namespace torch::nn
