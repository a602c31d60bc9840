// See data/sampler_state.h.
#include "data/sampler_state.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/creation.h"
#include "ops/op.h"
#include "ops/sampling.h"

namespace retrograd::inline v0::data::detail {

Tensor state_number(int64_t number) { return scalar_tensor(number, {kInt64}); }

int64_t number_of(const StateDict& state, std::string_view key, std::string_view of) {
  const auto it = state.find(key);
  if (it == state.end()) fail(Category::bad_argument, of, fmt::format("the state has no \"{}\"", key));
  const Tensor& entry = it->second;
  if (!entry.defined() || entry.dtype() != kInt64 || entry.dim() != 0)
    fail(Category::bad_argument, of, fmt::format("\"{}\" is {}, not an int64", key, describe(entry)));
  return entry.item<int64_t>();
}

StateDict position_state(size_t size, size_t index) {
  return {{"size", state_number(static_cast<int64_t>(size))},
          {"index", state_number(static_cast<int64_t>(index))}};
}

size_t index_of(const StateDict& state, size_t size, std::string_view of) {
  const int64_t saved = number_of(state, "size", of), index = number_of(state, "index", of);
  if (saved != static_cast<int64_t>(size))
    fail(Category::bad_argument, of, fmt::format("the state of {} examples for {}", saved, size));
  if (index < 0 || index > saved)
    fail(Category::bad_argument, of, fmt::format("the index {} among {} examples", index, saved));
  return static_cast<size_t>(index);
}

StateDict without_prefix(const StateDict& state, std::string_view prefix) {
  StateDict part;
  for (const auto& [key, tensor] : state)
    if (key.starts_with(prefix)) part.emplace(key.substr(prefix.size()), tensor);
  return part;
}

size_t take_examples(size_t& index, size_t end, size_t batch_size) {
  const size_t count = std::min(batch_size, end - index);
  index += count;
  return count;
}

Tensor permutation(int64_t n, ScalarType dtype, GeneratorState drawn) {
  const ops::Draw draw{static_cast<int64_t>(drawn.seed), static_cast<int64_t>(drawn.offset)};
  return ops::emit<ops::RandPerm>({}, {n, dtype, draw}, SourceLocation::current());
}

}  // namespace retrograd::inline v0::data::detail
