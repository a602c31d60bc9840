// Elementwise ops in eager mode: operands with few elements and equal layouts take a fast path (Runner::run_on_few),
// all others the kernel's. The result must not depend on the path: values, dtypes and row-major strides are those of
// the definition, errors those of the type rule.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;

namespace {

// 0.5, 1.5, ... in row-major order.
rg::Tensor counting(const rg::Shape& shape, rg::ScalarType dtype = rg::kFloat32) {
  return rg::arange(0, shape.numel().value()).to(dtype).reshape(shape.ints()) + 0.5;
}

void check_product(const rg::Tensor& a, const rg::Tensor& b) {
  const rg::Tensor product = a * b;
  CHECK(product.dtype() == a.dtype());
  CHECK(product.is_contiguous());
  const std::vector<double> x = a.to_vector(), y = b.to_vector(), z = product.to_vector();
  REQUIRE(z.size() == x.size());
  for (size_t i = 0; i < z.size(); ++i) CHECK(z[i] == Approx(x[i] * y[i]).epsilon(0.01));
}

}  // namespace

TEST_CASE("few elements and many, of all floating dtypes") {
  for (const rg::ScalarType dtype : {rg::kFloat64, rg::kFloat32, rg::kBFloat16, rg::kFloat16})
    for (const rg::Shape& shape :
         {rg::Shape{}, {0}, {1}, {7}, {3, 5}, {2, 0, 3}, {2048}, {2049}, {40, 50}, {41, 50}})
      check_product(counting(shape, dtype), rg::ones(shape).to(dtype) * 1.5);
}

TEST_CASE("operands that are not row-major, or not in the same way") {
  const rg::Tensor x = counting({4, 6});
  check_product(x.t(), x.t());                                            // the same strides, with gaps
  check_product(x.t(), counting({6, 4}));                                 // one of them
  check_product(counting({6, 4}), x.t());                                 // the other
  check_product(x.narrow(1, 1, 4), x.narrow(1, 2, 4));                    // gaps between rows
  check_product(x.select(0, 2), x.select(0, 1));                          // an offset
  check_product(rg::expand(counting({1, 3}), {2, 3}), counting({2, 3}));  // repeated
}

TEST_CASE("the strides of sizes of 1 are those of row-major order, whatever the operands have") {
  const rg::Tensor x = counting({1, 3}).t(), y = rg::as_strided(counting({3}), {3, 1}, {1, 7});
  for (const auto& [a, b] : {std::pair(x, x), std::pair(y, y), std::pair(x, y), std::pair(y, x)}) {
    CHECK((a * b).strides() == std::vector<int64_t>{1, 1});
    CHECK(rg::exp(a).strides() == std::vector<int64_t>{1, 1});
    check_product(a, b);
  }
}

TEST_CASE("integers, bools and numbers among the operands") {
  const rg::Tensor i = rg::arange(0, 4), f = counting({4});
  CHECK((i * i).dtype() == rg::kInt64);
  CHECK((i * i).to_vector() == std::vector<double>{0, 1, 4, 9});
  CHECK((i * f).dtype() == rg::kFloat32);
  CHECK((f * 2).to_vector() == std::vector<double>{1, 3, 5, 7});
  CHECK(rg::eq(f, f).dtype() == rg::kBool);
  CHECK(rg::lt(f, f).to_vector() == std::vector<double>{0, 0, 0, 0});
  CHECK(rg::where(rg::eq(i, 2), f, f * f).to_vector() == std::vector<double>{0.25, 2.25, 2.5, 12.25});
}

TEST_CASE("the result has memory of its own") {
  const rg::Tensor x = counting({3}), same = x * rg::ones({3});
  same.mul_(2);
  CHECK(x.to_vector() == std::vector<double>{0.5, 1.5, 2.5});
  CHECK(same.to_vector() == std::vector<double>{1, 3, 5});
}

TEST_CASE("operands that do not fit are refused as ever") {
  const rg::Tensor a = counting({3}), b = counting({4});
  CHECK(rg::category_of([&] { a* b; }) == rg::Category::shape_mismatch);
  CHECK(rg::category_of([&] { rg::sinh(rg::Tensor()); }) == rg::category_of([&] { a* rg::Tensor(); }));
}
