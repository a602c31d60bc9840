// Operands and results of the host code in a recorded function (engine/host_code.h).
//
// The cells of a run belong to its plan: user code sees, and may keep, a separate cell on the same memory. An object
// other than a tensor that one node passes to another in the same run (the result of a pack hook, the context of a
// function) travels as an **opaque value**: a tensor without elements whose memory is the object.
#pragma once

#include <memory>

#include "engine/tensor.h"

namespace retrograd::inline v0 {

/// A separate cell for the memory of x; row_of(): a cell for all of that memory, as a row.
Tensor seen(const TensorImpl& x);
Tensor row_of(const TensorImpl& x);

/// An operand as passed to user code: the operand itself if it has a history, which no register of a plan has; else
/// seen().
Tensor shown(TensorImpl& x);

/// The type of every opaque value.
TensorType opaque_value_type();
/// An opaque value that owns `content`.
Tensor make_opaque_value(std::shared_ptr<void> content);
/// The content of an opaque value.
const std::shared_ptr<void>& opaque_content(const TensorImpl& opaque);

}  // namespace retrograd
