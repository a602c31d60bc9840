// Streams, pinned memory, errors and copies of a device, with a stand-in driver.
#include "cuda/gpu.h"

#include <catch2/catch.hpp>
#include <thread>

#include "cuda/kernels/launchers.h"
#include "tests/cuda/host_driver.h"

using namespace retrograd;
using cuda::Gpu;

namespace {

struct Fixture {
  cuda::HostDriver driver;
  cuda::Launchers none;
  Gpu gpu{driver, 0, none};
};

std::string text_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("copies go through pinned memory on the compute stream, in pieces") {
  Fixture f;
  std::vector<char> host(size_t{70} << 20, 'x'), back(host.size());
  cuda::Allocator::Block* block = f.gpu.memory().allocate(static_cast<int64_t>(host.size()), "test");
  f.gpu.upload(block->data, host.data(), static_cast<int64_t>(host.size()));
  f.gpu.download(back.data(), block->data, static_cast<int64_t>(host.size()));
  CHECK(host == back);
  CHECK(f.driver.pinned_made == 2);  // 32 MiB, used again, and 8 MiB
  CHECK(f.driver.log.find("copy 6291456 on 1\n") != std::string::npos);
  CHECK(f.driver.log.find(" on 2") == std::string::npos);
}

TEST_CASE("a copy that fails gives its pinned memory back") {
  Fixture f;
  char host[16] = {}, device[16];
  for (int i = 0; i < 2; ++i) {
    f.driver.next_copy = 801;
    CHECK_THROWS_AS(f.gpu.upload(device, host, sizeof(host)), cuda::DeviceError);
    f.driver.next_copy = 801;
    CHECK_THROWS_AS(f.gpu.download(host, device, sizeof(host)), cuda::DeviceError);
    f.driver.next_synchronize = 801;
    CHECK_THROWS_AS(f.gpu.download(host, device, sizeof(host)), cuda::DeviceError);
  }
  CHECK(f.driver.pinned_made == 1);
}

TEST_CASE("pinned memory that a copy still reads is not used again") {
  Fixture f;
  f.driver.holds_events = true;
  const auto a = f.gpu.pinned().take(5000);
  CHECK(a.size == 8192);
  f.gpu.pinned().give(a, f.gpu.to_device());
  const auto b = f.gpu.pinned().take(8192);
  CHECK(b.data != a.data);
  f.driver.fire_all();
  const auto c = f.gpu.pinned().take(8000);
  CHECK(c.data == a.data);
  f.gpu.pinned().give(b);
  f.gpu.pinned().give(c);
  CHECK(f.gpu.pinned().reserved_bytes() == 2 * 8192);
}

TEST_CASE("100: pinned memory that the driver does not have is OutOfMemory, and the device goes on") {
  Fixture f;
  f.driver.has_pinned = false;
  CHECK_THROWS_AS(f.gpu.pinned().take(5000), OutOfMemory);
  CHECK(f.gpu.pinned().reserved_bytes() == 0);
  CHECK_FALSE(f.gpu.health().is_lost());
  f.driver.has_pinned = true;
  f.gpu.pinned().give(f.gpu.pinned().take(5000));
  CHECK(f.gpu.pinned().reserved_bytes() == 8192);
}

TEST_CASE("a device tells what it is") {
  Fixture f;
  const cuda::DeviceDescription d = f.gpu.description();
  CHECK(std::string(d.name) == "the host in a device's place");
  CHECK(d.memory_bytes == f.driver.capacity);
}

TEST_CASE("a stream follows another by an event") {
  Fixture f;
  f.driver.log.clear();
  f.gpu.to_host().follow(f.gpu.compute());
  CHECK(f.driver.log == "record e1 on 1\nwait e1 on 3\n");
}

TEST_CASE("the device is chosen on a thread when it changes") {
  cuda::HostDriver driver;
  cuda::Launchers none;
  Gpu a(driver, 0, none), b(driver, 1, none);
  driver.used_devices.clear();
  for (Gpu* gpu : {&a, &a, &b, &b, &a}) gpu->begin();
  CHECK(driver.used_devices == std::vector<int>{0, 1, 0});
  std::thread([&] { a.begin(); }).join();
  CHECK(driver.used_devices == std::vector<int>{0, 1, 0, 0});
}

TEST_CASE("the error of a launch has the name of the op, and only that work fails") {
  Fixture f;
  f.driver.next_launch = 9;  // cudaErrorInvalidConfiguration
  const std::string text = text_of([&] { f.gpu.launched("mul"); });
  CHECK(text == "cuda:0: mul: something failed (CUDA error 9)");
  f.gpu.begin();
  f.gpu.launched("add");
}

TEST_CASE("after a sticky error all work is refused, with the first error") {
  Fixture f;
  f.driver.next_synchronize = 700;  // cudaErrorIllegalAddress
  const std::string first = text_of([&] { f.gpu.synchronize(); });
  CHECK(first.find("CUDA error 700") != std::string::npos);
  CHECK(f.gpu.health().is_lost());
  CHECK(text_of([&] { f.gpu.begin(); }) == first);
  f.driver.next_launch = 719;
  CHECK(text_of([&] { f.gpu.launched("mul"); }) == first);
  try {
    f.gpu.begin();
  } catch (const cuda::DeviceError& e) {
    CHECK(e.code == 700);
    CHECK(e.is_sticky);
  }
}

TEST_CASE("in debug mode the device is waited for after each launch, and the error has the op's name") {
  Fixture f;
  f.gpu.launched("mul");
  CHECK(f.driver.synchronizations == 0);
  f.gpu.set_debug(true);
  f.gpu.launched("mul");
  CHECK(f.driver.synchronizations == 1);
  char from[16] = {}, to[16];
  f.gpu.copy(to, from, sizeof(to));
  CHECK(f.driver.synchronizations == 2);
  f.driver.next_synchronize = 719;
  CHECK(text_of([&] { f.gpu.launched("gather"); }).find("cuda:0: gather: ") == 0);
}

TEST_CASE("faults of kernels and of the hardware are sticky, running out of memory is not") {
  for (const int code : {700, 710, 714, 719, 721, 214, 226, 810, 911}) CHECK(cuda::is_sticky(code));
  for (const int code : {1, 2, 9, 35, 100, 600, 720, 900, 910}) CHECK(!cuda::is_sticky(code));
}
