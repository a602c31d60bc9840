// TensorDataset: the entries along the first dim of a tensor.
#pragma once

#include "data/dataset.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data::datasets {

/// Example i is tensor[i], a view. Errors of get(): index_out_of_range; bad_dim for a tensor without dims.
struct TensorDataset : Dataset<TensorDataset, TensorExample> {
  explicit TensorDataset(Tensor tensor) : tensor(std::move(tensor)) {}
  /// The tensors, which have one shape, in a new dim.
  explicit TensorDataset(const Tensors& tensors);

  TensorExample get(size_t index) override;
  std::optional<size_t> size() const override;

  Tensor tensor;
};

}  // namespace retrograd::inline v0::data::datasets
#pragma GCC visibility pop
