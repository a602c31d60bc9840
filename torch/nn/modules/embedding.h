// Embedding and EmbeddingBag. Sparse gradients do not exist here: sparse(true) is an Error(unsupported).
#pragma once

#include "nn/embedding.h"
#include "torch/nn/names.h"
#include "torch/nn/options/embedding.h"
#include "torch/nn/wrapped.h"

#pragma GCC visibility push(default)
namespace torch::nn {

RG_TORCH_IMPL(Embedding, Embedding, EmbeddingOptions);
RG_TORCH_IMPL(EmbeddingBag, EmbeddingBag, EmbeddingBagOptions);

class Embedding : public ModuleHolder<EmbeddingImpl> {
 public:
  using ModuleHolder<EmbeddingImpl>::ModuleHolder;
  using Impl = EmbeddingImpl;
  /// Of a matrix of rows, whose values the weight takes. Error(bad_dim) for another number of dims.
  static Embedding from_pretrained(const Tensor& embeddings,
                                   const EmbeddingFromPretrainedOptions& options = {});
};

class EmbeddingBag : public ModuleHolder<EmbeddingBagImpl> {
 public:
  using ModuleHolder<EmbeddingBagImpl>::ModuleHolder;
  using Impl = EmbeddingBagImpl;
  static EmbeddingBag from_pretrained(const Tensor& embeddings,
                                      const EmbeddingBagFromPretrainedOptions& options = {});
};

}  // namespace torch::nn
#pragma GCC visibility pop
