// The pool of small blocks: alignment, reuse, blocks that change threads, and slabs that are returned to the system.
// Which block is given is not tested. Under a sanitizer blocks come from malloc and nothing is pooled: then only what
// users see is checked.
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>
#include <vector>

#include "engine/pool.h"
#include "retrograd/retrograd.h"

namespace rg = retrograd;

namespace {

struct Held {
  void* block;
  size_t bytes;
};

// Blocks of all classes, each filled with a number of its own.
std::vector<Held> take(size_t count) {
  std::vector<Held> held;
  for (size_t i = 0; i < count; ++i) {
    const size_t bytes = 1 + i * 97 % rg::kPoolLargest;
    held.push_back({rg::pool_allocate(bytes), bytes});
    std::memset(held.back().block, static_cast<int>(i % 251), bytes);
  }
  return held;
}

bool are_intact(const std::vector<Held>& held) {
  for (size_t i = 0; i < held.size(); ++i) {
    const auto* bytes = static_cast<const unsigned char*>(held[i].block);
    if (bytes[0] != i % 251 || bytes[held[i].bytes - 1] != i % 251) return false;
  }
  return true;
}

void give(const std::vector<Held>& held) {
  for (const Held& h : held) rg::pool_free(h.block, h.bytes);
}

}  // namespace

TEST_CASE("blocks are aligned, do not overlap, and are used again") {
  std::vector<Held> held = take(5000);
  for (const Held& h : held) CHECK(reinterpret_cast<uintptr_t>(h.block) % 64 == 0);
  CHECK(are_intact(held));
  give(held);
  const size_t before = rg::pool_bytes();
  for (int round = 0; round < 20; ++round) {
    held = take(5000);
    CHECK(are_intact(held));
    give(held);
  }
  CHECK(rg::pool_bytes() == before);
}

TEST_CASE("blocks freed by another thread are used again") {
  std::vector<Held> held;
  size_t before = 0;
  for (int round = 0; round < 10; ++round) {
    std::thread([&] { held = take(20'000); }).join();
    CHECK(are_intact(held));
    give(held);
    if (round == 2) before = rg::pool_bytes();
  }
  CHECK(rg::pool_bytes() <= before + (size_t{4} << 20));
}

TEST_CASE("threads that come and go do not take a slab each") {
  give(take(100));
  const size_t before = rg::pool_bytes();
  for (int i = 0; i < 50; ++i) std::thread([] { give(take(100)); }).join();
  CHECK(rg::pool_bytes() <= before + (size_t{4} << 20));
}

TEST_CASE("a large tape goes back to the system") {
  rg::memory::empty_cache();
  const size_t before = rg::pool_bytes();
  {
    const rg::Tensor x = rg::ones({1}).requires_grad_();
    rg::Tensor y = x;
    for (int i = 0; i < 200'000; ++i) y = y * 0.5;
    if (rg::kPooling) CHECK(rg::pool_bytes() >= before + (size_t{16} << 20));
  }
  rg::memory::empty_cache();
  CHECK(rg::pool_bytes() <= before + (size_t{4} << 20));
}

TEST_CASE("a block in use keeps its slab") {
  std::vector<Held> held = take(20'000), kept;
  for (size_t i = 0; i < held.size(); ++i)
    if (i % 251 == 7)
      kept.push_back(held[i]);
    else
      rg::pool_free(held[i].block, held[i].bytes);
  rg::pool_trim();
  give(take(20'000));
  for (const Held& h : kept) CHECK(static_cast<const unsigned char*>(h.block)[h.bytes - 1] == 7);
  give(kept);
}
