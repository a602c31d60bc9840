// Stands in for device.cu in a build without the CUDA toolkit.
#include "cuda/device.h"

namespace retrograd::cuda {

int device_count() { return 0; }

const char* unavailable_reason() { return "built without CUDA"; }

}  // namespace retrograd::cuda
