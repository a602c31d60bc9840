// See torch/nn/modules/activation.h.
#include "torch/nn/modules/activation.h"

namespace torch::nn {

namespace {

const std::string& approximation(const std::string& name) {
  if (name == "none" || name == "tanh") return name;
  retrograd::fail(retrograd::Category::bad_argument, "GELU",
                  "approximate must be \"none\" or \"tanh\", not \"" + name + "\"");
}

}  // namespace

ELUImpl::ELUImpl(const ELUOptions& o)
    : Wrapped(o, rn::ELUOptions{.alpha = o.alpha(), .inplace = o.inplace()}) {}
CELUImpl::CELUImpl(const CELUOptions& o)
    : Wrapped(o, rn::ELUOptions{.alpha = o.alpha(), .inplace = o.inplace()}) {}
SELUImpl::SELUImpl(const SELUOptions& o) : Wrapped(o, rn::InplaceOptions{.inplace = o.inplace()}) {}
ReLUImpl::ReLUImpl(const ReLUOptions& o) : Wrapped(o, rn::InplaceOptions{.inplace = o.inplace()}) {}
ReLU6Impl::ReLU6Impl(const ReLU6Options& o) : Wrapped(o, rn::InplaceOptions{.inplace = o.inplace()}) {}
GELUImpl::GELUImpl(const GELUOptions& o)
    : Wrapped(o, rn::GELUOptions{.approximate = approximation(o.approximate())}) {}
GLUImpl::GLUImpl(const GLUOptions& o) : Wrapped(o, rn::GLUOptions{.dim = o.dim()}) {}
LeakyReLUImpl::LeakyReLUImpl(const LeakyReLUOptions& o)
    : Wrapped(o, rn::LeakyReLUOptions{.negative_slope = o.negative_slope(), .inplace = o.inplace()}) {}
RReLUImpl::RReLUImpl(const RReLUOptions& o)
    : Wrapped(o, rn::RReLUOptions{.lower = o.lower(), .upper = o.upper(), .inplace = o.inplace()}) {}
PReLUImpl::PReLUImpl(const PReLUOptions& o)
    : Wrapped(o, rn::PReLUOptions{.num_parameters = o.num_parameters(), .init = o.init()}) {}
HardshrinkImpl::HardshrinkImpl(const HardshrinkOptions& o)
    : Wrapped(o, rn::ShrinkOptions{.lambd = o.lambda()}) {}
SoftshrinkImpl::SoftshrinkImpl(const SoftshrinkOptions& o)
    : Wrapped(o, rn::ShrinkOptions{.lambd = o.lambda()}) {}
HardtanhImpl::HardtanhImpl(const HardtanhOptions& o)
    : Wrapped(o,
              rn::HardtanhOptions{.min_val = o.min_val(), .max_val = o.max_val(), .inplace = o.inplace()}) {}
SoftplusImpl::SoftplusImpl(const SoftplusOptions& o)
    : Wrapped(o, rn::SoftplusOptions{.beta = o.beta(), .threshold = o.threshold()}) {}
ThresholdImpl::ThresholdImpl(const ThresholdOptions& o)
    : Wrapped(o, o.threshold(), o.value(), rn::InplaceOptions{.inplace = o.inplace()}) {}
SoftmaxImpl::SoftmaxImpl(const SoftmaxOptions& o) : Wrapped(o, o.dim()) {}
SoftminImpl::SoftminImpl(const SoftminOptions& o) : Wrapped(o, o.dim()) {}
LogSoftmaxImpl::LogSoftmaxImpl(const LogSoftmaxOptions& o) : Wrapped(o, o.dim()) {}

LogSigmoidImpl::LogSigmoidImpl(const NoOptions& o) : Wrapped(o) {}
MishImpl::MishImpl(const NoOptions& o) : Wrapped(o) {}
SigmoidImpl::SigmoidImpl(const NoOptions& o) : Wrapped(o) {}
SiLUImpl::SiLUImpl(const NoOptions& o) : Wrapped(o) {}
Softmax2dImpl::Softmax2dImpl(const NoOptions& o) : Wrapped(o) {}
SoftsignImpl::SoftsignImpl(const NoOptions& o) : Wrapped(o) {}
TanhImpl::TanhImpl(const NoOptions& o) : Wrapped(o) {}
TanhshrinkImpl::TanhshrinkImpl(const NoOptions& o) : Wrapped(o) {}

}  // namespace torch::nn
