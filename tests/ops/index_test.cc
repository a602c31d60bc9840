// Ops that read and write at positions held by a tensor: values, derivatives, duplicates, errors.
// Not tested here: writing through an index in place (tests/engine/inplace_test.cc), results against PyTorch
// (tests/conformance).
#include "ops/index_ops.h"

#include <limits>

#include "cpu/parallel.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/embedding.h"
#include "ops/indexing.h"
#include "ops/sort.h"
#include "ops/views.h"
#include "tests/errors.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using indexing::Ellipsis;
using indexing::None;
using testing::gradcheck;
using testing::input;
using Range = indexing::Slice;

Tensor count(const Shape& shape, ScalarType dtype = kFloat64) {
  return to(reshape_to(arange(0, shape.numel().value()), shape), dtype);
}

Tensor ints(const std::vector<double>& v, const Shape& shape) { return tensor(v, shape, {kInt64}); }
Tensor ints(const std::vector<double>& v) { return ints(v, {static_cast<int64_t>(v.size())}); }
Tensor mask(const std::vector<double>& v, const Shape& shape) { return tensor(v, shape, {kBool}); }

std::vector<double> values(const Tensor& t) { return t.to_vector(); }

TEST_CASE("gather and scatter") {
  const Tensor x = count({2, 3});
  const Tensor i = ints({2, 0, 1, 1}, {2, 2});
  CHECK(values(gather(x, 1, i)) == std::vector<double>{2, 0, 4, 4});
  CHECK(values(gather(permute(count({3, 2}), {1, 0}), 1, i)) == std::vector<double>{4, 0, 3, 3});
  CHECK(values(gather(x, 0, ints({1, 0, 1}, {1, 3}))) == std::vector<double>{3, 1, 5});
  CHECK(values(scatter(x, 1, i, count({2, 2}))) == std::vector<double>{1, 1, 0, 3, 3, 5});
  CHECK(values(scatter(x, 1, i, -1)) == std::vector<double>{-1, 1, -1, 3, -1, 5});
  CHECK(values(scatter_add(x, 1, i, ones({2, 3}, {kFloat64}))) == std::vector<double>{1, 1, 3, 3, 6, 5});
  CHECK(gather(x, 1, ints({}, {2, 0})).sizes() == IntArray{2, 0});
  CHECK(values(gather(scalar_tensor(3.0), 0, ints({0, 0}))) == std::vector<double>{3, 3});
}

TEST_CASE("lines that lie side by side are as each on its own") {
  for (const Shape& shape : {Shape{70, 37}, Shape{3, 50, 20}, Shape{5, 9, 16}, Shape{2, 300, 1}}) {
    const int d = shape.rank() - 2;
    const Tensor x = count(shape, kFloat32), src = count(shape, kFloat32) + 0.5;
    const Tensor index = remainder(count(shape, kInt64) * 7919, shape[d].raw());
    const auto turned = [&](const Tensor& t) { return contiguous(transpose(t, -2, -1)); };
    const auto back = [](const Tensor& t) { return values(transpose(t, -2, -1)); };
    CHECK(values(gather(x, d, index)) == back(gather(turned(x), -1, turned(index))));
    CHECK(values(scatter_add(x, d, index, src)) ==
          back(scatter_add(turned(x), -1, turned(index), turned(src))));
    CHECK(values(scatter(x, d, index, src)) == back(scatter(turned(x), -1, turned(index), turned(src))));
    CHECK(values(scatter(x, d, index, -1)) == back(scatter(turned(x), -1, turned(index), -1)));
  }
}

TEST_CASE("short lines are sorted, equal ones in order, for lengths around a register") {
  for (int64_t n : {1, 2, 7, 8, 31, 32, 33, 100, 159, 160, 161, 300})
    for (ScalarType dtype : {kFloat32, kInt32, kFloat64})
      for (bool descending : {false, true}) {
        const Tensor x = to(remainder(count({3, n}) * 7919, 13) - 6, dtype);
        const ValuesAndIndices all = sort(x, -1, descending);
        const std::vector<double> from = values(x), found = values(all.values), places = values(all.indices);
        for (size_t i = 0; i + 1 < found.size(); ++i) {
          const auto line = i / static_cast<size_t>(n) * static_cast<size_t>(n);
          REQUIRE(found[i] == from[line + static_cast<size_t>(places[i])]);
          if ((i + 1) % static_cast<size_t>(n) == 0) continue;
          REQUIRE((descending ? found[i] > found[i + 1] : found[i] < found[i + 1]) +
                      (found[i] == found[i + 1]) ==
                  1);
          if (found[i] == found[i + 1]) REQUIRE(places[i] < places[i + 1]);
        }
        const int64_t k = (n + 1) / 2;
        CHECK(values(topk(x, k, -1, descending).values) == values(narrow(all.values, 1, 0, k)));
      }
}

