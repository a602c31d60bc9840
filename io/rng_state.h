// The state of a random generator as a tensor, to be saved and put back.
//
// uint8 [16]: the seed and the next free offset, both little-endian, as torch.cuda.get_rng_state() gives them. Numbers
// drawn after set_rng_state() are those that were drawn after get_rng_state(), also by recorded functions, which read
// seed and offset at each run. The numbers themselves are not PyTorch's.
// Limit: inside a function while it is recorded there is no state to read; both are for the host, between runs.
#pragma once

#include "engine/random.h"
#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// The state of the generator, a tensor of its own.
Tensor get_rng_state(const Generator& generator = default_generator());

/// Errors: bad_argument for an undefined tensor, dtype_mismatch and shape_mismatch for anything but uint8 [16]. Then
/// nothing has changed.
void set_rng_state(const Tensor& state, Generator& generator = default_generator(),
                   SourceLocation where = SourceLocation::current());

}  // namespace retrograd
#pragma GCC visibility pop
