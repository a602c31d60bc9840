// Steps of optimizers, and the norm of many tensors, in plain data: what cuda/kernels/optimizers.cc makes of
// a Call, and what the launchers of optimizers.cu take. Both go over lists of tensors in one launch: a table
// in the device's memory says which blocks are about which tensor.
#pragma once

#include <cstdint>

#include "cuda/kernels/given.h"

struct CUstream_st;

namespace retrograd::cuda {

enum class Element : uint8_t;

inline constexpr int kStepElements = 4096;   // of a block
inline constexpr int kNormElements = 16384;  // of a block

/// The tensors of one step, dense, of one length, in the order of the op's operands and results; null where
/// there is none. An operand may lie where the result of the same number does.
struct StepTensors {
  const void* in[5];
  void* out[4];
  int64_t numel, first_block;
  bool is_aligned;  // all lie at multiples of 16 bytes
  uint8_t none[7];  // no byte without a value: tables are compared by their bytes (cuda/graph.h)
};

struct StepList {
  const StepTensors* steps = nullptr;  // memory of the device
  int count = 0;
  int64_t blocks = 0;
};

/// The numbers of ops::AdamWStep as its formula needs them.
struct AdamWNumbers {
  double sign, keep, fresh1, beta2, fresh2, size, scale2, eps;
};
/// Those of ops::SGDStep.
struct SGDNumbers {
  double sign, decay, lr, momentum, keep, fresh, nesterov;  // nesterov: 0 or 1
};

struct NormTensor {
  const void* x;
  Element element;
  uint8_t none[7];
  int64_t numel, first_block;
};

struct TotalNormCall {
  const NormTensor* tensors = nullptr;  // memory of the device
  int count = 0;
  int64_t blocks = 0;
  double norm_type = 2;
  double *parts = nullptr, *out = nullptr;  // parts: one per block
};

/// Steps: elements are f64, f32, f16 or bf16.
struct OptimizerLaunchers {
  void (*adamw)(const StepList&, Element element, const Given<AdamWNumbers>&, CUstream_st* stream);
  void (*sgd)(const StepList&, Element element, const Given<SGDNumbers>&, CUstream_st* stream);
  void (*total_norm)(const TotalNormCall&, CUstream_st* stream);
};

}  // namespace retrograd::cuda