TEST_CASE("whole entries") {
  const Tensor x = count({3, 2});
  CHECK(values(index_select(x, 0, ints({2, 0, 2}))) == std::vector<double>{4, 5, 0, 1, 4, 5});
  CHECK(values(index_select(x, 1, ints({1}))) == std::vector<double>{1, 3, 5});
  CHECK(values(index_add(x, 0, ints({1, 1}), ones({2, 2}, {kFloat64}), 2)) ==
        std::vector<double>{0, 1, 6, 7, 4, 5});
  CHECK(values(index_copy(x, 1, ints({1}), ones({3, 1}, {kFloat64}))) ==
        std::vector<double>{0, 1, 2, 1, 4, 1});
  CHECK(values(take(x, ints({-1, 0}))) == std::vector<double>{5, 0});
  CHECK(values(take_along_dim(x, ints({2, 1}, {1, 2}), 0)) == std::vector<double>{4, 3});
  CHECK(values(take_along_dim(x, ints({5}))) == std::vector<double>{5});
}

TEST_CASE("additions at one entry do not depend on threads, and small formats are rounded once") {
  const int64_t n = 5000, width = 40;
  std::vector<double> rows;
  for (int64_t i = 0; i < n; ++i) rows.push_back(static_cast<double>(i * 7 % 11));
  const Tensor index = ints(rows), source = to(input({n, width}).detach(), kFloat32),
               zero = zeros({11, width});
  const int before = cpu::get_num_threads();
  cpu::set_num_threads(1);
  const std::vector<double> alone = values(index_add(zero, 0, index, source));
  cpu::set_num_threads(2);
  CHECK(values(index_add(zero, 0, index, source)) == alone);
  cpu::set_num_threads(before);
  const Tensor sum =
      index_add(tensor({256}, {1}, {kBFloat16}), 0, ints({0, 0, 0, 0}), ones({4}, {kBFloat16}));
  CHECK(values(sum) == std::vector<double>{260});
}

TEST_CASE("additions to small formats in the middle of a tensor") {
  const Tensor index = ints({1, 0, 1}), x = to(input({2, 4, 3}).detach(), kBFloat16),
               source = to(input({2, 3, 3}, -1, 1, 2).detach(), kBFloat16);
  const auto add = [&](ScalarType dtype) {
    return values(to(index_add(to(x, dtype), 1, index, to(source, dtype)), kBFloat16));
  };
  CHECK(add(kBFloat16) == add(kFloat32));
  const auto gradient = [&](ScalarType dtype) {
    const Tensor leaf = to(x, dtype).requires_grad_();
    return values(
        to(autograd::grad({index_select(leaf, 1, index)}, {leaf}, {to(source, dtype)})[0], kBFloat16));
  };
  CHECK(gradient(kBFloat16) == gradient(kFloat32));
}

TEST_CASE("masks") {
  const Tensor x = count({2, 3}), m = mask({1, 0, 1}, {3});
  CHECK(values(masked_fill(x, m, 9)) == std::vector<double>{9, 1, 9, 9, 4, 9});
  CHECK(values(masked_fill(x, m, scalar_tensor(2.5, {kFloat64}))) ==
        std::vector<double>{2.5, 1, 2.5, 2.5, 4, 2.5});
  CHECK(values(masked_select(x, m)) == std::vector<double>{0, 2, 3, 5});
  CHECK(values(masked_scatter(x, m, count({5}))) == std::vector<double>{0, 1, 1, 2, 4, 3});
  CHECK(values(nonzero(x)) == std::vector<double>{0, 1, 0, 2, 1, 0, 1, 1, 1, 2});
  CHECK(nonzero(scalar_tensor(1.0)).sizes() == IntArray{1, 0});
}

