// Factories. They have no operands: what they make is made by the current emitter, so inside a traced function it is a node of the graph.
#pragma once

#include <optional>

#include "engine/tensor.h"

namespace retrograd {

/// Options of a factory: `zeros({2, 3}, {.dtype = kFloat64})`.
struct TensorOptions {
  ScalarType dtype = kFloat32;
  Device device = kCPU;
  bool requires_grad = false;
  constexpr TensorOptions(ScalarType dtype = kFloat32, Device device = kCPU, bool requires_grad = false)
      : dtype(dtype), device(device), requires_grad(requires_grad) {}
};

Tensor full(const Shape& size, Scalar value, TensorOptions options = {},
            SourceLocation where = SourceLocation::current());
Tensor zeros(const Shape& size, TensorOptions options = {}, SourceLocation where = SourceLocation::current());
Tensor ones(const Shape& size, TensorOptions options = {}, SourceLocation where = SourceLocation::current());
/// Uninitialised memory.
Tensor empty(const Shape& size, TensorOptions options = {}, SourceLocation where = SourceLocation::current());
/// A copy of `values` (row-major) as a tensor of `size`, converted to options.dtype.
Tensor tensor(const std::vector<double>& values, const Shape& size, TensorOptions options = {},
              SourceLocation where = SourceLocation::current());
Tensor tensor(std::initializer_list<double> values, TensorOptions options = {},
              SourceLocation where = SourceLocation::current());
/// The number as a 0-dim tensor.
Tensor scalar_tensor(Scalar value, TensorOptions options = {},
                     SourceLocation where = SourceLocation::current());
/// start, start + step, ... below `end`.
Tensor arange(int64_t start, int64_t end, int64_t step = 1, TensorOptions options = {kInt64},
              SourceLocation where = SourceLocation::current());
/// (n, m): ones on the diagonal, else zeros; m is n unless given.
Tensor eye(Dim n, std::optional<Dim> m = {}, TensorOptions options = {},
           SourceLocation where = SourceLocation::current());
/// Memory of the caller, kept until `release(context)` is called.
Tensor from_blob(void* data, const Shape& size, TensorOptions options = {}, void (*release)(void*) = nullptr,
                 void* context = nullptr, SourceLocation where = SourceLocation::current());

/// Of the size, dtype and device of `input`; no history.
Tensor full_like(Operand input, Scalar value);
Tensor zeros_like(Operand input);
Tensor ones_like(Operand input);
Tensor empty_like(Operand input);

/// Zeros and ones of a type.
Tensor zeros_of(const TensorType& type, SourceLocation where);
Tensor ones_of(const TensorType& type, SourceLocation where);

}  // namespace retrograd
