// See torch/nn/modules/distance.h.
#include "torch/nn/modules/distance.h"

namespace torch::nn {

CosineSimilarityImpl::CosineSimilarityImpl(const CosineSimilarityOptions& o)
    : Wrapped(o, rn::CosineSimilarityOptions{.dim = o.dim(), .eps = o.eps()}) {}
PairwiseDistanceImpl::PairwiseDistanceImpl(const PairwiseDistanceOptions& o)
    : Wrapped(o, rn::PairwiseDistanceOptions{.p = o.p(), .eps = o.eps(), .keepdim = o.keepdim()}) {}

}  // namespace torch::nn
