// Philox4x32-10: random numbers that are a pure function of where they are needed.
//
// Philox (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011) turns a 64-bit
// key and a 128-bit counter into 128 random bits, with no state in between. The key is the seed. The upper
// half of the counter is the offset: a generator (engine/random.h) gives every draw of a tensor one of its
// own. The lower half is the index of a block, and a block serves neighbouring elements: 4 floats or 2
// doubles.
//
// So element i of a draw depends on (seed, offset, i) alone: not on threads, on the order of work, or on how
// many elements the tensor has. Kernels that walk whole blocks use the *_block functions; the others pick one
// element and give the same values. Choices by a chance take 16 bits each (is_chosen).
//
// Limits: a float uniform has 24 random bits and is a multiple of 2^-24; a float normal lies within +-6.7, a
// double one within +-8.6. Normals go through the C library's log, cos and sin: same bits on one platform
// only.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace retrograd::inline v0 {

/// 128 random bits: Philox4x32 with 10 rounds, key `seed`, counter counter_hi * 2^64 + counter_lo. Words are
/// in the order of the reference implementation (Random123), low words of seed and counter first.
constexpr std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter_lo, uint64_t counter_hi) {
  std::array<uint32_t, 4> x = {static_cast<uint32_t>(counter_lo), static_cast<uint32_t>(counter_lo >> 32),
                               static_cast<uint32_t>(counter_hi), static_cast<uint32_t>(counter_hi >> 32)};
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xd2511f53} * x[0];
    const uint64_t product1 = uint64_t{0xcd9e8d57} * x[2];
    x = {static_cast<uint32_t>(product1 >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9e3779b9;
    key1 += 0xbb67ae85;
  }
  return x;
}

/// Uniform in [0, 1) from the upper 24 bits of a word.
constexpr float uniform_from_bits(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// Uniform in [0, 1) from 53 of 64 bits.
constexpr double uniform_from_bits(uint32_t high, uint32_t low) {
  const uint64_t bits = uint64_t{high} << 32 | low;
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// Uniforms of elements 4 * block .. 4 * block + 3.
constexpr std::array<float, 4> uniform_float_block(uint64_t seed, uint64_t offset, uint64_t block) {
  const auto word = philox(seed, block, offset);
  return {uniform_from_bits(word[0]), uniform_from_bits(word[1]), uniform_from_bits(word[2]),
          uniform_from_bits(word[3])};
}

/// Uniforms of elements 2 * block and 2 * block + 1.
constexpr std::array<double, 2> uniform_double_block(uint64_t seed, uint64_t offset, uint64_t block) {
  const auto word = philox(seed, block, offset);
  return {uniform_from_bits(word[0], word[1]), uniform_from_bits(word[2], word[3])};
}

/// Standard normals of elements 4 * block .. 4 * block + 3, two Box-Muller pairs.
inline std::array<float, 4> normal_float_block(uint64_t seed, uint64_t offset, uint64_t block) {
  const auto word = philox(seed, block, offset);
  std::array<float, 4> result;
  for (size_t pair = 0; pair < 4; pair += 2) {
    // In (0, 1]; all 32 bits are used, since the smallest value bounds the tail.
    const float u = (static_cast<float>(word[pair]) + 1.0f) * 0x1p-32f;
    const float radius = std::sqrt(-2.0f * std::log(u));
    const float angle = 2.0f * std::numbers::pi_v<float> * uniform_from_bits(word[pair + 1]);
    result[pair] = radius * std::cos(angle);
    result[pair + 1] = radius * std::sin(angle);
  }
  return result;
}

/// Standard normals of elements 2 * block and 2 * block + 1, one Box-Muller pair.
inline std::array<double, 2> normal_double_block(uint64_t seed, uint64_t offset, uint64_t block) {
  const auto uniform = uniform_double_block(seed, offset, block);
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform[0]));
  const double angle = 2.0 * std::numbers::pi * uniform[1];
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// Uniform in [0, 1) of one element: a multiple of 2^-24.
constexpr float uniform_float(uint64_t seed, uint64_t offset, uint64_t element) {
  return uniform_float_block(seed, offset, element / 4)[element % 4];
}

/// Uniform in [0, 1) of one element: a multiple of 2^-53.
constexpr double uniform_double(uint64_t seed, uint64_t offset, uint64_t element) {
  return uniform_double_block(seed, offset, element / 2)[element % 2];
}

/// Standard normal of one element.
inline float normal_float(uint64_t seed, uint64_t offset, uint64_t element) {
  return normal_float_block(seed, offset, element / 4)[element % 4];
}

/// Standard normal of one element.
inline double normal_double(uint64_t seed, uint64_t offset, uint64_t element) {
  return normal_double_block(seed, offset, element / 2)[element % 2];
}

/// A probability as 16 bits, and 32 more where these do not decide a choice.
struct Chance {
  uint32_t high, low;  // high up to 2^16
};

/// p rounded up to a multiple of 2^-48.
constexpr Chance chance_of(double p) {
  const double scaled = p * 0x1p48;
  const auto floor = static_cast<uint64_t>(scaled);
  const uint64_t bits = floor + (static_cast<double>(floor) < scaled);
  return {static_cast<uint32_t>(bits >> 32), static_cast<uint32_t>(bits)};
}

/// True with that probability. Elements 8 * block .. 8 * block + 7 share a block, lower halves of words first. One
/// element in 2^16 needs a further word, from a block with a higher number than all of these.
constexpr bool is_chosen(uint64_t seed, uint64_t offset, uint64_t element, Chance chance) {
  const uint32_t word = philox(seed, element / 8, offset)[element / 2 % 4];
  const uint32_t bits = element % 2 ? word >> 16 : word & 0xffff;
  if (bits != chance.high) return bits < chance.high;
  return philox(seed, element / 4 | uint64_t{1} << 63, offset)[element % 4] < chance.low;
}

}  // namespace retrograd
