// See nn/embedding.h.
#include "nn/embedding.h"

#include <fmt/format.h>

#include "nn/init.h"
#include "ops/creation.h"
#include "ops/embedding_bag.h"
#include "ops/embedding_parts.h"
#include "ops/embedding_renorm.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn {
namespace {

// A standard normal table, but for zeros in the row that is padding.
void init_table(const Tensor& weight, std::optional<int64_t> padding_idx, std::string_view type,
                SourceLocation where) {
  init::normal_(weight);
  const int64_t padding = ops::padding_row(type, weight, padding_idx, where);
  if (padding >= 0) init::zeros_(select(weight.detach(), 0, padding));
}

void check_pretrained(const Tensor& embeddings, std::optional<int64_t> padding_idx, std::string_view type,
                      SourceLocation where) {
  if (embeddings.impl(type, where).rank() != 2)
    fail(Category::bad_dim, type, fmt::format("the table {} is not a matrix", describe(embeddings)), where);
  ops::padding_row(type, embeddings, padding_idx, where);
}

// The rows that a call reads, after those with too large a norm were scaled in the table.
template <class Options>
const Tensor& rows_to_read(const Operand& index, const Tensor& weight, const Options& options,
                           std::string_view type) {
  const Tensor& rows = index.defined_tensor(type);
  if (options.max_norm) embedding_renorm_(weight, rows, *options.max_norm, options.norm_type, index.where());
  return rows;
}

template <class Options>
std::string table_text(int64_t rows, int64_t width, const Options& options) {
  std::string text = fmt::format("num_embeddings={}, embedding_dim={}", rows, width);
  if (options.padding_idx) text += fmt::format(", padding_idx={}", *options.padding_idx);
  if (options.max_norm) text += fmt::format(", max_norm={}", *options.max_norm);
  if (options.norm_type != 2) text += fmt::format(", norm_type={}", options.norm_type);
  if (options.scale_grad_by_freq) text += ", scale_grad_by_freq=true";
  return text;
}

}  // namespace

Embedding::Embedding(Module* parent, std::string name, const Tensor& embeddings, EmbeddingOptions options,
                     bool freeze)
    : Layer(parent, std::move(name)),
      num_embeddings(embeddings.size(0)),
      embedding_dim(embeddings.size(1)),
      options(options),
      weight(this, "weight", embeddings) {
  weight.requires_grad_(!freeze);
}

Embedding::Embedding(Module* parent, std::string name, int64_t num_embeddings, int64_t embedding_dim,
                     EmbeddingOptions options, SourceLocation where)
    : Embedding(parent, std::move(name), empty({num_embeddings, embedding_dim}), options, false) {
  init_table(weight, options.padding_idx, type_name, where);
}

Embedding Embedding::from_pretrained(Module* parent, std::string name, const Tensor& embeddings, bool freeze,
                                     EmbeddingOptions options, SourceLocation where) {
  check_pretrained(embeddings, options.padding_idx, type_name, where);
  return Embedding(parent, std::move(name), embeddings.detach(), options, freeze);
}

Tensor Embedding::forward(Operand index) const {
  CallScope scope(index.where());
  const Tensor& rows = rows_to_read(index, weight, options, type_name);
  return embedding(Operand(weight, index.where()), rows, options.padding_idx, options.scale_grad_by_freq);
}

std::string Embedding::extra_repr() const { return table_text(num_embeddings, embedding_dim, options); }

EmbeddingBag::EmbeddingBag(Module* parent, std::string name, const Tensor& embeddings,
                           EmbeddingBagOptions options, bool freeze)
    : Layer(parent, std::move(name)),
      num_embeddings(embeddings.size(0)),
      embedding_dim(embeddings.size(1)),
      options(options),
      weight(this, "weight", embeddings) {
  weight.requires_grad_(!freeze);
}

EmbeddingBag::EmbeddingBag(Module* parent, std::string name, int64_t num_embeddings, int64_t embedding_dim,
                           EmbeddingBagOptions options, SourceLocation where)
    : EmbeddingBag(parent, std::move(name), empty({num_embeddings, embedding_dim}), options, false) {
  init_table(weight, options.padding_idx, type_name, where);
}

EmbeddingBag EmbeddingBag::from_pretrained(Module* parent, std::string name, const Tensor& embeddings,
                                           bool freeze, EmbeddingBagOptions options, SourceLocation where) {
  check_pretrained(embeddings, options.padding_idx, type_name, where);
  return EmbeddingBag(parent, std::move(name), embeddings.detach(), options, freeze);
}

Tensor EmbeddingBag::forward(Operand index, const Tensor& offsets, const Tensor& per_sample_weights) const {
  CallScope scope(index.where());
  const Tensor& rows = rows_to_read(index, weight, options, type_name);
  return embedding_bag(Operand(rows, index.where()), weight, offsets, options.scale_grad_by_freq,
                       options.mode, per_sample_weights, options.include_last_offset, options.padding_idx);
}

std::string EmbeddingBag::extra_repr() const {
  return table_text(num_embeddings, embedding_dim, options) + fmt::format(", mode={}", options.mode);
}

std::tuple<int64_t, int64_t, EmbeddingOptions> Embedding::arguments() const {
  return {num_embeddings, embedding_dim, options};
}
std::tuple<int64_t, int64_t, EmbeddingBagOptions> EmbeddingBag::arguments() const {
  return {num_embeddings, embedding_dim, options};
}

}  // namespace retrograd::nn
