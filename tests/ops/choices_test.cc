// Permutations and multinomial choices: their frequencies, by chi-square at fixed seeds; the same with any number of
// threads. Refused arguments: draws_test.cc.
#include <set>

#include "ops/all_ops.h"
#include "ops/views.h"
#include "retrograd/retrograd.h"
#include "tests/ops/distributions.h"

namespace retrograd {
namespace {

using namespace testing;

TEST_CASE("randperm gives permutations, all equally often") {
  manual_seed(2);
  for (int64_t n : {0, 1, 2, 1000}) {
    const std::vector<double> p = randperm(n).to_vector();
    const std::set<double> all(p.begin(), p.end());
    CHECK((static_cast<int64_t>(all.size()) == n && (n == 0 || *all.rbegin() == static_cast<double>(n - 1))));
  }
  std::vector<double> counts(24);
  for (int i = 0; i < 6000; ++i) {
    const std::vector<double> p = randperm(4).to_vector();
    size_t rank = 0;
    for (size_t a = 0; a < 4; ++a) {
      size_t smaller = 0;
      for (size_t b = a + 1; b < 4; ++b) smaller += p[b] < p[a];
      rank = rank * (4 - a) + smaller;
    }
    ++counts[rank];
  }
  CHECK(fits(counts, std::vector<double>(24, 1 / 24.0)));
  CHECK(randperm(256, {kByte}).dtype() == kByte);
  CHECK(category_of([] { randperm(257, {kByte}); }) == Category::bad_argument);
  CHECK(category_of([] { randperm(2050, {kHalf}); }) == Category::bad_argument);
  CHECK(category_of([] { randperm(-1); }) == Category::bad_argument);
  CHECK(category_of([] { randperm(2, {kBool}); }) == Category::dtype_mismatch);
}

TEST_CASE("multinomial with replacement") {
  manual_seed(7);
  const Tensor weights = tensor({1.0, 0, 3, 4, 0, 2, 0}), turned = stack({weights, flip(weights, {0})}, 1).t();
  const Tensor one = multinomial(weights, 20'000, true);
  CHECK(one.dtype() == kInt64);
  const std::vector<double> shares{0.1, 0, 0.3, 0.4, 0, 0.2, 0};
  CHECK(fits(histogram(one, 7), shares));
  const Tensor two = multinomial(turned, 20'000, true);
  CHECK(fits(histogram(select(two, 0, 0), 7), shares));
  CHECK(fits(histogram(select(two, 0, 1), 7), {shares.rbegin(), shares.rend()}));
  CHECK(select(two, 0, 0).to_vector() != one.to_vector());
  for (ScalarType dtype : kFloats) CHECK(multinomial(to(weights, dtype), 3).sizes() == IntArray{3});
  CHECK(multinomial(ones({0, 3}), 2).sizes() == IntArray{0, 2});
  CHECK(multinomial(ones({0, 1}), INT64_MAX, true).sizes() == IntArray{0, INT64_MAX});
}

TEST_CASE("multinomial without replacement draws one after the other") {
  manual_seed(9);
  const std::vector<double> w{1, 2, 3, 4};
  const Tensor rows = expand(tensor({1.0, 2, 3, 4, 0}), {30'000, 5});
  const std::vector<double> pairs = multinomial(rows, 2).to_vector();
  std::vector<double> counts(16), shares(16);
  for (size_t i = 0; i < pairs.size(); i += 2) {
    REQUIRE(pairs[i] != pairs[i + 1]);
    REQUIRE((pairs[i] < 4 && pairs[i + 1] < 4));
    ++counts[static_cast<size_t>(pairs[i] * 4 + pairs[i + 1])];
  }
  for (size_t a = 0; a < 4; ++a)
    for (size_t b = 0; b < 4; ++b)
      if (a != b) shares[a * 4 + b] = w[a] / 10 * w[b] / (10 - w[a]);
  CHECK(fits(counts, shares));
  const std::vector<double> all = multinomial(ones({50}), 50).to_vector();
  CHECK(std::set<double>(all.begin(), all.end()).size() == 50);
}

TEST_CASE("choices do not depend on threads, and repeat with the seed") {
  const int before = cpu::get_num_threads();
  std::vector<std::vector<double>> all;
  for (int threads : {1, 4}) {
    cpu::set_num_threads(threads);
    manual_seed(12);
    const Tensor weights = rand({500, 100});
    const Tensor mixed = cat({multinomial(weights, 30), multinomial(weights, 200, true)}, 1);
    all.push_back(cat({flatten(mixed), randperm(10'000)}).to_vector());
  }
  cpu::set_num_threads(before);
  CHECK(all[0] == all[1]);
}

}  // namespace
}  // namespace retrograd
