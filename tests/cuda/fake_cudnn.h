// cuDNN's functions of convolutions, for tests without a device: those of cuda/dnn_cudnn.cc. Descriptors record their
// settings, queries for algorithms return a list that begins with all that must be skipped, and a convolution is
// computed on the host (plain_dnn.h) from the descriptors, with cuDNN's own checks of them.
//
// A program with fake_cudnn.cc exports them (-rdynamic): dlopen(nullptr) is the library. Only if cudnn.h is available.
#pragma once

// Exported although everything else is hidden.
#pragma GCC visibility push(default)
#include <cudnn.h>
#pragma GCC visibility pop

namespace retrograd::fake_cudnn {

struct World {
  int live = 0;                   // handles and descriptors
  int questions = 0;              // about algorithms
  cudnnMathType_t asked{};        // in the last one
  int algorithm = -1;             // of the last convolution
  cudnnMathType_t math{};         // of the last convolution
  cudaStream_t stream = nullptr;  // of the last convolution
  bool has_none = false;          // no algorithm that will do
};
inline World world;

inline constexpr int64_t kBytes = 64;  // of workspace

}  // namespace retrograd::fake_cudnn
