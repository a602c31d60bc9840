// See torch/nn/modules/padding.h.
#include "torch/nn/modules/padding.h"

namespace torch::nn {

ReflectionPad1dImpl::ReflectionPad1dImpl(const ReflectionPad1dOptions& o) : Wrapped(o, o.padding()) {}
ReflectionPad2dImpl::ReflectionPad2dImpl(const ReflectionPad2dOptions& o) : Wrapped(o, o.padding()) {}
ReflectionPad3dImpl::ReflectionPad3dImpl(const ReflectionPad3dOptions& o) : Wrapped(o, o.padding()) {}
ReplicationPad1dImpl::ReplicationPad1dImpl(const ReplicationPad1dOptions& o) : Wrapped(o, o.padding()) {}
ReplicationPad2dImpl::ReplicationPad2dImpl(const ReplicationPad2dOptions& o) : Wrapped(o, o.padding()) {}
ReplicationPad3dImpl::ReplicationPad3dImpl(const ReplicationPad3dOptions& o) : Wrapped(o, o.padding()) {}
ZeroPad1dImpl::ZeroPad1dImpl(const ZeroPad1dOptions& o) : Wrapped(o, o.padding()) {}
ZeroPad2dImpl::ZeroPad2dImpl(const ZeroPad2dOptions& o) : Wrapped(o, o.padding()) {}
ZeroPad3dImpl::ZeroPad3dImpl(const ZeroPad3dOptions& o) : Wrapped(o, o.padding()) {}
ConstantPad1dImpl::ConstantPad1dImpl(const ConstantPad1dOptions& o) : Wrapped(o, o.padding(), o.value()) {}
ConstantPad2dImpl::ConstantPad2dImpl(const ConstantPad2dOptions& o) : Wrapped(o, o.padding(), o.value()) {}
ConstantPad3dImpl::ConstantPad3dImpl(const ConstantPad3dOptions& o) : Wrapped(o, o.padding(), o.value()) {}

}  // namespace torch::nn
