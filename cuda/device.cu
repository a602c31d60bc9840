// The device query, for a build with the CUDA toolkit; device_absent.cc is its twin.
//
// Three error codes mean that there is no device, and say so in different words: 34 (the toolkit's stub
// stands in the driver's place), 35 (no driver, or one too old), 100 (a driver without a device). Any other
// is a driver that does not work, and its own text is passed on. After an error the runtime leaves the count
// unwritten and remembers the error.
#include "cuda/device.h"

#include <cuda_runtime_api.h>

namespace retrograd::cuda {
namespace {

struct Query {
  int count = 0;
  cudaError_t error = cudaSuccess;
};

Query query() {
  Query result;
  result.error = cudaGetDeviceCount(&result.count);
  if (result.error != cudaSuccess) {
    result.count = 0;
    cudaGetLastError();  // else the next kernel launch would be blamed
  }
  return result;
}

}  // namespace

int device_count() { return query().count; }

const char* unavailable_reason() {
  const Query result = query();
  switch (result.error) {
    case cudaSuccess: return result.count > 0 ? "" : "no CUDA device";
    case cudaErrorStubLibrary: return "no CUDA device: the driver is a stub";
    case cudaErrorInsufficientDriver:
      return "no CUDA device: no driver, or one older than this build's toolkit";
    case cudaErrorNoDevice: return "no CUDA device: the driver finds none";
    default: return cudaGetErrorString(result.error);
  }
}

}  // namespace retrograd::cuda
