// See nn/distances.h.
#include "nn/distances.h"

#include <fmt/format.h>

#include "ops/losses.h"
#include "ops/vector_pairs.h"

namespace retrograd::inline v0::nn {

Tensor CosineSimilarity::forward(Operand x1, const Tensor& x2) const {
  return cosine_similarity(x1, x2, options.dim, options.eps);
}
std::string CosineSimilarity::extra_repr() const {
  return fmt::format("dim={}, eps={}", options.dim, options.eps);
}

Tensor PairwiseDistance::forward(Operand x1, const Tensor& x2) const {
  return pairwise_distance(x1, x2, options.p, options.eps, options.keepdim);
}
std::string PairwiseDistance::extra_repr() const {
  return fmt::format("p={}, eps={}, keepdim={}", options.p, options.eps, options.keepdim);
}

}  // namespace retrograd::nn