TEST_CASE("Python's indexing") {
  const Tensor x = count({2, 3, 4});
  CHECK(values(getitem(x, {int64_t{1}, int64_t{-1}})) == std::vector<double>{20, 21, 22, 23});
  CHECK(getitem(x, {Ellipsis, None, int64_t{0}}).sizes() == IntArray{2, 3, 1});
  CHECK(values(getitem(x, {int64_t{0}, Range{1, {}}, Range{{}, {}, 3}})) == std::vector<double>{4, 7, 8, 11});
  const Tensor i = ints({1, 0}), j = ints({0, 2});
  CHECK(values(getitem(x, {i, j, int64_t{0}})) == std::vector<double>{12, 8});
  CHECK(getitem(x, {i, Range{}, j}).sizes() == IntArray{2, 3});
  CHECK(values(getitem(x, {i, Range{}, j})) == std::vector<double>{12, 16, 20, 2, 6, 10});
  CHECK(getitem(x, {Range{}, ints({0, 1, 2, 0}, {2, 2})}).sizes() == IntArray{2, 2, 2, 4});
  CHECK(values(getitem(x, {Ellipsis, ints({-1})})) == std::vector<double>{3, 7, 11, 15, 19, 23});
  CHECK(values(getitem(x, {mask({1, 0, 0, 0, 0, 1}, {2, 3}), Range{0, 1}})) == std::vector<double>{0, 20});
  CHECK(getitem(x, {Range{}}).impl().storage() == x.impl().storage());
  CHECK(!getitem(x, {Range{}}).is_same(x));
}

TEST_CASE("index_put") {
  const Tensor x = zeros({2, 3}, {kFloat64});
  CHECK(values(index_put(x, {ints({0, 1}), ints({1, 1})}, tensor({5, 6}, {2}, {kFloat64}))) ==
        std::vector<double>{0, 5, 0, 0, 6, 0});
  CHECK(values(index_put(x, {Tensor(), ints({2, 2})}, ones({2}, {kFloat64}), true)) ==
        std::vector<double>{0, 0, 2, 0, 0, 2});
  CHECK(values(index_put(x, {mask({0, 1}, {2})}, scalar_tensor(3.0, {kFloat64}))) ==
        std::vector<double>{0, 0, 0, 3, 3, 3});
  // Indexed dims that are not side by side.
  const Tensor y = index_put(zeros({2, 2, 2}, {kFloat64}), {ints({1}), Tensor(), ints({0})},
                             tensor({7, 8}, {1, 2}, {kFloat64}));
  CHECK(values(y) == std::vector<double>{0, 0, 0, 0, 7, 0, 8, 0});
}

TEST_CASE("order") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ValuesAndIndices s = sort(tensor({3, 1, 2, 1}, {4}, {kFloat64}));
  CHECK(values(s.values) == std::vector<double>{1, 1, 2, 3});
  CHECK(values(s.indices) == std::vector<double>{1, 3, 2, 0});
  CHECK(values(sort(tensor({3.0, 1, 2, 1}), -1, true).indices) == std::vector<double>{0, 2, 1, 3});
  CHECK(values(argsort(tensor({2, nan, -1}))) == std::vector<double>{2, 0, 1});
  CHECK(values(argsort(tensor({2, nan, -1}), 0, true)) == std::vector<double>{1, 0, 2});
  const ValuesAndIndices k = topk(count({2, 3}), 1, 0);
  CHECK(values(k.values) == std::vector<double>{3, 4, 5});
  CHECK(values(topk(count({5}), 2, 0, false).indices) == std::vector<double>{0, 1});
  CHECK(sort(scalar_tensor(1.0)).values.sizes().empty());
}

TEST_CASE("embedding and one_hot") {
  const Tensor w = count({3, 2}), i = ints({2, 0, 2}, {3, 1});
  CHECK(embedding(w, i).sizes() == IntArray{3, 1, 2});
  CHECK(values(embedding(w, i)) == std::vector<double>{4, 5, 0, 1, 4, 5});
  const Tensor leaf = input({3, 2});
  const Tensor g = ones({3, 1, 2}, {kFloat64});
  CHECK(values(autograd::grad({embedding(leaf, i)}, {leaf}, {g})[0]) ==
        std::vector<double>{1, 1, 0, 0, 2, 2});
  CHECK(values(autograd::grad({embedding(leaf, i, 2)}, {leaf}, {g})[0]) ==
        std::vector<double>{1, 1, 0, 0, 0, 0});
  CHECK(values(autograd::grad({embedding(leaf, i, {}, true)}, {leaf}, {g})[0]) ==
        std::vector<double>{1, 1, 0, 0, 1, 1});
  CHECK(values(one_hot(ints({1, 0}))) == std::vector<double>{0, 1, 1, 0});
  CHECK(one_hot(ints({1, 0}), 4).sizes() == IntArray{2, 4});
}

