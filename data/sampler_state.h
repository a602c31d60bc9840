// What the states of samplers and loaders are made of: numbers by name, and random permutations by their place in the
// stream of random numbers. For sources, and the templates of data/loader.h.
#pragma once

#include <string_view>

#include "engine/random.h"
#include "io/state_dict.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data::detail {

/// A number as an entry of a state: int64 ().
Tensor state_number(int64_t number);
/// The entry `key`, for the object named `of`. Error(bad_argument) if there is none or it is no such number.
int64_t number_of(const StateDict& state, std::string_view key, std::string_view of);

/// The position in an epoch of `size` examples: the entries "size" and "index".
StateDict position_state(size_t size, size_t index);
/// The index. Error(bad_argument) for a state of another size, or an index beyond its end.
size_t index_of(const StateDict& state, size_t size, std::string_view of);

/// The entries whose keys begin with `prefix`, without it.
StateDict without_prefix(const StateDict& state, std::string_view prefix);

/// How many of the examples from `index` on make the next batch, and moves `index` behind them.
size_t take_examples(size_t& index, size_t end, size_t batch_size);

/// The integers below n in the order that belongs to a place in the random stream.
Tensor permutation(int64_t n, ScalarType dtype, GeneratorState drawn);

}  // namespace retrograd::inline v0::data::detail
#pragma GCC visibility pop
