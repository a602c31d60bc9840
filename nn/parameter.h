// Parameter and Buffer: tensors that are members of a module and register themselves with it (nn/module.h). A module
// knows them by their addresses, so they are neither copied nor moved. They can be assigned to.
#pragma once

#include <string>

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

class Module;

/// A leaf that requires a gradient and belongs to a module.
class Parameter : public Tensor {
 public:
  /// An undefined value is a disabled option (a bias): it is not registered.
  Parameter(Module* owner, std::string name, const Tensor& value);
  Parameter(const Parameter&) = delete;
  /// The module computes with this tensor from here on, as after an assignment to a member in libtorch: what was
  /// registered stays among its parameters and in its state.
  Parameter& operator=(const Tensor& value);
  Parameter& operator=(const Parameter& value) { return *this = static_cast<const Tensor&>(value); }

 private:
  Module* owner_ = nullptr;  // where it is registered
};

/// A tensor that belongs to a module and is not trained: running statistics, the state between two parts of a sequence.
/// It moves and is converted with the module, and is part of its state_dict() if it is `persistent`.
class Buffer : public Tensor {
 public:
  /// An undefined value is a disabled option: it is not registered.
  Buffer(Module* owner, std::string name, const Tensor& value, bool persistent = true);
  Buffer(const Buffer&) = delete;
  /// Takes the values, and the history if there is one, into its memory. So it stays the same tensor, and a recorded
  /// function reads and writes it in each run. For another shape, dtype or device it gets new memory; that is an
  /// Error(shape_mismatch) for a value with a history, and in a recorded function.
  Buffer& operator=(const Tensor& value);
  Buffer& operator=(const Buffer& value) { return *this = static_cast<const Tensor&>(value); }
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
