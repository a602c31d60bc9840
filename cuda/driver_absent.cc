// Stands in for driver_cudart.cc in a build without the CUDA toolkit.
#include "cuda/driver.h"

namespace retrograd::cuda {

Driver* runtime_driver() { return nullptr; }

}  // namespace retrograd::cuda
