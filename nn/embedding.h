// Tables of rows that are looked up: Embedding, and EmbeddingBag, which reduces bags of rows. Parameters, their names
// and initial values are PyTorch's. Functions and errors: ops/embedding.h, ops/embedding_bag.h.
//
//   nn::Embedding words{this, "words", 10000, 64, {.padding_idx = 0}};
//
// Limit: gradients are dense; there are no sparse tensors.
#pragma once

#include <optional>

#include "nn/layer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx =
      {};  // a row that begins as zeros and gets no gradient; negative: from the end
  std::optional<double> max_norm =
      {};  // rows are scaled to at most this norm, in place, when they are looked up
  double norm_type = 2.0;
  bool scale_grad_by_freq = false;  // gradients are divided by how often their row was looked up
};

/// index (...) of int64 or int32 -> (..., width). weight [rows, width], standard normal.
class Embedding : public Layer<Embedding> {
 public:
  static constexpr std::string_view type_name = "Embedding";
  /// Error(bad_argument) for a padding_idx that is no row.
  Embedding(Module* parent, std::string name, int64_t num_embeddings, int64_t embedding_dim,
            EmbeddingOptions options = {}, SourceLocation where = SourceLocation::current());
  /// With the memory of `embeddings` [rows, width] as its weight, which is not trained if `freeze`:
  ///   nn::Embedding words = nn::Embedding::from_pretrained(this, "words", table);
  /// Error(bad_dim) unless it is a matrix.
  static Embedding from_pretrained(Module* parent, std::string name, const Tensor& embeddings,
                                   bool freeze = true, EmbeddingOptions options = {},
                                   SourceLocation where = SourceLocation::current());
  Tensor forward(Operand index) const;
  std::string extra_repr() const;
  std::tuple<int64_t, int64_t, EmbeddingOptions> arguments() const;

  const int64_t num_embeddings, embedding_dim;
  const EmbeddingOptions options;
  Parameter weight;

 private:
  Embedding(Module* parent, std::string name, const Tensor& embeddings, EmbeddingOptions options,
            bool freeze);
};

struct EmbeddingBagOptions {
  std::optional<double> max_norm = {};  // as in EmbeddingOptions
  double norm_type = 2.0;
  bool scale_grad_by_freq = false;
  std::string mode = "mean";  // "sum", "mean" or "max"
  bool include_last_offset = false;
  std::optional<int64_t> padding_idx = {};
};

/// index (bags, length), or (n) with the offsets at which bags begin -> (bags, width). weight [rows, width], standard
/// normal. per_sample_weights, of the index's shape, multiply the rows of a sum.
class EmbeddingBag : public Layer<EmbeddingBag> {
 public:
  static constexpr std::string_view type_name = "EmbeddingBag";
  EmbeddingBag(Module* parent, std::string name, int64_t num_embeddings, int64_t embedding_dim,
               EmbeddingBagOptions options = {}, SourceLocation where = SourceLocation::current());
  /// As Embedding::from_pretrained.
  static EmbeddingBag from_pretrained(Module* parent, std::string name, const Tensor& embeddings,
                                      bool freeze = true, EmbeddingBagOptions options = {},
                                      SourceLocation where = SourceLocation::current());
  Tensor forward(Operand index, const Tensor& offsets = {}, const Tensor& per_sample_weights = {}) const;
  std::string extra_repr() const;
  std::tuple<int64_t, int64_t, EmbeddingBagOptions> arguments() const;

  const int64_t num_embeddings, embedding_dim;
  const EmbeddingBagOptions options;
  Parameter weight;

 private:
  EmbeddingBag(Module* parent, std::string name, const Tensor& embeddings, EmbeddingBagOptions options,
               bool freeze);
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
