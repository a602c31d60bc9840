// An elementwise call in plain data: what cuda/kernels/elementwise.cc makes of a Call, and what the launchers of cuda/kernels/elementwise*.cu
// take. Also copies between layouts and types, which are elementwise with the formula "the same".
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace retrograd::cuda {

enum class Element : uint8_t;

/// An operand or the result. Strides in elements, 0 where it is repeated.
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
  bool is_direct =
      false;  // operands are dense and of one type, the result too; all begin at multiples of 16 bytes
  double number = 0;    // stands for the operand without data
  int64_t integer = 0;  // the same where integers are computed
  const void* attrs = nullptr;
};

using ElementwiseLauncher = void (*)(const ElementwiseCall&, CUstream_st* stream);

/// Of an op. Null: it does not have it.
struct ElementwiseRow {
  size_t attrs_size;
  ElementwiseLauncher direct_f32, direct_f64, direct_f16, direct_bf16;  // operands of that type, is_direct
  ElementwiseLauncher any_f32, any_f64, any_i64;                        // by what is computed in
};

}  // namespace retrograd::cuda
