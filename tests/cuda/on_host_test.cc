// The host's stand-in for a device follows the rules of kernels: barriers, shuffles, shared memory, blocks in any
// order.
#include "cuda/on_host/device_on_host.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

namespace {

// The sum of a block's numbers, by shuffles in each warp and shared memory between them.
void block_sum(float* out, const float* x) {
  __shared__ float part[8];
  float v = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x > 0) return;
  float sum = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += part[w];
  out[blockIdx.x] = sum;
}

void reversed(int* x) {
  RG_DYNAMIC_SHARED(int, tile);
  const unsigned n = blockDim.x;
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[n - 1 - threadIdx.x];
}

}  // namespace

TEST_CASE("shuffles and barriers work in any order of blocks and threads") {
  std::vector<float> x(5 * 256), out(5);
  std::iota(x.begin(), x.end(), 0.0f);
  for (const unsigned seed : {0u, 1u, 2u}) {
    on_host::launch({5, 256, 0, seed}, [&] { block_sum(out.data(), x.data()); });
    for (int b = 0; b < 5; ++b)
      CHECK(out[static_cast<size_t>(b)] == 256.0f * static_cast<float>(b) * 256 + 255.0f * 128);
  }
}

TEST_CASE("dynamic shared memory is there, and unset at the start of a block") {
  std::vector<int> x(100);
  std::iota(x.begin(), x.end(), 0);
  on_host::launch({1, 100, 400}, [&] { reversed(x.data()); });
  for (int i = 0; i < 100; ++i) CHECK(x[static_cast<size_t>(i)] == 99 - i);
  bool is_nan = true;
  on_host::launch({1, 1, 16}, [&] {
    RG_DYNAMIC_SHARED(float, memory);
    is_nan = std::isnan(memory[3]);
  });
  CHECK(is_nan);
}

TEST_CASE("a barrier that not every thread reaches is an error, not a hang") {
  const auto diverged = [] {
    if (threadIdx.x == 0)
      __syncthreads();
    else
      __syncwarp();
  };
  CHECK_THROWS_WITH(on_host::launch({1, 64}, diverged), Catch::Contains("not reached"));
}

TEST_CASE("a shuffle with a lane that takes no part, and a mask without the caller, are errors") {
  CHECK_THROWS_WITH(on_host::launch({1, 32},
                                    [] {
                                      if (threadIdx.x < 16) __shfl_sync(0xffffu, 1, 20);
                                    }),
                    Catch::Contains("takes no part"));
  CHECK_THROWS_WITH(on_host::launch({1, 32}, [] { __syncwarp(1u << ((threadIdx.x + 1) % 32)); }),
                    Catch::Contains("leaves it out"));
}

TEST_CASE("groups of a warp meet on their own, and votes are counted") {
  std::vector<unsigned> votes(32), values(32);
  on_host::launch({1, 32}, [&] {
    const unsigned lane = threadIdx.x, half = lane < 16 ? 0xffffu : 0xffff0000u;
    votes[lane] = __ballot_sync(~0u, lane % 3 == 0);
    values[lane] = __shfl_down_sync(half, lane, 1, 16);
  });
  CHECK(votes[5] == 0x49249249u);
  CHECK(values[3] == 4);
  CHECK(values[15] == 15);
  CHECK(values[16] == 17);
}

TEST_CASE("what a thread throws reaches the caller, and the next launch works") {
  CHECK_THROWS_AS(on_host::launch({2, 64},
                                  [] {
                                    if (threadIdx.x == 40) throw std::out_of_range("x");
                                    __syncthreads();
                                  }),
                  std::out_of_range);
  int runs = 0;
  on_host::launch({3, 7}, [&] { atomicAdd(&runs, 1); });
  CHECK(runs == 21);
}

TEST_CASE("blocks have up to 1024 threads") {
  CHECK_THROWS_AS(on_host::launch({1, 1025}, [] {}), std::invalid_argument);
  CHECK_THROWS_AS(on_host::launch({1, 0}, [] {}), std::invalid_argument);
}

TEST_CASE("a grid and its shared memory are what a device takes") {
  CHECK_THROWS_AS(on_host::launch({0, 32}, [] {}), std::invalid_argument);
  CHECK_THROWS_AS(on_host::launch({dim3(1, 0), 32}, [] {}), std::invalid_argument);
  CHECK_THROWS_AS(on_host::launch({dim3(1, 65536), 32}, [] {}), std::invalid_argument);
  CHECK_THROWS_AS(on_host::launch({1, 32, (99 << 10) + 1}, [] {}), std::invalid_argument);
  on_host::launch({1, 32, 99 << 10}, [] {});
}

TEST_CASE("a gate is open while a kernel runs") {
  struct : on_host::Gate {
    int opened = 0, closed = 0;
    void open() override { ++opened; }
    void close() override { ++closed; }
  } static gate;
  on_host::set_gate(gate);
  on_host::launch({1, 1}, [] { CHECK(gate.opened == gate.closed + 1); });
  CHECK(gate.closed == 1);
}

TEST_CASE("threads and blocks are numbered in three dims") {
  std::vector<int> seen(2 * 3 * 4 * 5);
  on_host::launch({dim3(2, 3), dim3(4, 5)},
                  [&] { ++seen[((blockIdx.y * 2 + blockIdx.x) * 5 + threadIdx.y) * 4 + threadIdx.x]; });
  CHECK(seen == std::vector<int>(seen.size(), 1));
}
