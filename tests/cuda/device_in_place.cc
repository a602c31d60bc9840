// A program linked with this uses the host in place of a device from its start (tests/cuda/test_device.h): it tests
// examples, benchmarks and scripts for a device where there is none.
#include "tests/cuda/test_device.h"

namespace retrograd {
namespace {

[[maybe_unused]] const cuda::HostDriver& in_place = device_on_host();

}  // namespace
}  // namespace retrograd
