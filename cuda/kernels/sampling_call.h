// Random positions by weights, in plain data: made by cuda/kernels/sampling.cc from a Call, used by the launchers of
// sampling.cu. All sides are dense: `rows` rows of `length` weights, or of `samples`.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace retrograd::inline v0::cuda {

struct SamplingCall {
  const double* weights = nullptr;
  const double* sums = nullptr;  // with replacement: the running sums of the weights of a row
  double* times = nullptr;       // without: when a category arrives
  int64_t* places = nullptr;     // with replacement: the result
  int64_t rows = 0, length = 0, samples = 0;
  uint64_t seed = 0, offset = 0;
};
using SamplingLauncher = void (*)(const SamplingCall&, CUstream_st* stream);

struct SamplingLaunchers {
  SamplingLauncher find;    // places by their running sums
  SamplingLauncher arrive;  // times by weights
};

}  // namespace retrograd::cuda
