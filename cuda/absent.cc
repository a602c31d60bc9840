// What stands for the CUDA component in a program without it.
//
// Weak, so that a program may have both this library and the component: the component's functions are then used.
#include <string>

#include <fmt/format.h>

#include "engine/device.h"
#include "engine/runner.h"

namespace retrograd::inline v0 {
namespace cuda {

[[gnu::weak]] int device_count() { return 0; }
[[gnu::weak]] std::string unavailable_reason() {
  return "no CUDA device: this program was built without the CUDA component (--config=cuda)";
}

}  // namespace cuda

[[gnu::weak]] Executor& cuda_executor(int index) {
  fail(Category::bad_argument, fmt::format("cuda:{}", index), cuda::unavailable_reason());
}

}  // namespace retrograd
