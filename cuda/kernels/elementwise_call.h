// An elementwise call in plain data: made by cuda/kernels/elementwise.cc from a Call, used by the launchers of
// cuda/kernels/elementwise*.cu. Also for copies between layouts and types, which are elementwise with the identity as
// formula.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace retrograd::inline v0::cuda {

enum class Element : uint8_t;

/// An operand or the result. Strides in elements, 0 for a repeated dim.
struct Side {
  void* data = nullptr;  // null: an operand that is a number
  Element element{};
  int64_t stride[8] = {};
};

/// The dims are those of the result, merged where all sides allow; without dims there is one of size 1. numel > 0.
struct ElementwiseCall {
  static constexpr int kMost = 3;
  Side out, in[kMost];
  int64_t numel = 1;
  int rank = 0;
  int64_t size[8] = {};
  // Operands and result are dense and of one type, and begin at multiples of 16 bytes.
  bool is_direct = false;
  double number = 0;    // the value of the operand without data
  int64_t integer = 0;  // the same for integer computations
  const void* attrs = nullptr;
};

using ElementwiseLauncher = void (*)(const ElementwiseCall&, CUstream_st* stream);

/// The launchers of an op. Null: not available.
struct ElementwiseRow {
  size_t attrs_size;
  ElementwiseLauncher direct_f32, direct_f64, direct_f16, direct_bf16;  // operands of that type, is_direct
  ElementwiseLauncher any_f32, any_f64, any_i64;                        // by compute type
};

/// A row per op of ops::ArithmeticOps, ops::UnaryOps and so on, in the order of the list.
struct ElementwiseLaunchers {
  const ElementwiseRow *arithmetic, *unary, *activations, *binary, *comparison, *ternary, *losses, *special,
      *floats, *bitwise, *shrinkage;
};

}  // namespace retrograd::cuda
