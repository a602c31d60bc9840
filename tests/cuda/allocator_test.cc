// The allocator of device memory: reuse, streams, limits, out-of-memory handling.
#include "cuda/allocator.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/cuda/host_driver.h"

using namespace retrograd;
using cuda::Allocator;

namespace {

constexpr int64_t kMiB = 1 << 20;

struct Fixture {
  explicit Fixture(int64_t capacity = 1024 * kMiB) : driver(static_cast<size_t>(capacity)) {}
  cuda::HostDriver driver;
  cuda::Health health{driver, 0};
  Allocator memory{driver, health};
  cuda::Stream compute{driver, health}, copies{driver, health};

  Allocator::Block* take(int64_t bytes) { return memory.allocate(bytes, "test"); }
};

}  // namespace

TEST_CASE("blocks are aligned, counted as requested, and reused immediately") {
  Fixture f;
  Allocator::Block* a = f.take(1000);
  CHECK(reinterpret_cast<uintptr_t>(a->data) % 512 == 0);
  CHECK(f.memory.stats().live_bytes == 1000);
  CHECK(f.memory.stats().reserved_bytes == 2 * kMiB);
  char* const data = a->data;
  f.memory.free(a);
  CHECK(f.memory.stats().live_bytes == 0);
  CHECK(f.memory.stats().peak_bytes == 1000);
  CHECK(f.take(900)->data == data);
  CHECK(f.memory.stats().segments == 1);
}

TEST_CASE("a tensor without elements has memory of its own") {
  Fixture f;
  Allocator::Block *a = f.take(0), *b = f.take(0);
  CHECK(a->data != b->data);
  CHECK(f.memory.stats().live_bytes == 0);
  CHECK(f.memory.stats().allocations == 2);
}

TEST_CASE("small and large blocks come from segments of their own, huge ones from exact ones") {
  Fixture f;
  f.take(100);
  f.take(3 * kMiB);
  f.take(4 * kMiB);  // next to the one before
  CHECK(f.memory.stats().segments == 2);
  CHECK(f.memory.stats().reserved_bytes == 22 * kMiB);
  f.take(14 * kMiB);
  CHECK(f.memory.stats().reserved_bytes == 36 * kMiB);
}

TEST_CASE("free neighbours become one block again, in any order") {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    Fixture f;
    std::vector<Allocator::Block*> blocks;
    for (int i = 0; i < 40; ++i) blocks.push_back(f.take(1 + static_cast<int64_t>(random() % 50'000)));
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (Allocator::Block* b : blocks) f.memory.free(b);
    CHECK(f.memory.trim() == f.memory.stats().peak_reserved);
    CHECK(f.memory.stats().segments == 0);
    CHECK(f.driver.used == 0);
  }
}

TEST_CASE("live blocks never overlap") {
  Fixture f;
  std::mt19937 random(2);
  std::vector<Allocator::Block*> live;
  for (int i = 0; i < 2000; ++i) {
    if (random() % 2 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      Allocator::Block* b = live.back();
      for (int64_t k = 0; k < b->requested; k += 97) REQUIRE(b->data[k] == static_cast<char>(b->requested));
      f.memory.free(b);
      live.pop_back();
    } else {
      live.push_back(f.take(1 + static_cast<int64_t>(random() % (random() % 8 ? 5000 : 3 * kMiB))));
      std::memset(live.back()->data, static_cast<char>(live.back()->requested),
                  static_cast<size_t>(live.back()->requested));
    }
  }
}

TEST_CASE("a block that another stream uses rests until its event has fired") {
  Fixture f;
  f.driver.holds_events = true;
  Allocator::Block* a = f.take(1 * kMiB);
  char* const data = a->data;
  f.memory.note_use(a, f.copies);
  f.memory.free(a);
  CHECK(f.memory.stats().live_bytes == 0);
  CHECK(f.memory.stats().resting_bytes == 1 * kMiB);
  Allocator::Block* b = f.take(1 * kMiB);
  CHECK(b->data != data);
  f.driver.fire_all();
  CHECK(f.take(1 * kMiB)->data == data);
  CHECK(f.memory.stats().resting_bytes == 0);
  CHECK(f.driver.events() == 0);
}

TEST_CASE("without memory resting blocks are waited for, oldest first, until one is enough") {
  Fixture f(60 * kMiB);
  f.driver.holds_events = true;
  Allocator::Block* blocks[] = {f.take(20 * kMiB), f.take(20 * kMiB), f.take(20 * kMiB)};
  for (Allocator::Block* b : blocks) {
    f.memory.note_use(b, f.copies);
    f.memory.free(b);
  }
  f.driver.log.clear();
  CHECK(f.take(20 * kMiB));
  CHECK(f.driver.log == "synchronize e1\n");  // not the others
  CHECK(f.memory.stats().waits == 1);
  CHECK(f.memory.stats().trims == 0);
}

TEST_CASE("without memory for a segment, those without a block in use go back to the driver") {
  Fixture f(64 * kMiB);
  f.memory.free(f.take(30 * kMiB));
  f.memory.free(f.take(20 * kMiB));
  Allocator::Block* b = f.take(60 * kMiB);
  CHECK(b->size == 60 * kMiB);
  CHECK(f.memory.stats().trims == 1);
  CHECK(f.memory.stats().reserved_bytes == 60 * kMiB);
}

TEST_CASE("the callback is asked last, and for as long as it frees something") {
  Fixture f(40 * kMiB);
  std::vector<Allocator::Block*> kept{f.take(20 * kMiB), f.take(20 * kMiB)};
  std::vector<int64_t> asked;
  f.memory.on_out_of_memory([&](int64_t bytes) {
    asked.push_back(bytes);
    if (kept.empty()) return false;
    f.memory.free(kept.back());  // no lock is held
    kept.pop_back();
    return true;
  });
  CHECK(f.take(30 * kMiB));
  CHECK(asked == std::vector<int64_t>{30 * kMiB, 30 * kMiB});
}

TEST_CASE("out of memory says what is live, largest first") {
  Fixture f(40 * kMiB);
  f.memory.allocate(3 * kMiB, "mul");
  f.memory.allocate(17 * kMiB, "conv2d");
  try {
    f.take(30 * kMiB);
    FAIL("there is no memory for it");
  } catch (const OutOfMemory& e) {
    CHECK(e.requested == 30 * kMiB);
    CHECK(e.live == 20 * kMiB);
    const std::string text = e.what();
    INFO(text);
    CHECK(text.find("conv2d") < text.find("mul"));
    CHECK(text.find("live in 2 blocks") != std::string::npos);
  }
  CHECK(f.take(1000));  // and it continues
}

TEST_CASE("a limit refuses what would go beyond, and more bytes than there can be") {
  Fixture f;
  f.memory.set_limit(10'000);
  Allocator::Block* a = f.take(9000);
  CHECK_THROWS_AS(f.take(1001), OutOfMemory);
  CHECK(f.take(1000));
  f.memory.free(a);
  CHECK(f.take(9000));
  f.memory.set_limit(0);
  CHECK(f.take(1001));
  CHECK_THROWS_AS(f.take(INT64_MAX), OutOfMemory);
}

TEST_CASE("a lost device gives no memory, and takes back what it gave") {
  Fixture f;
  Allocator::Block* a = f.take(1000);
  f.health.note(700, "a kernel");
  CHECK_THROWS_AS(f.take(1000), cuda::DeviceError);
  f.memory.free(a);
  CHECK(f.memory.stats().live_bytes == 0);
}
