// The device query links, runs and is consistent in every build and on every machine; and gives the right text for each
// code. Not tested here: that an existing device is found, on a machine without one.
#include "cuda/device.h"

#include <catch2/catch.hpp>

#include "tests/cuda/host_driver.h"

using namespace retrograd;

TEST_CASE("either there is a device or there is a reason why not") {
  const int count = cuda::device_count();
  const std::string reason = cuda::unavailable_reason();
  INFO("devices: " << count << ", reason: '" << reason << "'");
  CHECK(count >= 0);
  CHECK((count == 0) == !reason.empty());
}

TEST_CASE("asking twice gives the same answer") {
  CHECK(cuda::device_count() == cuda::device_count());
  CHECK(cuda::unavailable_reason() == cuda::unavailable_reason());
}

TEST_CASE("a stub, no driver and a driver without a device are all no device") {
  cuda::HostDriver driver;
  for (const int code : {34, 35, 100}) {
    driver.count_status = code;
    CHECK(cuda::device_count(&driver) == 0);
    CHECK(cuda::unavailable_reason(&driver).starts_with("no CUDA device: "));
  }
  driver.count_status = 3;
  CHECK(cuda::device_count(&driver) == 0);
  CHECK(cuda::unavailable_reason(&driver) == "something failed");
  CHECK(cuda::unavailable_reason(nullptr) == "no CUDA device: built without CUDA");
}

TEST_CASE("a driver with devices gives no reason") {
  cuda::HostDriver driver(1 << 20, 2);
  CHECK(cuda::device_count(&driver) == 2);
  CHECK(cuda::unavailable_reason(&driver).empty());
  driver.devices = 0;
  CHECK(cuda::unavailable_reason(&driver) == "no CUDA device");
}
