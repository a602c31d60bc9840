// See data/tensor_dataset.h.
#include "data/tensor_dataset.h"

#include "ops/join.h"
#include "ops/views.h"

namespace retrograd::inline v0::data::datasets {

TensorDataset::TensorDataset(const Tensors& tensors) : tensor(stack(tensors)) {}

TensorExample TensorDataset::get(size_t index) { return select(tensor, 0, static_cast<int64_t>(index)); }

std::optional<size_t> TensorDataset::size() const { return static_cast<size_t>(tensor.size(0)); }

}  // namespace retrograd::inline v0::data::datasets
