// Steps of optimizers, and the norm of many tensors, in plain data: made by cuda/kernels/optimizers.cc from a Call,
// used by the launchers of optimizers.cu. Both process lists of tensors in one launch: a table in device memory assigns
// blocks to tensors.
#pragma once

#include <cstdint>

#include "cuda/kernels/given.h"
#include "ops/optimizers/rules.h"

struct CUstream_st;

namespace retrograd::inline v0::cuda {

enum class Element : uint8_t;

inline constexpr int kStepElements = 4096;   // of a block
inline constexpr int kNormElements = 16384;  // of a block

/// The tensors of one step, dense, of one length, in the order of the rule's operands and results; null if absent. An
/// operand may share memory with the result of the same number. With master values (ops/optimizer_steps.h) these are
/// operand 0, and the parameter of 16 bits is `narrow`.
struct StepTensors {
  const void* in[ops::OptimizerFormulas::inputs];
  void* out[ops::OptimizerFormulas::inputs - 1];
  const void* narrow;
  void* new_narrow;
  const float* found_inf;  // not 0: nothing is updated
  int64_t numel, first_block;
  bool is_aligned;  // all are at multiples of 16 bytes
  Element grad;     // that of the step, or f16 or bf16 in a step of f32
  Element param;    // of `narrow`
  uint8_t none[5];  // no uninitialised byte: tables are compared by their bytes (cuda/graph.h)
};

struct StepList {
  const StepTensors* steps = nullptr;  // device memory
  int count = 0;
  int64_t blocks = 0;
  bool is_mixed = false;  // some in f32 have a gradient or parameter of 16 bits
};

struct NormTensor {
  const void* x;
  Element element;
  uint8_t none[7];
  int64_t numel, first_block;
};

struct TotalNormCall {
  const NormTensor* tensors = nullptr;  // device memory
  int count = 0;
  int64_t blocks = 0;
  double norm_type = 2;
  double *parts = nullptr, *out = nullptr;  // parts: one per block
};

/// The launcher of one formula's steps. Elements are f64, f32, f16 or bf16.
template <class Factors>
struct StepLauncher {
  void (*run)(const StepList&, Element element, const Given<Factors>&, CUstream_st* stream);
};

template <class Formulas>
struct StepLaunchers;
template <class... Formula>
struct StepLaunchers<ops::RuleList<Formula...>> : StepLauncher<typename Formula::Factors>... {};

/// The launchers of all formulas: each is the base class of its factors.
struct OptimizerLaunchers : StepLaunchers<ops::OptimizerFormulas> {
  void (*total_norm)(const TotalNormCall&, CUstream_st* stream);
};

}  // namespace retrograd::cuda
