// Fragments of tensor cores (cuda/kernels/tensor_core.cuh) on the host's stand-in: elements are where the layouts of
// CUTLASS say (here in its terms: strides of a lane's number and of an element's), not according to the formula of the
// header, which is PTX's.
#include "cuda/on_host/device_on_host.h"

#include "cuda/kernels/tensor_core.cuh"

#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

using namespace retrograd;
using namespace retrograd::cuda;
using namespace retrograd::cuda::host_code;

namespace {

// CuTe's MMA_Traits<SM80_16x8x16_...>: where element v of a lane is in a column-major matrix. A is (16, 16), B is
// turned, (8, 16), C is (16, 8).
int place_in_a(int lane, int v) {
  return lane % 4 * 32 + lane / 4 + v % 2 * 16 + v / 2 % 2 * 8 + v / 4 * 128;
}
int place_in_b(int lane, int v) { return lane % 4 * 16 + lane / 4 + v % 2 * 8 + v / 2 * 64; }
int place_in_c(int lane, int v) { return lane % 4 * 32 + lane / 4 + v % 2 * 16 + v / 2 * 8; }

// The errors found by each lane of a warp: Catch must not be used by several threads at the same time.
using Wrong = std::array<int, 32>;

std::vector<float> numbers(size_t n) {
  static std::mt19937 random_bits(3);
  std::vector<float> x(n);
  for (float& v : x) v = static_cast<float>(static_cast<int>(random_bits() % 17) - 8);
  return x;
}

template <class S>
uint32_t pair(float first, float second) {
  return S(first).bits | static_cast<uint32_t>(S(second).bits) << 16;
}

template <class S>
void check_product() {
  const std::vector<float> a = numbers(256), b = numbers(128), c = numbers(128);
  std::vector<float> found(128);
  on_host::launch({1, 32}, [&] {
    const int lane = lane_of_warp();
    Fragment left;
    uint32_t right[2];
    Sums sums;
    for (int i = 0; i < 4; ++i)
      left.part[i] = pair<S>(a[static_cast<size_t>(place_in_a(lane, 2 * i))],
                             a[static_cast<size_t>(place_in_a(lane, 2 * i + 1))]);
    for (int i = 0; i < 2; ++i)
      right[i] = pair<S>(b[static_cast<size_t>(place_in_b(lane, 2 * i))],
                         b[static_cast<size_t>(place_in_b(lane, 2 * i + 1))]);
    for (int v = 0; v < 4; ++v) sums.v[v] = c[static_cast<size_t>(place_in_c(lane, v))];
    add_product<S>(sums, left, right[0], right[1]);
    for (int v = 0; v < 4; ++v) found[static_cast<size_t>(place_in_c(lane, v))] = sums.v[v];
  });
  for (size_t m = 0; m < 16; ++m)
    for (size_t n = 0; n < 8; ++n) {
      float sum = c[m + 16 * n];
      for (size_t k = 0; k < 16; ++k) sum += a[m + 16 * k] * b[n + 8 * k];
      CHECK(found[m + 16 * n] == sum);
    }
}

}  // namespace

TEST_CASE("a product of fragments") {
  check_product<BFloat16>();
  check_product<Half>();
}

TEST_CASE("fragments from shared memory") {
  // 16 x 16, row by row; the number of an element is its place.
  std::vector<uint16_t> matrix(256);
  for (size_t i = 0; i < 256; ++i) matrix[i] = static_cast<uint16_t>(i);
  Wrong wrong{};
  on_host::launch({1, 32}, [&] {
    const int lane = lane_of_warp();
    const auto expect = [&](int found, int expected) {
      wrong[static_cast<size_t>(lane)] += found != expected;
    };
    const auto row = [&](int r, int piece) { return matrix.data() + r * 16 + piece * 8; };
    const auto element = [](const Fragment& f, int v) {
      return static_cast<int>(f.part[v / 2] >> v % 2 * 16 & 0xffff);
    };
    // A left factor, whose rows are those of the matrix; its places are m + 16 k.
    const Fragment left = load_fragment<false>(row(lane % 16, lane / 16));
    for (int v = 0; v < 8; ++v) {
      const int at = place_in_a(lane, v);
      expect(element(left, v), at % 16 * 16 + at / 16);
    }
    // Two adjacent right factors; positions in each are n + 8 k. Rows are columns of the factors, or their terms.
    const Fragment columns = load_fragment<false>(row(lane % 8 + lane / 16 * 8, lane / 8 % 2));
    const Fragment terms = load_fragment<true>(row(lane % 16, lane / 16));
    for (int v = 0; v < 8; ++v) {
      const int at = place_in_b(lane, v % 4), n = at % 8 + v / 4 * 8, k = at / 8;
      expect(element(columns, v), n * 16 + k);
      expect(element(terms, v), k * 16 + n);
    }
  });
  CHECK(wrong == Wrong{});
}

TEST_CASE("two adjacent sums are a left factor") {
  Wrong wrong{};
  on_host::launch({1, 32}, [&] {
    const int lane = lane_of_warp();
    Sums sums[2];
    for (int v = 0; v < 8; ++v) {
      const int at = place_in_c(lane, v % 4), column = at / 16 + v / 4 * 8;
      sums[v / 4].v[v % 4] = static_cast<float>(at % 16 * 16 + column);
    }
    const Fragment left = as_left<BFloat16>(sums[0], sums[1]);
    for (int v = 0; v < 8; ++v) {
      const int at = place_in_a(lane, v);
      const auto bits = static_cast<uint16_t>(left.part[v / 2] >> v % 2 * 16);
      wrong[static_cast<size_t>(lane)] += bits != BFloat16(static_cast<float>(at % 16 * 16 + at / 16)).bits;
    }
  });
  CHECK(wrong == Wrong{});
}

TEST_CASE("copies to shared memory are made as late as they may be, group by group") {
  std::vector<uint32_t> from{1, 2, 3, 4, 5, 6}, to(6, 9);
  on_host::launch({1, 1}, [&] {
    begin_copy<16>(to.data(), from.data(), 8);
    end_group();
    begin_copy<8>(to.data() + 4, from.data() + 4, 8);
    end_group();
    CHECK(to == std::vector<uint32_t>(6, 9));
    on_host::copies().wait(1);
    CHECK(to == std::vector<uint32_t>{1, 2, 0, 0, 9, 9});
    from[4] = 7;  // too early
    wait_for_copies();
    CHECK(to == std::vector<uint32_t>{1, 2, 0, 0, 7, 6});
  });
}
