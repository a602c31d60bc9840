// nn::utils: parameters as one vector. clip_grad_norm_ and clip_grad_value_, which PyTorch has here, too, are in
// optim/clip_grad.h; parametrizations are in nn/parametrize.h, packed sequences in nn/packed_sequence.h.
#pragma once

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn::utils {

/// All elements of all parameters, one after the other. Differentiable. Errors: bad_argument for no parameters,
/// dtype_mismatch where dtypes cannot be joined.
Tensor parameters_to_vector(const Tensors& parameters, SourceLocation where = SourceLocation::current());
/// Copies the elements of `vec` into the parameters, the reverse of the above. Error(shape_mismatch) unless it is a
/// vector of just as many elements.
void vector_to_parameters(const Tensor& vec, const Tensors& parameters,
                          SourceLocation where = SourceLocation::current());

}  // namespace retrograd::nn::utils
#pragma GCC visibility pop
