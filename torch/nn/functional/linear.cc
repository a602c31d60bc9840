// See torch/nn/functional/linear.h.
#include "torch/nn/functional/linear.h"

#include "ops/distances.h"
#include "ops/embedding.h"
#include "ops/embedding_bag.h"
#include "ops/embedding_renorm.h"
#include "ops/losses.h"
#include "ops/matmul.h"
#include "ops/vector_pairs.h"
#include "torch/nn/convert.h"

namespace torch::nn::functional {

Tensor linear(Operand input, const Tensor& weight, const Tensor& bias) {
  return retrograd::linear(input, weight, bias);
}
Tensor bilinear(Operand input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  return retrograd::bilinear(input1, input2, weight, bias);
}
Tensor one_hot(Operand index, int64_t num_classes) { return retrograd::one_hot(index, num_classes); }
Tensor embedding(const Tensor& index, Operand weight, const EmbeddingFuncOptions& options) {
  refuse_sparse(options.sparse(), "embedding");
  if (options.max_norm())
    retrograd::embedding_renorm_(weight.tensor(), index, *options.max_norm(), options.norm_type(),
                                 weight.where());
  return retrograd::embedding(weight, index, options.padding_idx(), options.scale_grad_by_freq());
}
Tensor embedding_bag(Operand index, const Tensor& weight, const EmbeddingBagFuncOptions& options) {
  refuse_sparse(options.sparse(), "embedding_bag");
  if (options.max_norm())
    retrograd::embedding_renorm_(weight, index.tensor(), *options.max_norm(), options.norm_type(),
                                 index.where());
  return retrograd::embedding_bag(index, weight, options.offsets(), options.scale_grad_by_freq(),
                                  enumtype::text_of(options.mode()), options.per_sample_weights(),
                                  options.include_last_offset(), options.padding_idx());
}
Tensor cosine_similarity(Operand x1, const Tensor& x2, const CosineSimilarityFuncOptions& options) {
  return retrograd::cosine_similarity(x1, x2, options.dim(), options.eps());
}
Tensor pairwise_distance(Operand x1, const Tensor& x2, const PairwiseDistanceFuncOptions& options) {
  return retrograd::pairwise_distance(x1, x2, options.p(), options.eps(), options.keepdim());
}
Tensor pdist(Operand input, double p) { return retrograd::pdist(input, p); }

}  // namespace torch::nn::functional
