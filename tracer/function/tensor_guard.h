// What a recording depends on of one tensor.
//
//   TensorGuard     type, layout and history of one tensor
//   TensorLocation  location of one of several tensors: for recordings that write to arguments, or begin with gradients
#pragma once

#include <string>
#include <vector>

#include "engine/op.h"

namespace retrograd::inline v0 {

struct TensorGuard {
  TensorType type;
  IntList strides;
  bool is_dense;  // row-major
  bool requires_grad, is_leaf, is_multi_output_view, is_no_grad_view, is_function_view, is_outdated,
      is_inference;

  explicit TensorGuard(const TensorImpl& x);
  /// Whether the guard holds for x now.
  bool holds(const TensorImpl& x) const;
  bool operator==(const TensorGuard& o) const;
  /// Whether nothing differs but sizes above 1, and strides above 1 unless both tensors are row-major.
  bool differs_in_sizes(const TensorGuard& o) const;
  std::string text() const;

 private:
  bool has_same_state(const TensorGuard& o) const;
};

struct TensorLocation {
  size_t memory, base;  // the first of the tensors with the same memory, with the same base
  int64_t offset, base_offset, bytes;
  TensorGuard base_guard;

  static std::vector<TensorLocation> of(const Tensors& tensors);
  bool operator==(const TensorLocation& o) const = default;
};

/// For each tensor, the number of the first that is the same.
std::vector<size_t> first_of_each(const Tensors& given);

}  // namespace retrograd
