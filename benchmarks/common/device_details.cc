// See benchmarks/common/device_details.h.
#include "benchmarks/common/device_details.h"

#include "cuda/executor.h"
#include "cuda/fusion/fusion.h"

namespace bench::device_details {

namespace cuda = retrograd::cuda;

std::string name(int index) { return cuda::gpu_of(index).description().name; }
void finish_compiling() { cuda::finish_compiling(); }
int64_t library_convolutions(int index) { return cuda::gpu_of(index).dnn_stats().computed; }
int64_t library_factorisations(int index) { return cuda::gpu_of(index).solver_stats().computed; }

}  // namespace bench::device_details
