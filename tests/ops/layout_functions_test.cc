// Functions made of views and joins (ops/reshaping.h, ops/stacking.h) and copies with a view replaced
// (ops/view_scatter.h): what is a view, dtypes, numbers and empty tensors, errors, other sizes of a recorded function.
// Not tested here: derivatives (tests/ops/derivatives), results against PyTorch (tests/conformance).
#include "ops/reshaping.h"

#include "ops/stacking.h"
#include "ops/view_scatter.h"
#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace retrograd {
namespace {

using Values = std::vector<double>;

Tensor count(const Shape& shape, ScalarType dtype = kFloat64) {
  return to(reshape_to(arange(0, shape.numel().value()), shape), dtype);
}
Tensor vector(const Values& v, ScalarType dtype = kFloat64) {
  return tensor(v, {static_cast<int64_t>(v.size())}, {dtype});
}
bool shares_memory(const Tensor& a, const Tensor& b) { return a.impl().storage() == b.impl().storage(); }

template <class F>
void check_fails(Category category, F f) {
  CHECK(category_of(f) == category);
}

TEST_CASE("other forms of a shape are views") {
  const Tensor x = count({2, 6}), number = scalar_tensor(3.0);
  for (const Tensor& y : {ravel(x), atleast_3d(x), swapaxes(x, 0, -1), swapdims(x, 0, 1),
                          moveaxis(x, {0}, {1}), unflatten(x, 1, {2, -1}), view_as(x, count({3, 4})),
                          reshape_as(x, count({12})), expand_as(x, count({2, 2, 6})),
                          tensor_split(x, 5, 1)[4], meshgrid({select(x, 0, 0), select(x, 0, 1)})[1]})
    CHECK(shares_memory(x, y));
  CHECK_FALSE(shares_memory(x, ravel(transpose(x, 0, 1))));
  CHECK(shares_memory(x, unflatten(transpose(x, 0, 1), 0, {2, 3})));
  CHECK(ravel(transpose(count({2, 2}), 0, 1)).to_vector() == Values{0, 2, 1, 3});
  CHECK(atleast_1d(x).is_same(x));
  CHECK(atleast_2d(x).is_same(x));
  CHECK(atleast_3d(x).sizes() == IntArray{2, 6, 1});
  CHECK(atleast_3d(vector({1, 2})).sizes() == IntArray{1, 2, 1});
  CHECK(atleast_2d(vector({1, 2})).sizes() == IntArray{1, 2});
  for (const Tensor& y : {atleast_1d(number), ravel(number), atleast_2d(number), atleast_3d(number)})
    CHECK(y.numel() == 1);
  const Tensors lists[] = {atleast_1d({number, x}), atleast_2d({number, x}), atleast_3d({number, x})};
  CHECK(
      (lists[0][0].dim() == 1 && lists[1][0].dim() == 2 && lists[2][0].dim() == 3 && lists[2][1].dim() == 3));
}

TEST_CASE("unflatten infers one size, also of no elements") {
  CHECK(unflatten(count({2, 6}), -1, {-1, 2}).sizes() == IntArray{2, 3, 2});
  CHECK(unflatten(count({2, 0}), 0, {1, -1}).sizes() == IntArray{1, 2, 0});
  CHECK(unflatten(count({0}), 0, {3, 0}).sizes() == IntArray{3, 0});
  CHECK(unflatten(count({0}), 0, {3, -1}).sizes() == IntArray{3, 0});
  const Tensor x = count({2, 6});
  check_fails(Category::shape_mismatch, [&] { unflatten(x, 1, {4, 2}); });
  check_fails(Category::shape_mismatch, [&] { unflatten(x, 1, {4, -1}); });
  check_fails(Category::shape_mismatch, [&] { unflatten(count({0}), 0, {0, -1}); });
  check_fails(Category::bad_argument, [&] { unflatten(x, 1, {-1, -1}); });
  check_fails(Category::bad_argument, [&] { unflatten(x, 1, {-2, 3}); });
  check_fails(Category::bad_argument, [&] { unflatten(x, 1, {}); });
  check_fails(Category::bad_dim, [&] { unflatten(x, 2, {2, 3}); });
  check_fails(Category::bad_dim, [&] { unflatten(scalar_tensor(1.0), 0, {1, 1}); });
}

TEST_CASE("turns by any number of quarters") {
  const Tensor x = count({2, 3});
  CHECK(rot90(x).to_vector() == Values{2, 5, 1, 4, 0, 3});
  CHECK(rot90(x, 2).to_vector() == Values{5, 4, 3, 2, 1, 0});
  CHECK(rot90(x, 3).to_vector() == Values{3, 0, 4, 1, 5, 2});
  CHECK(rot90(x, -1).to_vector() == rot90(x, 3).to_vector());
  CHECK(rot90(x, INT64_MIN).to_vector() == x.to_vector());
  CHECK_FALSE(shares_memory(rot90(x, 4), x));
  CHECK(rot90(x, 1, {1, 0}).to_vector() == rot90(x, -1).to_vector());
  CHECK(fliplr(x).to_vector() == Values{2, 1, 0, 5, 4, 3});
  CHECK(flipud(x).to_vector() == Values{3, 4, 5, 0, 1, 2});
  check_fails(Category::bad_argument, [&] { rot90(x, 1, {0}); });
  check_fails(Category::bad_dim, [&] { rot90(x, 1, {1, -1}); });
  check_fails(Category::bad_dim, [&] { rot90(vector({1}), 1, {0, 1}); });
  check_fails(Category::bad_dim, [&] { fliplr(vector({1})); });
  check_fails(Category::bad_dim, [&] { flipud(scalar_tensor(1.0)); });
}

TEST_CASE("joins by rows, columns and layers promote, and lift what has too few dims") {
  const Tensor v = vector({1, 2}), w = vector({3, 4}, kInt64), number = scalar_tensor(int64_t{5}, {kInt64});
  CHECK(hstack({v, number}).to_vector() == Values{1, 2, 5});
  CHECK(hstack({v, number}).dtype() == kFloat64);
  CHECK(hstack({w, number}).dtype() == kInt64);
  CHECK(vstack({v, w}).to_vector() == Values{1, 2, 3, 4});
  CHECK(dstack({v, w}).sizes() == IntArray{1, 2, 2});
  CHECK(dstack({v, w}).to_vector() == Values{1, 3, 2, 4});
  CHECK(column_stack({v, w}).to_vector() == Values{1, 3, 2, 4});
  CHECK(column_stack({number, number}).sizes() == IntArray{1, 2});
  CHECK(column_stack({count({2, 1, 3}), count({2, 2, 3})}).sizes() == IntArray{2, 3, 3});
  for (auto* f : {hstack, vstack, dstack, column_stack, cartesian_prod})
    check_fails(Category::bad_argument, [&] { f({}, SourceLocation::current()); });
  check_fails(Category::bad_dim, [&] { hstack({v, count({2, 2})}); });
  check_fails(Category::shape_mismatch, [&] { vstack({v, count({2, 3})}); });
}

TEST_CASE("block_diag") {
  const Tensor y =
      block_diag({scalar_tensor(int64_t{7}, {kInt64}), vector({1, 2}), count({2, 0}), count({1, 1}) + 3});
  CHECK(y.sizes() == IntArray{5, 4});
  CHECK(y.dtype() == kFloat64);
  CHECK(y.to_vector() == Values{7, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3});
  CHECK(block_diag({}).sizes() == IntArray{1, 0});
  CHECK(block_diag({vector({})}).sizes() == IntArray{1, 0});
  check_fails(Category::bad_dim, [] { block_diag({count({1, 1, 1})}); });
}

TEST_CASE("grids and all combinations of vectors") {
  const Tensor a = vector({1, 2, 3}), b = vector({4, 5}), none = vector({});
  CHECK(meshgrid({a, b})[0].sizes() == IntArray{3, 2});
  CHECK(meshgrid({a, b})[1].to_vector() == Values{4, 5, 4, 5, 4, 5});
  CHECK(meshgrid({a, b}, "xy")[0].to_vector() == Values{1, 2, 3, 1, 2, 3});
  CHECK(meshgrid({a, b, vector({6})}, "xy")[2].sizes() == IntArray{2, 3, 1});
  CHECK(meshgrid({scalar_tensor(1.0, {kFloat64}), b})[0].sizes() == IntArray{1, 2});
  CHECK(meshgrid({a}, "xy")[0].sizes() == IntArray{3});
  CHECK(meshgrid({a, none})[0].sizes() == IntArray{3, 0});
  CHECK(cartesian_prod({b, vector({0, 1})}).to_vector() == Values{4, 0, 4, 1, 5, 0, 5, 1});
  CHECK(cartesian_prod({b}).is_same(b));
  CHECK(cartesian_prod({b, none}).sizes() == IntArray{0, 2});
  check_fails(Category::bad_argument, [&] { meshgrid({a}, "ji"); });
  check_fails(Category::bad_argument, [&] { meshgrid({}); });
  check_fails(Category::bad_dim, [&] { meshgrid({count({1, 1})}); });
  check_fails(Category::bad_dim, [&] { cartesian_prod({scalar_tensor(1.0), b}); });
  check_fails(Category::dtype_mismatch, [&] { meshgrid({a, vector({1}, kInt64)}); });
  check_fails(Category::dtype_mismatch, [&] { cartesian_prod({a, vector({1}, kInt64)}); });
}

std::vector<int64_t> lengths(const Tensors& parts, int64_t dim) {
  std::vector<int64_t> n;
  for (const Tensor& part : parts) n.push_back(part.size(dim));
  return n;
}

TEST_CASE("splits into sections and at indices") {
  const Tensor x = count({7, 4, 2});
  using Lengths = std::vector<int64_t>;
  CHECK(lengths(tensor_split(x, 3), 0) == Lengths{3, 2, 2});
  CHECK(lengths(tensor_split(x, 9), 0) == Lengths{1, 1, 1, 1, 1, 1, 1, 0, 0});
  CHECK(lengths(tensor_split(x, IntArray{-1, 2, -3}, 1), 1) == Lengths{3, 0, 0, 3});
  CHECK(lengths(tensor_split(x, IntArray{}, 1), 1) == Lengths{4});
  CHECK(lengths(tensor_split(x, IntArray{2, 100}), 0) == Lengths{2, 5, 0});
  CHECK(lengths(tensor_split(x, vector({2, 3}, kInt64)), 0) == Lengths{2, 1, 4});
  CHECK(lengths(tensor_split(x, scalar_tensor(int64_t{2}, {kInt32})), 0) == Lengths{4, 3});
  CHECK(lengths(hsplit(x, 2), 1) == Lengths{2, 2});
  CHECK(lengths(hsplit(count({6}), IntArray{1, 3}), 0) == Lengths{1, 2, 3});
  CHECK(lengths(vsplit(x, 7), 0) == Lengths(7, 1));
  CHECK(lengths(dsplit(x, IntArray{1}), 2) == Lengths{1, 1});
  const Tensor y = x * 1;
  tensor_split(y, 7)[1].fill_(-1);  // not refused: views as any other
  CHECK(select(y, 0, 1).to_vector() == Values(8, -1));
  for (const int64_t sections : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
    check_fails(Category::bad_argument, [&] { tensor_split(x, sections); });
    check_fails(Category::bad_argument, [&] { hsplit(x, sections); });
  }
  check_fails(Category::shape_mismatch, [&] { hsplit(x, 3); });
  check_fails(Category::bad_dim, [&] { tensor_split(x, 2, 3); });
  check_fails(Category::bad_dim, [&] { tensor_split(scalar_tensor(1.0), 1); });
  check_fails(Category::bad_dim, [&] { hsplit(scalar_tensor(1.0), 1); });
  check_fails(Category::bad_dim, [&] { vsplit(vector({1}), 1); });
  check_fails(Category::bad_dim, [&] { dsplit(count({2, 2}), IntArray{1}); });
  check_fails(Category::dtype_mismatch, [&] { tensor_split(x, vector({1})); });
  check_fails(Category::bad_dim, [&] { tensor_split(x, count({1, 1}, kInt64)); });
}

TEST_CASE("kron and vander") {
  CHECK(kron(vector({1, 2}), vector({3, 4, 5})).to_vector() == Values{3, 4, 5, 6, 8, 10});
  CHECK(kron(count({2, 1}) + 1, vector({3, 4})).to_vector() == Values{3, 4, 6, 8});
  CHECK(kron(count({2, 2}, kInt64), scalar_tensor(0.5)).dtype() == kFloat32);
  CHECK(kron(count({1, 2, 1, 2}), count({2, 1, 2, 1})).sizes() == IntArray{2, 2, 2, 2});
  check_fails(Category::unsupported, [] { kron(count({1, 1, 1, 1, 1}), count({1})); });
  CHECK(vander(vector({2, 3}), 3).to_vector() == Values{4, 2, 1, 9, 3, 1});
  CHECK(vander(vector({2, 3}), 3, true).to_vector() == Values{1, 2, 4, 1, 3, 9});
  CHECK(vander(vector({2, 0}, kInt32)).to_vector() == Values{2, 1, 0, 1});
  CHECK(vander(vector({2, 0}, kInt32)).dtype() == kInt64);
  CHECK(vander(vector({1, 0}, kBool)).dtype() == kInt64);
  CHECK(vander(vector({1}), 0).sizes() == IntArray{1, 0});
  CHECK(vander(vector({})).sizes() == IntArray{0, 0});
  CHECK(vander(vector({-1}, kBFloat16), 300).to_vector()[0] == -1);
  CHECK(vander(count({2, 1, 2}), 3).sizes() == IntArray{2, 1, 2, 3});
  check_fails(Category::bad_dim, [] { vander(scalar_tensor(1.0)); });
  check_fails(Category::bad_argument, [] { vander(vector({1}), -1); });
}

TEST_CASE("copies with a view replaced") {
  const Tensor x = count({2, 3});
  CHECK(slice_scatter(x, unsqueeze(vector({7, 8}), 1), 1, -1).to_vector() == Values{0, 1, 7, 3, 4, 8});
  CHECK(slice_scatter(x, count({2, 2}) + 7, 1, {}, {}, 2).to_vector() == Values{7, 1, 8, 9, 4, 10});
  CHECK(select_scatter(x, vector({7, 8, 9}), 0, -1).to_vector() == Values{0, 1, 2, 7, 8, 9});
  CHECK(diagonal_scatter(x, vector({7, 8}, kInt64), 1).to_vector() == Values{0, 7, 2, 3, 4, 8});
  CHECK(diagonal_scatter(x, vector({7}), -1).to_vector() == Values{0, 1, 2, 7, 4, 5});
  CHECK(as_strided_scatter(x, vector({7, 8}), {2}, {2}, 1).to_vector() == Values{0, 7, 2, 8, 4, 5});
  // By the strides of its memory, as as_strided reads it.
  CHECK(as_strided_scatter(transpose(x, 0, 1), vector({7, 8}), {2}, {1}).to_vector() ==
        Values{7, 3, 8, 4, 2, 5});
  for (const ScalarType dtype : {kFloat16, kInt32, kBool})
    CHECK(select_scatter(x, vector({0, 0}), 1, 2).to(dtype).dtype() == dtype);
  check_fails(Category::shape_mismatch, [&] { slice_scatter(x, vector({1, 2, 3})); });
  check_fails(Category::shape_mismatch, [&] { select_scatter(x, vector({1}), 0, 0); });
  check_fails(Category::shape_mismatch, [&] { diagonal_scatter(x, vector({1})); });
  check_fails(Category::shape_mismatch, [&] { as_strided_scatter(x, vector({1}), {2}, {1}); });
  check_fails(Category::bad_argument, [&] { slice_scatter(x, x, 0, {}, {}, 0); });
  check_fails(Category::index_out_of_range, [&] { select_scatter(x, vector({1, 2, 3}), 0, 2); });
  check_fails(Category::index_out_of_range, [&] { as_strided_scatter(x, vector({1, 2}), {2}, {6}); });
  check_fails(Category::overlapping_write, [&] { as_strided_scatter(x, vector({1, 2}), {2}, {0}); });
  check_fails(Category::bad_dim, [&] { diagonal_scatter(x, vector({1}), 0, 1, -1); });
}

TEST_CASE("diagonals as matrices") {
  CHECK(diag_embed(vector({1, 2})).to_vector() == Values{1, 0, 0, 2});
  CHECK(diag_embed(vector({1}), -1).to_vector() == Values{0, 0, 1, 0});
  CHECK(diag_embed(count({3, 2}), 1, 0, 2).sizes() == IntArray{3, 3, 3});
  CHECK(diagonal(diag_embed(count({3, 2}), 1, 2, 0), 1, 2, 0).to_vector() == count({3, 2}).to_vector());
  CHECK(diag_embed(vector({}), 2).sizes() == IntArray{2, 2});
  CHECK(diagflat(count({2, 1})).to_vector() == Values{0, 0, 0, 1});
  CHECK(diagflat(scalar_tensor(3.0), 1).to_vector() == Values{0, 3, 0, 0});
  check_fails(Category::bad_dim, [] { diag_embed(vector({1}), 0, 1, -1); });
  check_fails(Category::bad_dim, [] { diag_embed(vector({1}), 0, 0, 2); });
  check_fails(Category::bad_dim, [] { diag_embed(scalar_tensor(1.0)); });
  check_fails(Category::bad_argument, [] { diag_embed(vector({1}), INT64_MAX); });
}

// One recording serves several sizes.
TEST_CASE("recorded functions keep their sizes as symbols") {
  FunctionCache cache(FunctionKind::function, {.dynamic = DynamicSizes::always});
  const auto f = [](const Tensors& t) {
    const Tensor &x = t[0], &v = t[1];
    return Tensors{block_diag({x, v}),
                   vander(v),
                   kron(x, v),
                   diag_embed(v, 1),
                   unflatten(x, 1, {2, -1}),
                   cartesian_prod({v, v}),
                   slice_scatter(x, x, 0),
                   tensor_split(x, 2, 1)[1]};
  };
  for (const int64_t n : {4, 6, 8}) {
    const Tensors in = {count({n, n + 2}), count({n})}, got = cache.run(f, in), want = f(in);
    for (size_t i = 0; i < want.size(); ++i) {
      CHECK(got[i].sizes() == want[i].sizes());
      CHECK(got[i].to_vector() == want[i].to_vector());
    }
  }
  CHECK(cache.stats().captures == 1);
}

}  // namespace
}  // namespace retrograd
