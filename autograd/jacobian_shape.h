// The shape of a Jacobian, for the functions that compute one (autograd/func.cc, autograd/functional.cc).
#pragma once

#include "engine/location.h"
#include "engine/shape.h"

namespace retrograd::inline v0::autograd {

/// The sizes of y, then those of x. Error(bad_argument) for more dims than a tensor has.
Shape jacobian_shape(const Shape& y, const Shape& x, SourceLocation where);

}  // namespace retrograd::autograd