TEST_CASE("derivatives") {
  const Tensors x{input({3, 4})};
  const Tensor rows = ints({2, 0, 2}), places = ints({0, 3, 1, 1, 2, 0}, {3, 2});
  const auto squared = [](const Tensor& y) { return mul(y, y); };
  gradcheck([&](const Tensors& in) { return squared(gather(in[0], 1, places)); }, x);
  gradcheck([&](const Tensors& in) { return squared(index_select(in[0], 0, rows)); }, x);
  gradcheck([&](const Tensors& in) { return squared(take(in[0], ints({5, 5, -1}))); }, x);
  gradcheck([&](const Tensors& in) { return squared(getitem(in[0], {rows, ints({1, 1, 3})})); }, x);
  gradcheck([&](const Tensors& in) { return squared(masked_select(in[0], mask({1, 0, 1, 0}, {4}))); }, x);
  gradcheck([&](const Tensors& in) { return squared(sort(in[0], 0).values); }, x);
  gradcheck([&](const Tensors& in) { return squared(topk(in[0], 2).values); }, x);
  gradcheck([&](const Tensors& in) { return squared(embedding(in[0], rows)); }, x);
  gradcheck([&](const Tensors& in) { return squared(scatter(in[0], 1, ints({0, 3}, {1, 2}), 2.0)); }, x);
  const Tensors two{input({3, 4}), input({3, 4}, -1, 1, 2)};
  gradcheck(
      [&](const Tensors& in) {
        return squared(scatter(in[0], 1, ints({0, 3, 1, 2, 2, 0}, {3, 2}), in[1]));
      },
      two);
  gradcheck([&](const Tensors& in) { return squared(scatter_add(in[0], 1, places, in[1])); }, two);
  gradcheck([&](const Tensors& in) { return squared(index_add(in[0], 0, rows, in[1], 2)); }, two);
  gradcheck([&](const Tensors& in) { return squared(index_copy(in[0], 0, ints({2, 0, 1}), in[1])); }, two);
  gradcheck(
      [&](const Tensors& in) {
        return squared(masked_scatter(in[0], mask({1, 0, 1, 0}, {4}), in[1]));
      },
      two);
  gradcheck(
      [&](const Tensors& in) {
        return squared(masked_fill(in[0], mask({1, 0, 1, 0}, {4}), sum(in[1])));
      },
      two);
  gradcheck(
      [&](const Tensors& in) {
        return squared(index_put(in[0], {Tensor(), ints({1, 1, 2, 0})}, in[1], true));
      },
      two);
}

TEST_CASE("indexing refuses") {
  const Tensor x = count({3, 2}), far = ints({0, 3});
  CHECK(category_of([&] { index_select(x, 0, far); }) == Category::index_out_of_range);
  CHECK(category_of([&] { index_select(x, 0, ints({-1})); }) == Category::index_out_of_range);
  CHECK(category_of([&] { gather(x, 1, ints({2}, {1, 1})); }) == Category::index_out_of_range);
  CHECK(category_of([&] { gather(x, 0, ints({0})); }) == Category::bad_dim);
  CHECK(category_of([&] { gather(x, 1, zeros({4, 1}, {kInt64})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { gather(x, 1, zeros({1, 1})); }) == Category::dtype_mismatch);
  CHECK(category_of([&] {
          scatter(x, 0, zeros({2, 2}, {kInt64}), zeros({1, 2}, {kFloat64}));
        }) == Category::shape_mismatch);
  CHECK(category_of([&] { index_add(x, 0, ints({0}), zeros({1, 2})); }) == Category::dtype_mismatch);
  CHECK(category_of([&] {
          index_copy(x, 0, ints({0}), zeros({2, 2}, {kFloat64}));
        }) == Category::shape_mismatch);
  CHECK(category_of([&] { getitem(x, {int64_t{0}, int64_t{0}, int64_t{0}}); }) == Category::bad_dim);
  CHECK(category_of([&] { getitem(x, {Ellipsis, ints({0}), Ellipsis}); }) == Category::bad_argument);
  CHECK(category_of([&] { getitem(x, {far}); }) == Category::index_out_of_range);
  CHECK(category_of([&] { getitem(x, {ints({0, 1}), ints({0, 1, 0})}); }) == Category::shape_mismatch);
  CHECK(category_of([&] { getitem(x, {mask({1, 0}, {2})}); }) == Category::shape_mismatch);
  CHECK(category_of([&] { masked_fill(x, zeros({2}, {kInt64}), 1); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { topk(x, 3); }) == Category::index_out_of_range);
  CHECK(category_of([&] { embedding(x, far); }) == Category::index_out_of_range);
  CHECK(category_of([&] { embedding(x, ints({0}), 8); }) == Category::bad_argument);
  CHECK(category_of([&] { one_hot(ints({3}), 3); }) == Category::index_out_of_range);
  CHECK(category_of([&] { take(x, ints({6})); }) == Category::index_out_of_range);
}

}  // namespace
}  // namespace retrograd
