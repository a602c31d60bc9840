// Philox, the distributions made from it, and generators.
//
// Not tested here: randomness as such (Philox passes BigCrush; only the first moments, the neighbour correlation and a
// coarse histogram of each distribution are checked), random ops on tensors, and equal bits across platforms. The known
// answers are those of Random123's kat_vectors.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "engine/philox.h"
#include "engine/random.h"

using namespace retrograd;

namespace {

using Words = std::array<uint32_t, 4>;

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0, neighbour_correlation = 0;
};

Moments moments(const std::vector<double>& x) {
  Moments m;
  const auto n = static_cast<double>(x.size());
  for (const double v : x) m.mean += v / n;
  for (const double v : x) m.variance += (v - m.mean) * (v - m.mean) / n;
  const double sigma = std::sqrt(m.variance);
  for (size_t i = 0; i < x.size(); ++i) {
    const double z = (x[i] - m.mean) / sigma;
    m.skewness += z * z * z / n;
    m.kurtosis += z * z * z * z / n;
    m.neighbour_correlation += z * (x[(i + 1) % x.size()] - m.mean) / sigma / n;
  }
  return m;
}

std::vector<double> draw(const std::function<double(uint64_t)>& element, uint64_t count = 1 << 18) {
  std::vector<double> values;
  for (uint64_t i = 0; i < count; ++i) values.push_back(element(i));
  return values;
}

// The bounds are five standard errors for 2^18 samples, rounded up.
void check_uniform(const std::vector<double>& x) {
  const Moments m = moments(x);
  CHECK(m.mean == Approx(0.5).margin(0.003));
  CHECK(m.variance == Approx(1.0 / 12).margin(0.001));
  CHECK(std::abs(m.neighbour_correlation) < 0.01);
  CHECK(*std::min_element(x.begin(), x.end()) >= 0.0);
  CHECK(*std::max_element(x.begin(), x.end()) < 1.0);
  std::array<int, 16> histogram{};
  for (const double v : x) ++histogram.at(static_cast<size_t>(v * 16));
  for (const int count : histogram) CHECK(std::abs(count - (1 << 14)) < 650);
}

void check_normal(const std::vector<double>& x) {
  const Moments m = moments(x);
  CHECK(m.mean == Approx(0.0).margin(0.01));
  CHECK(m.variance == Approx(1.0).margin(0.014));
  CHECK(m.skewness == Approx(0.0).margin(0.025));
  CHECK(m.kurtosis == Approx(3.0).margin(0.05));
  CHECK(std::abs(m.neighbour_correlation) < 0.01);
  const auto beyond_two = std::count_if(x.begin(), x.end(), [](double v) { return std::abs(v) > 2; });
  CHECK(static_cast<double>(beyond_two) / static_cast<double>(x.size()) == Approx(0.0455).margin(0.0021));
  CHECK(std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); }));
}

}  // namespace

TEST_CASE("philox: known answers of the reference implementation", "[random]") {
  static_assert(philox(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr uint64_t ones = ~uint64_t{0};
  CHECK(philox(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(ones, ones, ones) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("philox: uniforms from extreme bits stay in [0, 1)", "[random]") {
  static_assert(uniform_from_bits(0u) == 0.0f);
  static_assert(uniform_from_bits(~0u) == 1.0f - 0x1p-24f);
  static_assert(uniform_from_bits(0u, 0u) == 0.0);
  static_assert(uniform_from_bits(~0u, ~0u) == 1.0 - 0x1p-53);
  CHECK(uniform_from_bits(0x100u) == 0x1p-24f);
  CHECK(uniform_from_bits(0u, 0x800u) == 0x1p-53);
}

TEST_CASE("philox: distributions have their moments", "[random]") {
  check_uniform(draw([](uint64_t i) { return uniform_float(1, 2, i); }));
  check_uniform(draw([](uint64_t i) { return uniform_double(1, 2, i); }));
  check_normal(draw([](uint64_t i) { return normal_float(1, 2, i); }));
  check_normal(draw([](uint64_t i) { return normal_double(1, 2, i); }));
  // One element of many draws, and of many seeds, is as random as many elements of one.
  check_uniform(draw([](uint64_t i) { return uniform_float(1, i, 3); }));
  check_uniform(draw([](uint64_t i) { return uniform_float(i, 2, 3); }));
  check_normal(draw([](uint64_t i) { return normal_float(1, i, 1); }));
}

TEST_CASE("philox: an element has one value, in any order and for any size", "[random]") {
  for (uint64_t block = 0; block < 100; ++block) {
    const auto uniforms = uniform_float_block(7, 8, block);
    const auto normals = normal_float_block(7, 8, block);
    for (uint64_t lane = 4; lane-- > 0;) {
      CHECK(uniforms[lane] == uniform_float(7, 8, 4 * block + lane));
      CHECK(normals[lane] == normal_float(7, 8, 4 * block + lane));
    }
    const auto doubles = uniform_double_block(7, 8, block);
    const auto double_normals = normal_double_block(7, 8, block);
    for (uint64_t lane = 2; lane-- > 0;) {
      CHECK(doubles[lane] == uniform_double(7, 8, 2 * block + lane));
      CHECK(double_normals[lane] == normal_double(7, 8, 2 * block + lane));
    }
  }
}

TEST_CASE("philox: seed, offset and element all matter, high bits too", "[random]") {
  const uint64_t coordinates[] = {0, 1, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 63};
  std::set<double> values;
  for (const uint64_t seed : coordinates) {
    for (const uint64_t offset : coordinates) {
      for (const uint64_t element : coordinates) values.insert(uniform_double(seed, offset, element));
    }
  }
  CHECK(values.size() == 125);
}

TEST_CASE("random: a generator hands out offsets and can go back", "[random]") {
  Generator generator(5);
  CHECK(generator.state() == GeneratorState{5, 0});
  CHECK(generator.reserve() == GeneratorState{5, 0});
  CHECK(generator.reserve(10) == GeneratorState{5, 1});
  const GeneratorState saved = generator.state();
  CHECK(saved == GeneratorState{5, 11});
  generator.reserve(100);
  generator.set_state(saved);
  CHECK(generator.reserve() == saved);
  generator.manual_seed(6);
  CHECK(generator.state() == GeneratorState{6, 0});
}

TEST_CASE("random: the default generator is one object, seeded by manual_seed", "[random]") {
  const GeneratorState before = default_generator().state();
  manual_seed(42);
  CHECK(default_generator().reserve() == GeneratorState{42, 0});
  CHECK(default_generator().state() == GeneratorState{42, 1});
  default_generator().set_state(before);
}

TEST_CASE("random: concurrent draws never share an offset", "[random]") {
  constexpr int threads = 4, draws = 2000;
  Generator generator(1);
  std::array<std::vector<uint64_t>, threads> taken;
  {
    std::vector<std::jthread> workers;
    for (auto& mine : taken) {
      workers.emplace_back([&mine, &generator] {
        for (int i = 0; i < draws; ++i) mine.push_back(generator.reserve(2).offset);
      });
    }
  }
  std::set<uint64_t> all;
  for (const auto& mine : taken) all.insert(mine.begin(), mine.end());
  CHECK(all.size() == size_t{threads} * draws);
  CHECK(*all.rbegin() == 2 * (threads * draws - 1));
  CHECK(generator.state().offset == 2 * threads * draws);
}
