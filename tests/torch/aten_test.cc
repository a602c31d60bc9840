// Names of at:: and c10:: that programs use beside torch::, and ATen's functions that the library has under other
// names. Expected values are libtorch's.
#include <retrograd/torch.h>
#include <catch2/catch.hpp>

#include <sstream>

#include "tests/errors.h"

namespace libtorch {
namespace {

using Values = std::vector<double>;

template <class T>
void scale(torch::TensorAccessor<T, 1> x, T factor) {
  for (int64_t i = 0; i < x.size(0); ++i) x[i] *= factor;
}

void check_close(const torch::Tensor& x, const Values& expected) {
  const Values values = x.to_vector();
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(expected[i]).margin(1e-6));
}

TEST_CASE("an element of a range of indices is assigned to") {
  auto x = torch::zeros({2, 3});
  for (const auto i : c10::irange(x.size(0)))
    for (const auto j : c10::irange(1, 3)) x[i][j] = i + 0.5 * j;
  CHECK(x.to_vector() == Values{0, 0.5, 1, 0, 1.5, 2});
  x.index({torch::indexing::Slice(), 0}) = torch::tensor({7., 8.});
  x[1] = x[0];
  CHECK(x.to_vector() == Values{7, 0.5, 1, 7, 0.5, 1});
  int count = 0;
  for (const auto i : c10::irange(-2)) count += 1 + i;
  for (const size_t i : c10::irange(size_t(3))) count += static_cast<int>(i);
  CHECK(count == 3);
}

TEST_CASE("a dtype selects the type of a call") {
  for (const auto dtype : {torch::kFloat, torch::kDouble}) {
    const auto x = torch::ones({3}, dtype);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale",
                               [&] { scale<scalar_t>(x.accessor<scalar_t, 1>(), scalar_t(2.5)); });
    CHECK(x.to_vector() == Values{2.5, 2.5, 2.5});
  }
  const auto size_of = [](torch::Dtype dtype) {
    return AT_DISPATCH_ALL_TYPES_AND(torch::kHalf, dtype, "size_of", [&] { return sizeof(scalar_t); });
  };
  CHECK(size_of(torch::kByte) == 1);
  CHECK(size_of(torch::kHalf) == 2);
  CHECK(size_of(torch::kInt) == 4);
  CHECK(size_of(torch::kLong) == 8);
  std::string text;
  CHECK(retrograd::category_of([&] { size_of(torch::kBool); }, &text) == retrograd::Category::dtype_mismatch);
  CHECK(text.find("size_of") != text.npos);
  CHECK(text.find("not implemented for 'Bool'") != text.npos);
}

TEST_CASE("layouts, memory formats and dtypes are compared") {
  const auto x = torch::randn({1, 2, 3, 3});
  CHECK(x.layout() == torch::kStrided);
  CHECK(x.contiguous(at::MemoryFormat::Contiguous).is_same(x));
  CHECK(torch::equal(x.contiguous(torch::MemoryFormat::ChannelsLast), x));
  CHECK(x.is_contiguous(torch::MemoryFormat::Contiguous));
  CHECK(x.suggest_memory_format() == torch::MemoryFormat::Contiguous);
  CHECK(torch::equal(x.clone(torch::MemoryFormat::Preserve), x));
  CHECK_FALSE(x.dtype() == torch::kInt8);
  CHECK(x.dtype() != torch::kShort);
  CHECK(std::string(c10::toString(x.scalar_type())) == "Float");
  std::ostringstream text;
  text << torch::dtype(torch::kLong).requires_grad(false);
  CHECK(text.str() == "TensorOptions(dtype=int64, device=cpu, layout=Strided, requires_grad=false)");
}

TEST_CASE("sizes are compared, and have an address while they live") {
  const auto x = torch::zeros({2, 3});
  const auto sizes = x.sizes();
  CHECK(std::vector<int64_t>(sizes.data(), sizes.data() + sizes.size()) == std::vector<int64_t>{2, 3});
  CHECK(sizes.equals({2, 3}));
  CHECK_FALSE(sizes.equals({2}));
  const auto a = x.accessor<float, 2>();
  CHECK(a.sizes() == std::vector<int64_t>{2, 3});
  CHECK(a.strides() == std::vector<int64_t>{3, 1});
}

