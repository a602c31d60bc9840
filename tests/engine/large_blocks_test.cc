// Large blocks that are reused many times: their content is preserved, and they are on huge pages if the system has
// them. Under a sanitizer nothing is kept for reuse: then only the former is checked.
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <string>

#include "engine/pool.h"
#include "retrograd/retrograd.h"

namespace rg = retrograd;

namespace {

constexpr int64_t kElements = int64_t{4} << 20;  // 16 MiB of float32
constexpr size_t kPage = size_t{2} << 20;

// KiB of huge pages in the mapping that holds an address.
long huge_kilobytes(const void* address) {
  const auto place = reinterpret_cast<unsigned long>(address);
  FILE* file = std::fopen("/proc/self/smaps", "r");
  if (!file) return -1;
  char line[512];
  bool is_there = false;
  long found = -1;
  while (found < 0 && std::fgets(line, sizeof line, file)) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line, "%lx-%lx ", &begin, &end) == 2) is_there = begin <= place && place < end;
    if (is_there) std::sscanf(line, "AnonHugePages: %ld kB", &found);
  }
  std::fclose(file);
  return found;
}

// Whether the system provides this much memory in huge pages on request. It may have fewer at another time.
bool has_huge_pages() {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE
  constexpr size_t kBytes = sizeof(float) * kElements;
  void* const memory =
      mmap(nullptr, kBytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  std::memset(memory, 1, kBytes + kPage);
  const auto begin = (reinterpret_cast<uintptr_t>(memory) + kPage - 1) / kPage * kPage;
  const bool has = madvise(reinterpret_cast<void*>(begin), kBytes, kCollapse) == 0;
  munmap(memory, kBytes + kPage);
  return has;
}

}  // namespace

TEST_CASE("a block that is used again and again lies on huge pages, and keeps what is written to it") {
  for (int round = 0; round < 8; ++round) {
    const rg::Tensor x = rg::full({kElements}, 1.0 * round), y = rg::full({kElements}, -1.0 * round);
    CHECK(x.sum().item<double>() == static_cast<double>(round * kElements));
    CHECK(y.sum().item<double>() == static_cast<double>(-round * kElements));
  }
  const rg::Tensor last = rg::full({kElements}, 1.0);
  if (!rg::kPooling || !has_huge_pages()) {
    WARN("blocks are not kept, or there are no huge pages");
    return;
  }
  CHECK(huge_kilobytes(last.data_ptr<float>()) >= static_cast<long>(kPage >> 10));
  rg::memory::empty_cache();
  CHECK(last.sum().item<double>() == static_cast<double>(kElements));
}
