// torch::data::datasets: the library's, whose bases have libtorch's types of requests.
#pragma once

#include "data/mnist.h"
#include "data/tensor_dataset.h"
#include "torch/array_ref.h"
#include "torch/data/transforms.h"

#pragma GCC visibility push(default)
namespace torch {
namespace serialize {
class InputArchive;
class OutputArchive;
}  // namespace serialize

namespace data::datasets {

using namespace retrograd::data::datasets;

template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = ArrayRef<size_t>>
using BatchDataset = retrograd::data::datasets::BatchDataset<Self, Batch, BatchRequest>;

template <class Self, class SingleExample = Example<>>
using Dataset = retrograd::data::datasets::Dataset<Self, SingleExample, ArrayRef<size_t>>;

template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = size_t>
class StatefulDataset : public retrograd::data::datasets::StatefulDataset<Self, Batch, BatchRequest> {
 public:
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

/// There is none: derive from StatefulDataset, whose get_batch() reads the next chunk when the last one is used up.
template <class ChunkReader, class... Samplers>
class ChunkDataset {
  static_assert(sizeof(ChunkReader) == 0,
                "torch::data::datasets::ChunkDataset does not exist here: use StatefulDataset, which reads a "
                "chunk when "
                "the last one is used up");
};

}  // namespace data::datasets

namespace data {
using datasets::BatchDataset;
using datasets::Dataset;
}  // namespace data
}  // namespace torch
#pragma GCC visibility pop