TEST_CASE("windows, ranges and strides") {
  check_close(torch::hann_window(4), {0, 0.5, 1, 0.5});
  check_close(torch::hann_window(3, /*periodic=*/false, torch::kDouble), {0, 1, 0});
  check_close(torch::hamming_window(4), {0.08, 0.54, 1, 0.54});
  check_close(torch::blackman_window(4), {0, 0.34, 1, 0.34});
  check_close(torch::bartlett_window(4), {0, 0.5, 1, 0.5});
  check_close(torch::bartlett_window(5, false), {0, 0.5, 1, 0.5, 0});
  CHECK(torch::hann_window(1).item<float>() == 1);
  CHECK(torch::hann_window(0).numel() == 0);
  CHECK(torch::bartlett_window(2, torch::kDouble).dtype() == torch::kDouble);
  CHECK(torch::range(1, 3, torch::kFloat).to_vector() == Values{1, 2, 3});
  CHECK(torch::range(3, 0, -1.5, torch::kDouble).to_vector() == Values{3, 1.5, 0});
  CHECK_THROWS_AS(torch::range(0, 1, -1), c10::Error);
  const auto x = torch::empty_strided({2, 3}, {1, 2});
  CHECK(x.strides() == std::vector<int64_t>{1, 2});
  x.fill_(3);
  CHECK(x.to_vector() == Values(6, 3));
}

TEST_CASE("positions, distinct values and shapes in common") {
  const auto x = torch::tensor({{1, 0}, {0, 2}});
  const auto places = torch::where(x > 0);
  REQUIRE(places.size() == 2);
  CHECK(places[0].to_vector() == Values{0, 1});
  CHECK(places[1].to_vector() == Values{0, 1});
  CHECK(x.index({places[0], places[1]}).to_vector() == Values{1, 2});
  const auto [values, inverse, counts] = at::_unique2(x, true, true, true);
  CHECK(values.to_vector() == Values{0, 1, 2});
  CHECK(inverse.to_vector() == Values{1, 0, 0, 2});
  CHECK(counts.to_vector() == Values{2, 1, 1});
  CHECK(std::get<0>(at::_unique(x)).numel() == 3);
  CHECK(std::get<0>(torch::unique_dim(torch::ones({3, 2}), 0)).size(0) == 1);
  const auto both = torch::broadcast_tensors({torch::ones({2, 1}), torch::ones({3})});
  CHECK(both[0].sizes() == std::vector<int64_t>{2, 3});
  CHECK(both[1].sizes() == std::vector<int64_t>{2, 3});
  CHECK_THROWS_AS(torch::broadcast_tensors({torch::ones({2}), torch::ones({3})}), c10::Error);
  CHECK(torch::flip(torch::arange(3), 0).to_vector() == Values{2, 1, 0});
  CHECK(torch::arange(4).roll(1, 0).to_vector() == Values{3, 0, 1, 2});
  CHECK(torch::roll(x, 1).to_vector() == Values{2, 1, 0, 0});
  CHECK(x.roll(-1, 1).to_vector() == Values{0, 1, 2, 0});
}

TEST_CASE("norms and decompositions") {
  const auto x = torch::tensor({{3., 0.}, {0., 4.}}, torch::kDouble);
  CHECK(torch::linalg_norm(x).item<double>() == Approx(5));
  CHECK(torch::linalg_norm(x, 2).item<double>() == Approx(4));
  CHECK(torch::linalg_norm(x, "nuc").item<double>() == Approx(7));
  check_close(torch::linalg_norm(x, 1, 0), {3, 4});
  CHECK(torch::linalg_norm(x[1], 1).item<double>() == Approx(4));
  CHECK(torch::linalg_vector_norm(x, 1).item<double>() == Approx(7));
  CHECK(torch::linalg_matrix_rank(x).item<int64_t>() == 2);
  check_close(torch::linalg_svdvals(x), {4, 3});
  check_close(torch::linalg_eigvalsh(x), {3, 4});
  check_close(std::get<0>(torch::linalg_eigh(x)), {3, 4});
  check_close(torch::pinverse(x), {1. / 3, 0, 0, 0.25});
  const auto a = torch::tensor({{1., 2.}, {3., 4.}, {5., 6.}}, torch::kDouble);
  const auto [U, S, V] = torch::svd(a);
  CHECK(U.sizes() == std::vector<int64_t>{3, 2});
  check_close(U.matmul(torch::diag(S)).matmul(V.t()), a.to_vector());
  const auto [full, s, Vh] = torch::linalg_svd(a);
  CHECK(full.sizes() == std::vector<int64_t>{3, 3});
  check_close(Vh, V.t().to_vector());
}

TEST_CASE("grids are resampled") {
  const auto x = torch::tensor({0., 1., 2., 3.}).view({1, 1, 2, 2});
  check_close(torch::upsample_nearest2d(x, {2, 4}), {0, 0, 1, 1, 2, 2, 3, 3});
  check_close(torch::upsample_bilinear2d(x, {3, 3}, /*align_corners=*/true),
              {0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3});
}

TEST_CASE("elu has ATen's three factors") {
  const auto x = torch::tensor({-2., -0.5, 0., 1.5}, torch::dtype(torch::kDouble).requires_grad(true));
  const auto y = torch::elu(x, 0.7, 1.3, 2.0);
  check_close(y, {-0.893333, -0.575235, 0, 1.95});
  y.sum().backward();
  check_close(x.grad(), {0.033334, 0.669541, 1.82, 1.3});
  check_close(torch::elu(x, 1, 0, 1), {0, 0, 0, 0});
  check_close(torch::elu(x, 0.5), {-0.432332, -0.196735, 0, 1.5});
}

