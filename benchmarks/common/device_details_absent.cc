// Replaces device_details.cc in a program without the CUDA component: name() throws, the others are never reached. Weak:
// a program with the component has both.
#include "benchmarks/common/device_details.h"
#include "retrograd/retrograd.h"

namespace bench::device_details {

namespace rg = retrograd;

[[gnu::weak]] std::string name(int index) {
  rg::synchronize({rg::kCUDA, static_cast<int8_t>(index)});
  return {};
}
[[gnu::weak]] void finish_compiling() {}
[[gnu::weak]] int64_t library_convolutions(int) { return 0; }
[[gnu::weak]] int64_t library_factorisations(int) { return 0; }

}  // namespace bench::device_details
