// See data/distributed_samplers.h.
#include "data/distributed_samplers.h"

#include "data/sampler_state.h"

namespace retrograd::inline v0::data::samplers {
namespace {

StateDict state_of(size_t size, size_t index, size_t epoch) {
  StateDict state = detail::position_state(size, index);
  state.emplace("epoch", detail::state_number(static_cast<int64_t>(epoch)));
  return state;
}

// All processes draw the same: the seed is the epoch.
Tensor order_of(size_t size, size_t epoch) {
  return detail::permutation(static_cast<int64_t>(size), kInt64, {.seed = epoch});
}

}  // namespace

void DistributedSequentialSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
}

std::optional<std::vector<size_t>> DistributedSequentialSampler::next(size_t batch_size) {
  const size_t first = index();
  std::vector<size_t> indices(detail::take_examples(index_, local_sample_count(), batch_size));
  if (indices.empty()) return std::nullopt;
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = (first + i) % size_;
  return indices;
}

StateDict DistributedSequentialSampler::state_dict() const {
  return state_of(local_sample_count(), index_, epoch_);
}
void DistributedSequentialSampler::load_state_dict(const StateDict& state) {
  constexpr std::string_view kName = "DistributedSequentialSampler::load_state_dict";
  const size_t index = detail::index_of(state, local_sample_count(), kName);
  epoch_ = static_cast<size_t>(detail::number_of(state, "epoch", kName));
  index_ = index;
}

DistributedRandomSampler::DistributedRandomSampler(size_t size, size_t num_replicas, size_t rank,
                                                   bool allow_duplicates, SourceLocation where)
    : DistributedSampler(size, num_replicas, rank, allow_duplicates, where), order_(order_of(size, epoch_)) {}

void DistributedRandomSampler::reset(std::optional<size_t> new_size) {
  const size_t size = new_size.value_or(size_);
  order_ = order_of(size, epoch_);
  order_epoch_ = epoch_;
  size_ = size;
  index_ = 0;
}

std::optional<std::vector<size_t>> DistributedRandomSampler::next(size_t batch_size) {
  const size_t first = index();
  std::vector<size_t> indices(detail::take_examples(index_, local_sample_count(), batch_size));
  if (indices.empty()) return std::nullopt;
  const int64_t* const order = order_.data_ptr<int64_t>();
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<size_t>(order[(first + i) % size_]);
  return indices;
}

StateDict DistributedRandomSampler::state_dict() const {
  return state_of(local_sample_count(), index_, order_epoch_);
}
void DistributedRandomSampler::load_state_dict(const StateDict& state) {
  constexpr std::string_view kName = "DistributedRandomSampler::load_state_dict";
  const size_t index = detail::index_of(state, local_sample_count(), kName);
  const auto epoch = static_cast<size_t>(detail::number_of(state, "epoch", kName));
  order_ = order_of(size_, epoch);
  epoch_ = order_epoch_ = epoch;
  index_ = index;
}

}  // namespace retrograd::inline v0::data::samplers