TEST_CASE("combinations are in the order of places") {
  const auto x = torch::tensor({3., 5., 7.}, torch::requires_grad());
  CHECK(torch::combinations(x).to_vector() == Values{3, 5, 3, 7, 5, 7});
  CHECK(torch::combinations(x, 2, /*with_replacement=*/true).to_vector() ==
        Values{3, 3, 3, 5, 3, 7, 5, 5, 5, 7, 7, 7});
  CHECK(torch::combinations(x, 3).sizes() == torch::IntArrayRef{1, 3});
  CHECK(torch::combinations(x, 4).sizes() == torch::IntArrayRef{0, 4});
  CHECK(torch::combinations(torch::zeros({0}), 2, true).sizes() == torch::IntArrayRef{0, 2});
  CHECK(torch::combinations(x, 0).sizes() == torch::IntArrayRef{0});
  torch::combinations(x).sum().backward();
  CHECK(x.grad().to_vector() == Values{2, 2, 2});
  CHECK(retrograd::category_of([&] { torch::combinations(x, -1); }) == retrograd::Category::bad_argument);
  CHECK(retrograd::category_of([] {
          torch::combinations(torch::ones({2, 2}));
        }) == retrograd::Category::bad_dim);
}

TEST_CASE("norms and products of matrices by their older names") {
  const auto x = torch::arange(12, torch::kDouble).view({3, 4}) - 5;
  check_close(torch::frobenius_norm(x, {0, 1}), {12.083046});
  check_close(torch::frobenius_norm(x, {1}), {7.348469, 2.449490, 9.273618});
  check_close(torch::nuclear_norm(x), {15.285051});
  CHECK(torch::nuclear_norm(x.view({1, 3, 4}), {1, 2}, true).sizes() == torch::IntArrayRef{1, 1, 1});
  check_close(torch::linalg_matrix_norm(x, "fro"), {12.083046});
  check_close(torch::linalg_matrix_norm(x), {12.083046});
  check_close(torch::chain_matmul({x, x.t()}).sum(), {54});
  CHECK(torch::equal(torch::chain_matmul({x}), x));
  CHECK(torch::equal(torch::linalg_multi_dot({x, x.t(), x}), x.mm(x.t()).mm(x)));
  CHECK(torch::equal(torch::linalg_vecdot(x, x), (x * x).sum(1)));
  CHECK(torch::equal(torch::linalg_matmul(x, x.t()), x.mm(x.t())));
}

TEST_CASE("systems of equations by their older names") {
  const auto b = torch::tensor({{2.}, {3.}}, torch::kDouble);
  const auto T = torch::tensor({{2., 1.}, {0., 4.}}, torch::kDouble);
  const auto [X, coefficients] = torch::triangular_solve(b, T);
  check_close(X, {0.625, 0.75});
  CHECK(torch::equal(coefficients, T));
  CHECK(coefficients.data_ptr() != T.data_ptr());
  check_close(std::get<0>(torch::triangular_solve(b, T, /*upper=*/true, /*transpose=*/true)), {1, 0.5});
  check_close(std::get<0>(torch::triangular_solve(b, T, true, false, /*unitriangular=*/true)), {-1, 3});
  check_close(torch::linalg_solve_triangular(T, b, /*upper=*/true), {0.625, 0.75});

  const auto A = torch::arange(12, torch::kDouble).sin().view({4, 3});
  const auto B = torch::arange(8, torch::kDouble).cos().view({4, 2});
  const auto [solution, residuals, rank, singular_values] = torch::linalg_lstsq(A, B);
  CHECK(torch::allclose(solution, torch::linalg_pinv(A).mm(B), 1e-9, 1e-9));
  CHECK(rank.item<int64_t>() == 2);
  CHECK(residuals.numel() + singular_values.numel() == 0);
}

TEST_CASE("integrals, stacks and paddings by their other names") {
  const auto y = torch::tensor({1., 2., 4.});
  check_close(torch::trapz(y), {4.5});
  check_close(torch::trapz(y, 0.5), {2.25});
  check_close(torch::trapz(y, torch::tensor({0., 2., 3.})), {6});
  CHECK(torch::row_stack({y, y}).sizes() == torch::IntArrayRef{2, 3});
  check_close(torch::constant_pad_nd(y, {1, -1}, 9), {9, 1, 2});
  CHECK(torch::is_same_size(y, y + 1));
  CHECK_FALSE(torch::is_same_size(y, torch::ones({1, 3})));
  CHECK(torch::is_floating_point(y));
}

}  // namespace
}  // namespace libtorch
