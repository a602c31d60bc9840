// Elementwise calls and copies on a device: converts a Call to the plain data of a launch.
#pragma once

#include "cuda/gpu.h"
#include "cuda/kernels/elementwise_call.h"
#include "engine/op.h"

namespace retrograd::inline v0::cuda {

/// The type that operands of a dtype are computed in: float32 for the narrower floats, int64 for integers and bool.
ScalarType compute_type(ScalarType dtype);
/// Launches the row's kernel for a call whose operands broadcast to the output. Error(dtype_mismatch) when the row has
/// none for it.
void elementwise(const Call& call, TensorImpl& output, const ElementwiseRow& row);
/// Copies `from` into `to`, both on the device: same shape, any layouts and dtypes.
void convert_copy(const TensorImpl& from, TensorImpl& to);
/// Sets every element of `output` to `value`. `call` is the call it is done for.
void fill(const Call& call, TensorImpl& output, Scalar value);

}  // namespace retrograd::cuda
