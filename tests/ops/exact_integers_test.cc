// Integers beyond 2^53, which a double cannot represent: made, read, printed, saved and computed with, eagerly and
// compiled, none is rounded.
//
// The test covers everything that takes or gives integers. Functions that compute in floating numbers by definition
// (mean, var, true division) are excluded.
#include <catch2/catch.hpp>

#include <sstream>

#include "retrograd/retrograd.h"
#include "tests/test_folder.h"

namespace rg = retrograd;
using rg::kInt64;
using rg::Tensor;

namespace {

constexpr int64_t k53 = int64_t{1} << 53, kOdd = k53 + 1, kLargest = std::numeric_limits<int64_t>::max(),
                  kSmallest = std::numeric_limits<int64_t>::min();
using Ints = std::vector<int64_t>;

Tensor ints(const Ints& values) {
  return rg::tensor(values, {static_cast<int64_t>(values.size())}, {kInt64});
}

const Ints kValues = {kOdd, -kOdd, kLargest, kSmallest, kLargest - 1, 0, 7};

TEST_CASE("What a tensor of integers is made of comes back") {
  CHECK(ints(kValues).to_vector<int64_t>() == kValues);
  for (const int64_t v : kValues) {
    CAPTURE(v);
    CHECK(rg::full({1}, v, {kInt64}).item<int64_t>() == v);
    CHECK(rg::scalar_tensor(v, {kInt64}).item<int64_t>() == v);
    CHECK(rg::zeros({2}, {kInt64}).fill_(v).to_vector<int64_t>() == Ints{v, v});
    CHECK(rg::full_like(ints({1}), v).to_vector<int64_t>() == Ints{v});
    CHECK(ints({v}).item().to_int() == v);
    CHECK(rg::to_string(rg::Scalar(v)) == std::to_string(v));
  }
  CHECK(rg::arange(kOdd, kOdd + 3).to_vector<int64_t>() == Ints{kOdd, kOdd + 1, kOdd + 2});
}

TEST_CASE("to_vector converts to the type that is asked for") {
  const Tensor x = rg::tensor({-1.5, 0, 2.5, NAN}, {rg::kFloat64});
  CHECK(x.to_vector<int64_t>() == Ints{-1, 0, 2, kSmallest});
  CHECK(x.to_vector<bool>() == std::vector<bool>{true, false, true, true});
  CHECK(x.to_vector<float>()[2] == 2.5F);
  CHECK(ints({kOdd}).to_vector() == std::vector<double>{static_cast<double>(k53)});
  CHECK(ints({3, 0}).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK(ints({3, -4}).to_vector<int32_t>() == std::vector<int32_t>{3, -4});
}

TEST_CASE("Printing has every digit") {
  std::ostringstream out;
  out << ints({kOdd, kSmallest});
  CHECK(out.str().starts_with("[9007199254740993, -9223372036854775808]"));
  CHECK(rg::to_string(rg::tensor({1, 0}, {rg::kBool})).starts_with("[true, false]"));
  CHECK(rg::to_string(rg::tensor({255, 0}, {rg::kUInt8})).starts_with("[255, 0]"));
  CHECK(rg::to_string(rg::tensor({1.5}, {rg::kFloat32})).starts_with("[1.5000]"));
}

TEST_CASE("A file has every digit") {
  const std::string path = rg::testing::in_test_folder("ints.safetensors");
  rg::save({{"x", ints(kValues)}}, path);
  CHECK(rg::load(path).at("x").to_vector<int64_t>() == kValues);
}

struct Row {
  const char* name;
  Tensor (*f)(const Tensor&);
  Ints in, out;
};

// clang-format off
const Row kRows[] = {
    {"add a number", [](const Tensor& x) { return x + kOdd; }, {1, -1}, {kOdd + 1, k53}},
    {"add, alpha", [](const Tensor& x) { return rg::add(x, x, kOdd); }, {3}, {3 + 3 * kOdd}},
    {"sub from a number", [](const Tensor& x) { return kLargest - x; }, {1}, {kLargest - 1}},
    {"mul", [](const Tensor& x) { return x * kOdd; }, {3}, {3 * kOdd}},
    {"neg", [](const Tensor& x) { return -x; }, {kOdd}, {-kOdd}},
    {"abs", [](const Tensor& x) { return rg::abs(x); }, {-kOdd}, {kOdd}},
    {"floor division", [](const Tensor& x) { return rg::div(x, int64_t{1}, "floor"); }, {kOdd}, {kOdd}},
    {"truncating division", [](const Tensor& x) { return rg::div(x, int64_t{-1}, "trunc"); }, {kOdd}, {-kOdd}},
    {"remainder", [](const Tensor& x) { return rg::remainder(x, kOdd); }, {kOdd + 5, kOdd}, {5, 0}},
    {"fmod", [](const Tensor& x) { return rg::fmod(x, kOdd); }, {-kOdd - 5}, {-5}},
    {"pow", [](const Tensor& x) { return rg::pow(x, 2); }, {94906267}, {int64_t{94906267} * 94906267}},
    {"square", [](const Tensor& x) { return rg::square(x); }, {94906267}, {int64_t{94906267} * 94906267}},
    {"maximum", [](const Tensor& x) { return rg::maximum(x, rg::full({1}, k53, {kInt64})); }, {kOdd, 0}, {kOdd, k53}},
    {"minimum with a number", [](const Tensor& x) { return rg::minimum(x, kOdd); }, {kOdd + 1, k53}, {kOdd, k53}},
    {"clamp", [](const Tensor& x) { return rg::clamp(x, rg::Operand(kOdd), rg::Operand(kOdd + 2)); }, {0, kLargest}, {kOdd, kOdd + 2}},
    {"eq", [](const Tensor& x) { return rg::eq(x, kOdd).to(kInt64); }, {k53, kOdd}, {0, 1}},
    {"gt", [](const Tensor& x) { return rg::gt(x, k53).to(kInt64); }, {k53, kOdd}, {0, 1}},
    {"where", [](const Tensor& x) { return rg::where(rg::gt(x, 0), kOdd, x); }, {1, -kOdd}, {kOdd, -kOdd}},
    {"masked_fill", [](const Tensor& x) { return rg::masked_fill(x, rg::gt(x, 0), kOdd); }, {1, 0}, {kOdd, 0}},
    {"addcmul", [](const Tensor& x) { return rg::addcmul(x, x, x, kOdd); }, {2}, {2 + 4 * kOdd}},
    {"sum", [](const Tensor& x) { return rg::sum(x); }, {kOdd, kOdd, -k53}, {kOdd + 1}},
    {"prod", [](const Tensor& x) { return rg::prod(x); }, {kOdd, 3}, {3 * kOdd}},
    {"amax", [](const Tensor& x) { return rg::amax(x); }, {k53, kOdd}, {kOdd}},
    {"min along a dim", [](const Tensor& x) { return rg::min(x, 0).values; }, {kOdd + 1, kOdd}, {kOdd}},
    {"argmax", [](const Tensor& x) { return rg::argmax(x); }, {k53, kOdd}, {1}},
    {"cumsum", [](const Tensor& x) { return rg::cumsum(x, 0); }, {kOdd, 1}, {kOdd, kOdd + 1}},
    {"cumprod", [](const Tensor& x) { return rg::cumprod(x, 0); }, {kOdd, 3}, {kOdd, 3 * kOdd}},
    {"sort", [](const Tensor& x) { return rg::sort(x).values; }, {kOdd, k53}, {k53, kOdd}},
    {"topk", [](const Tensor& x) { return rg::topk(x, 1).values; }, {k53, kOdd}, {kOdd}},
    {"dot", [](const Tensor& x) { return rg::dot(x, rg::ones({2}, {kInt64})); }, {kOdd, 1}, {kOdd + 1}},
    {"addmm", [](const Tensor& x) { return rg::reshape(rg::addmm(rg::reshape(x, {1, 1}), rg::ones({1, 1}, {kInt64}), rg::ones({1, 1}, {kInt64}), int64_t{1}, kOdd), {1}); }, {1}, {kOdd + 1}},
    {"gather", [](const Tensor& x) { return rg::gather(x, 0, rg::tensor({1}, {kInt64})); }, {0, kOdd}, {kOdd}},
    {"scatter a number", [](const Tensor& x) { return rg::scatter(x, 0, rg::tensor({0}, {kInt64}), kOdd); }, {1, 2}, {kOdd, 2}},
    {"index_add, alpha", [](const Tensor& x) { return rg::index_add(x, 0, rg::tensor({0}, {kInt64}), rg::ones({1}, {kInt64}), kOdd); }, {1}, {kOdd + 1}},
    {"cat", [](const Tensor& x) { return rg::cat({x, x}); }, {kOdd}, {kOdd, kOdd}},
    {"pad", [](const Tensor& x) { return rg::pad(x, {1, 0}, "constant", rg::Scalar(kOdd)); }, {1}, {kOdd, 1}},
    {"repeat_interleave", [](const Tensor& x) { return rg::repeat_interleave(x, 2); }, {kOdd}, {kOdd, kOdd}},
    {"max_pool1d", [](const Tensor& x) { return rg::reshape(rg::max_pool1d(rg::reshape(x, {1, -1}), 2), {-1}); }, {k53, kOdd}, {kOdd}},
    {"matrix trace", [](const Tensor& x) { return rg::trace(rg::reshape(x, {1, 1})); }, {kOdd}, {kOdd}},
    {"sign", [](const Tensor& x) { return rg::sign(x); }, {-kOdd}, {-1}},
    {"nan_to_num", [](const Tensor& x) { return rg::nan_to_num(x); }, {kOdd}, {kOdd}},
    {"threshold", [](const Tensor& x) { return rg::threshold(x, k53, kOdd); }, {0, kOdd + 2}, {kOdd, kOdd + 2}},
    {"relu", [](const Tensor& x) { return rg::relu(x); }, {kOdd, -kOdd}, {kOdd, 0}},
};
// clang-format on

TEST_CASE("Functions of integers compute with integers, eagerly and compiled") {
  for (const Row& row : kRows) {
    INFO(row.name);
    CHECK(rg::reshape(row.f(ints(row.in)), {-1}).to_vector<int64_t>() == row.out);
    auto compiled = rg::compile([&](const Tensor& x) { return rg::reshape(row.f(x), {-1}); });
    for (int run = 0; run < 2; ++run) CHECK(compiled(ints(row.in)).to_vector<int64_t>() == row.out);
  }
}

}  // namespace
