// torch::data::samplers: the library's, which are written to archives by their state_dict().
#pragma once

#include "data/distributed_samplers.h"
#include "torch/data/datasets.h"

#pragma GCC visibility push(default)
namespace torch::data::samplers {

/// The base of a sampler of one's own.
template <class BatchRequest = std::vector<size_t>>
class Sampler : public retrograd::data::samplers::Sampler<BatchRequest> {
 public:
  void reset(std::optional<size_t> new_size) override = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

/// A sampler of the library, with save() and load().
template <class Base>
class Archived : public Base {
 public:
  using Base::Base;
  template <class OutputArchive>
  void save(OutputArchive& archive) const {
    for (const auto& [key, tensor] : this->state_dict()) archive.write(key, tensor, /*is_buffer=*/true);
  }
  template <class InputArchive>
  void load(InputArchive& archive) {
    retrograd::StateDict state = this->state_dict();
    for (auto& [key, tensor] : state) archive.read(key, tensor, /*is_buffer=*/true);
    this->load_state_dict(state);
  }
};

template <class OutputArchive, class Base>
OutputArchive& operator<<(OutputArchive& archive, const Archived<Base>& sampler) {
  sampler.save(archive);
  return archive;
}
template <class InputArchive, class Base>
InputArchive& operator>>(InputArchive& archive, Archived<Base>& sampler) {
  sampler.load(archive);
  return archive;
}

using DistributedRandomSampler = Archived<retrograd::data::samplers::DistributedRandomSampler>;
using DistributedSequentialSampler = Archived<retrograd::data::samplers::DistributedSequentialSampler>;
using RandomSampler = Archived<retrograd::data::samplers::RandomSampler>;
using SequentialSampler = Archived<retrograd::data::samplers::SequentialSampler>;
using StreamSampler = Archived<retrograd::data::samplers::StreamSampler>;
using retrograd::data::samplers::BatchSize;
using retrograd::data::samplers::CustomBatchRequest;

}  // namespace torch::data::samplers
#pragma GCC visibility pop
