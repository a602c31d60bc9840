// A program that is linked with this has the host in a device's place from its start
// (tests/cuda/test_device.h): examples, benchmarks and scripts for a device are tried with it where there is
// none.
#include "tests/cuda/test_device.h"

namespace retrograd {
namespace {

[[maybe_unused]] const cuda::HostDriver& in_place = device_on_host();

}  // namespace
}  // namespace retrograd
