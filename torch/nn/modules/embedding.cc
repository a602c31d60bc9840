// See torch/nn/modules/embedding.h.
#include "torch/nn/modules/embedding.h"

#include "torch/nn/convert.h"

namespace torch::nn {

using enumtype::text_of;
using retrograd::Category;

namespace {

rn::EmbeddingOptions layer_options(const EmbeddingOptions& o) {
  refuse_sparse(o.sparse(), "Embedding");
  return {.padding_idx = o.padding_idx(),
          .max_norm = o.max_norm(),
          .norm_type = o.norm_type(),
          .scale_grad_by_freq = o.scale_grad_by_freq()};
}

rn::EmbeddingBagOptions layer_options(const EmbeddingBagOptions& o) {
  refuse_sparse(o.sparse(), "EmbeddingBag");
  return {.max_norm = o.max_norm(),
          .norm_type = o.norm_type(),
          .scale_grad_by_freq = o.scale_grad_by_freq(),
          .mode = text_of(o.mode()),
          .include_last_offset = o.include_last_offset(),
          .padding_idx = o.padding_idx()};
}

// Takes the values, dtype and device of a given weight.
void take_weight(Module& module, const Tensor& weight) {
  if (!weight.defined()) return;
  module.to(weight.device(), weight.dtype());
  module.load_state_dict({{"weight", weight}});
}

// Error(bad_dim) unless it is a matrix.
const Tensor& rows_of(const Tensor& embeddings) {
  if (embeddings.dim() != 2)
    retrograd::fail(Category::bad_dim, "from_pretrained", "a matrix is needed, not " + describe(embeddings));
  return embeddings;
}

}  // namespace

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& o)
    : Wrapped(o, o.num_embeddings(), o.embedding_dim(), layer_options(o)) {
  take_weight(*this, o._weight());
}

EmbeddingBagImpl::EmbeddingBagImpl(const EmbeddingBagOptions& o)
    : Wrapped(o, o.num_embeddings(), o.embedding_dim(), layer_options(o)) {
  take_weight(*this, o._weight());
}

Embedding Embedding::from_pretrained(const Tensor& embeddings,
                                     const EmbeddingFromPretrainedOptions& options) {
  const Tensor& rows = rows_of(embeddings);
  Embedding embedding(EmbeddingOptions(rows.size(0), rows.size(1))
                          ._weight(rows)
                          .padding_idx(options.padding_idx())
                          .max_norm(options.max_norm())
                          .norm_type(options.norm_type())
                          .scale_grad_by_freq(options.scale_grad_by_freq())
                          .sparse(options.sparse()));
  embedding->weight.requires_grad_(!options.freeze());
  return embedding;
}

EmbeddingBag EmbeddingBag::from_pretrained(const Tensor& embeddings,
                                           const EmbeddingBagFromPretrainedOptions& options) {
  const Tensor& rows = rows_of(embeddings);
  EmbeddingBag bag(EmbeddingBagOptions(rows.size(0), rows.size(1))
                       ._weight(rows)
                       .max_norm(options.max_norm())
                       .norm_type(options.norm_type())
                       .scale_grad_by_freq(options.scale_grad_by_freq())
                       .mode(options.mode())
                       .sparse(options.sparse())
                       .include_last_offset(options.include_last_offset())
                       .padding_idx(options.padding_idx()));
  bag->weight.requires_grad_(!options.freeze());
  return bag;
}

}  // namespace torch::nn
