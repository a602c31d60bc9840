// The device query links, runs and is consistent in every build and on every machine.
// Not tested here: that a device which exists is found, where there is none to find.
#include "cuda/device.h"

#include <catch2/catch.hpp>
#include <string>

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
  CHECK(std::string(cuda::unavailable_reason()) == cuda::unavailable_reason());
}
