// The twin check: does a function still do what was recorded?
//
// A recording is looked at again by calling the function once more, for a second recording (its twin), which never
// runs. A recording leaves everything outside as it was, so nothing is copied or put back, and all that a run would
// read again (weights, learning rates, draws) is a name in both. What differs between the two is what the function
// computed differently this time: a number, an operation, a tensor from outside. The first difference in the forward is
// reported, else the first in the backward. Tensors from outside are the same if they are one object, or have the same
// bits: tensor({...}) in the function makes another one each time.
//
// The function's own effects on the host, such as printing, happen at each check. What opaque hooks and functions do is
// called in runs, not recorded, and not compared.
#pragma once

#include <string>

#include "tracer/function/sized_function.h"

namespace retrograd::inline v0 {

/// The first difference between what was recorded and its twin, of the same sizes: the line, the operation, and what
/// it was. Empty if there is none. Takes the twin's backwards.
std::string difference_of_twin(const SizedFunction& recorded, FunctionCapture& twin);

}  // namespace retrograd
