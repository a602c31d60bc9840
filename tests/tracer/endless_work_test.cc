// Calls whose work would never end, or take all memory, although their result is empty or short: they end immediately.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using rg::Category;

constexpr int64_t kHuge = int64_t{1} << 40;

}  // namespace

TEST_CASE("functions of 2^40 empty matrices or rows") {
  const Tensor a = rg::zeros({kHuge, 0, 0}), b = rg::zeros({kHuge, 0, 2}), rows = rg::zeros({kHuge, 0});
  for (const Tensor& y : {rg::inverse(a), rg::cholesky(a), rg::solve(a, b), rg::solve_triangular(a, b, true),
                          rg::bmm(a, a), rg::cumsum(rows, 1), rg::softmax(rows, 1), rg::exp(rows),
                          rows + rows, rg::flip(rows, {1}), rows.clone(), rg::tril(a)}) {
    CHECK(y.numel() == 0);
    CHECK(y.size(0) == kHuge);
  }
  CHECK(rg::sort(rows, 1).values.numel() == 0);
  const Tensor x = rg::zeros({kHuge, 0, 0}).requires_grad_();
  rg::sum(rg::inverse(x) + rg::cholesky(x)).backward();
  CHECK(x.grad().size(0) == kHuge);
  CHECK_THROWS_AS(rg::det(a), rg::OutOfMemory);  // a one for each
  CHECK(values(rg::det(rg::zeros({3, 0, 0}))) == std::vector<double>{1, 1, 1});
}

TEST_CASE("an empty result does not hide operands that are refused") {
  const Tensor singular = rg::zeros({2, 2});
  CHECK(category_of([&] { rg::solve(singular, rg::zeros({2, 0})); }) == Category::singular_matrix);
  const Tensor index = rg::tensor({7.0}).to(rg::kInt64);
  CHECK(category_of([&] { rg::index_select(rg::zeros({3, 0}), 0, index); }) == Category::index_out_of_range);
}

TEST_CASE("a tensor is printed by what is shown of it") {
  const int64_t before = rg::memory::stats().live_bytes;
  rg::memory::reset_peak();
  const std::string text = rg::to_string(rg::expand(rg::zeros({1}), {int64_t{1} << 28}));
  CHECK(text.size() < 200);
  CHECK(text.find("...") != std::string::npos);
  CHECK(rg::memory::stats().peak_bytes < before + (1 << 16));
  for (const rg::IntArray& sizes : {rg::IntArray{kHuge, 0}, {20'000'000, 0}, {0, kHuge}, {1 << 20, 0, 1 << 20}})
    CHECK(rg::to_string(rg::zeros(sizes)).size() < 1000);
  CHECK(rg::to_string(rg::zeros({2, 0})).find("[[],\n []]") == 0);
  const Tensor t = rg::arange(1001).to(rg::kFloat64);
  CHECK(rg::to_string(t).find("[0.0000, 1.0000, 2.0000, ..., 998.0000, 999.0000, 1000.0000]") == 0);
  CHECK(rg::to_string(rg::arange(1000)).find("...") == std::string::npos);
  CHECK(rg::to_string(rg::arange(1200).view({400, 3}))
            .find("[[0, 1, 2],\n [3, 4, 5],\n [6, 7, 8],\n ...,\n [1191, 1192, 1193]") == 0);
}

TEST_CASE("views in more parts than memory holds are refused immediately") {
  const Tensor x = rg::expand(rg::zeros({1}), {kHuge});
  CHECK(category_of([&] { rg::unbind(x); }) == Category::bad_argument);
  CHECK(category_of([&] { rg::split(x, 1); }) == Category::bad_argument);
  CHECK(category_of([&] { rg::chunk(x, kHuge); }) == Category::bad_argument);
  CHECK(rg::chunk(x, 3).size() == 3);
}
