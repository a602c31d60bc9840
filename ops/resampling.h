// Common code of pooling and interpolation: linear ops that map the last dims of a tensor, the grid, to another grid.
// Their transpose is an op with the same attributes, where `size` is always the grid of the result. So the two ops of a
// pair, which differ only in their names, are each other's transposes.
//
// Grid sizes are symbols while tracing. Windows (kernel, stride, padding) are structure.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// One value for all dims of a grid, or a list of one for each; empty: not given.
template <class T>
struct PerDim {
  PerDim() = default;
  PerDim(T one) : values{std::move(one)}, is_one(true) {}
  template <class U>
  requires std::is_arithmetic_v<U> PerDim(U one) : PerDim(T(one)) {}
  PerDim(std::initializer_list<T> list) : values(list) {}
  PerDim(std::vector<T> list) : values(std::move(list)) {}

  bool given() const { return !values.empty(); }
  /// The values of `dims` dims; empty when they are more or fewer.
  std::vector<T> of(int dims) const {
    if (is_one) return std::vector<T>(static_cast<size_t>(dims), values[0]);
    return static_cast<int>(values.size()) == dims ? values : std::vector<T>();
  }

  std::vector<T> values;
  bool is_one = false;
};

namespace ops {

/// The last `dims` sizes of a shape.
inline Shape grid_of(const Shape& shape, int dims) {
  return Shape(std::span(shape.begin(), static_cast<size_t>(shape.rank())).last(static_cast<size_t>(dims)));
}

/// The operand's type with another grid. Errors: dtype_mismatch unless it is floating (or `accepts` the
/// dtype), bad_dim when it has fewer dims than the grid, or the grid not 1 to 3.
void infer_grid(const Call& call, TensorImpl* const* outputs, const Shape& grid,
                bool (*accepts)(ScalarType) = nullptr);

/// Base of a linear op on grids; Op::Transpose is its partner.
template <class Op, class A>
struct Resampling {
  using Attrs = A;
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr auto batch = batch_leading;
  static void infer(const Call& call, TensorImpl* const* outputs) {
    infer_grid(call, outputs, call.attrs_as<A>().size);
  }
  static Tensor transpose(RuleContext& c, int, const Tensor& g) {
    A attrs = c.attrs<A>();
    attrs.size = grid_of(c.type(0).shape, attrs.size.rank());
    return emit<typename Op::Transpose>({g.get()}, attrs, c.where());
  }
};

}  // namespace ops
}  // namespace retrograd
#pragma GCC visibility pop
