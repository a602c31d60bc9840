// See data/samplers.h.
#include "data/samplers.h"

#include <numeric>

#include <fmt/format.h>

#include "data/sampler_state.h"
#include "io/rng_state.h"
#include "ops/views.h"

namespace retrograd::inline v0::data::samplers {

void SequentialSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
}

std::optional<std::vector<size_t>> SequentialSampler::next(size_t batch_size) {
  const size_t first = index_;
  std::vector<size_t> indices(detail::take_examples(index_, size_, batch_size));
  if (indices.empty()) return std::nullopt;
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

StateDict SequentialSampler::state_dict() const { return detail::position_state(size_, index_); }
void SequentialSampler::load_state_dict(const StateDict& state) {
  index_ = detail::index_of(state, size_, "SequentialSampler::load_state_dict");
}

RandomSampler::RandomSampler(int64_t size, ScalarType index_dtype)
    : drawn_(default_generator().reserve()), indices_(detail::permutation(size, index_dtype, drawn_)) {}

void RandomSampler::reset(std::optional<size_t> new_size) {
  const int64_t size = new_size ? static_cast<int64_t>(*new_size) : indices_.numel();
  const GeneratorState drawn = default_generator().reserve();
  indices_ = detail::permutation(size, indices_.dtype(), drawn);
  drawn_ = drawn;
  index_ = 0;
}

std::optional<std::vector<size_t>> RandomSampler::next(size_t batch_size) {
  const auto first = static_cast<int64_t>(index_), size = indices_.numel();
  const size_t count = detail::take_examples(index_, static_cast<size_t>(size), batch_size);
  if (count == 0) return std::nullopt;
  const auto batch = narrow(indices_, 0, first, static_cast<int64_t>(count)).to_vector<int64_t>();
  return std::vector<size_t>(batch.begin(), batch.end());
}

StateDict RandomSampler::state_dict() const {
  StateDict state = detail::position_state(static_cast<size_t>(indices_.numel()), index_);
  Generator generator;
  generator.set_state(drawn_);
  state.emplace("generator", get_rng_state(generator));
  return state;
}

void RandomSampler::load_state_dict(const StateDict& state) {
  constexpr std::string_view kName = "RandomSampler::load_state_dict";
  const size_t index = detail::index_of(state, static_cast<size_t>(indices_.numel()), kName);
  const auto it = state.find("generator");
  if (it == state.end()) fail(Category::bad_argument, kName, "the state has no \"generator\"");
  Generator generator;
  set_rng_state(it->second, generator);
  drawn_ = generator.state();
  indices_ = detail::permutation(indices_.numel(), indices_.dtype(), drawn_);
  index_ = index;
}

void StreamSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
}

std::optional<BatchSize> StreamSampler::next(size_t batch_size) {
  const size_t count = detail::take_examples(index_, size_, batch_size);
  if (count == 0) return std::nullopt;
  return BatchSize(count);
}

StateDict StreamSampler::state_dict() const { return detail::position_state(size_, index_); }
void StreamSampler::load_state_dict(const StateDict& state) {
  index_ = detail::index_of(state, size_, "StreamSampler::load_state_dict");
}

}  // namespace retrograd::inline v0::data::samplers
