// Linear maps, embeddings and distances as functions.
#pragma once

#include "torch/nn/names.h"
#include "torch/nn/options/distance.h"
#include "torch/nn/options/embedding.h"

#pragma GCC visibility push(default)
namespace torch::nn::functional {

Tensor linear(Operand input, const Tensor& weight, const Tensor& bias = {});
Tensor bilinear(Operand input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = {});

Tensor one_hot(Operand index, int64_t num_classes = -1);
Tensor embedding(const Tensor& index, Operand weight, const EmbeddingFuncOptions& options = {});
Tensor embedding_bag(Operand index, const Tensor& weight, const EmbeddingBagFuncOptions& options = {});

Tensor cosine_similarity(Operand x1, const Tensor& x2, const CosineSimilarityFuncOptions& options = {});
Tensor pairwise_distance(Operand x1, const Tensor& x2, const PairwiseDistanceFuncOptions& options = {});
Tensor pdist(Operand input, double p = 2);

}  // namespace torch::nn::functional
#pragma GCC visibility pop
