// See io/rng_state.h.
#include "io/rng_state.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "ops/creation.h"

namespace retrograd::inline v0 {

static_assert(std::endian::native == std::endian::little && sizeof(GeneratorState) == 16);

Tensor get_rng_state(const Generator& generator) {
  const GeneratorState state = generator.state();
  const Tensor bytes = empty({sizeof state}, {kUInt8});
  std::memcpy(bytes.raw_data(), &state, sizeof state);
  return bytes;
}

void set_rng_state(const Tensor& state, Generator& generator, SourceLocation where) {
  const auto refuse = [&](Category category) {
    fail(category, "set_rng_state",
         fmt::format("a state is uint8 [16], this is {}. Hint: get_rng_state() gives one", describe(state)),
         where);
  };
  if (!state.defined()) refuse(Category::bad_argument);
  if (state.dtype() != kUInt8) refuse(Category::dtype_mismatch);
  if (state.sizes() != IntArray{sizeof(GeneratorState)}) refuse(Category::shape_mismatch);
  GeneratorState loaded;
  const Tensor bytes = state.cpu(where).contiguous(where);
  std::memcpy(&loaded, bytes.raw_data(where), sizeof loaded);
  generator.set_state(loaded);
}

}  // namespace retrograd
