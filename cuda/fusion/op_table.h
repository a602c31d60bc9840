// What fusion knows of each op: its name in C++ and the header of its formula, or the kind of reduction; and the role
// of a node in a group.
#pragma once

#include <string>

#include "cuda/kernels/reduce_call.h"
#include "engine/executor.h"

namespace retrograd::inline v0::cuda::fusion {

/// An op with a formula.
struct Formula {
  std::string name;         // "ops::Tanh", in namespace retrograd
  std::string_view header;  // "ops/unary.h"
  bool gives_bool, integers, booleans, divides;
};
/// Null when the op has none.
const Formula* formula_of(const OpInfo& op);

/// An op that reduces values of a group, with one result.
struct Reducing {
  Reduction kind;
  Finish finish;
  std::string_view kind_name, finish_name;  // "Reduction::sum", "Finish::value"
};
const Reducing* reducing_of(const OpInfo& op);

/// The dtype of the operands that an op computes with: that of the last operand that is given; an earlier one may be
/// the condition of `where`.
ScalarType computed_dtype(std::span<const TensorType> operands);

/// The result of Executor::fused_role for a node whose result is on a CUDA device. Sizes may be symbols.
FusedRole role_of(const OpInfo& op, const void* attrs, std::span<const TensorType> operands,
                  const TensorType& result);

/// The dims of a reduction.
IntList dims_of(const OpInfo& op, const void* attrs);

}  // namespace retrograd::cuda::fusion
