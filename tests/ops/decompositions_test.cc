// Decompositions, functions of matrices and products beyond matmul: what defines each result, in all layouts and
// shapes, ranks that are not full, empty matrices, matrices that are not finite, and errors. Derivatives are in
// tests/ops/derivatives.
#include "retrograd/retrograd.h"
#include "tests/ops/matrices.h"

namespace retrograd {
namespace {

using namespace testing;

Tensor unit(int64_t n, ScalarType dtype) { return eye(n, {}, {dtype}); }
Tensor noise(IntArray shape, ScalarType dtype, int seed = 5) {
  return to(input(shape, -1, 1, seed).detach(), dtype);
}

TEST_CASE("eigenvalues and eigenvectors put the matrix together again") {
  for (ScalarType dtype : kDtypes)
    for (int64_t n : {1, 2, 7, 33})
      for (const Tensor& x : layouts(regular({2}, n, dtype))) {
        const Tensor s = x + turned(x);
        const linalg::EighResult r = linalg::eigh(s);
        const Tensor w = unsqueeze(r.eigenvalues, -2);
        CHECK(distance(matmul(r.eigenvectors * w, turned(r.eigenvectors)), s) < 50 * tolerance(dtype));
        CHECK(distance(matmul(turned(r.eigenvectors), r.eigenvectors), expand(unit(n, dtype), {2, n, n})) <
              10 * tolerance(dtype));
        CHECK(distance(linalg::eigvalsh(s), r.eigenvalues) < 50 * tolerance(dtype));
        CHECK(distance(r.eigenvalues, sort(r.eigenvalues).values) == 0);
      }
}

TEST_CASE("eigh reads the triangle that UPLO names") {
  const Tensor s = tensor({2, 1, 1, 3}, {2, 2}, {kFloat64}), lower = tril(s), upper = triu(s);
  const Tensor w = linalg::eigvalsh(s);
  CHECK(distance(linalg::eigvalsh(lower), w) < 1e-15);
  CHECK(distance(linalg::eigvalsh(upper, "U"), w) < 1e-15);
  CHECK(distance(linalg::eigh(upper, "u").eigenvalues, w) < 1e-15);
  CHECK(distance(linalg::eigvalsh(upper, "L"), tensor({2, 3}, {2}, {kFloat64})) < 1e-15);
}

TEST_CASE("singular values and vectors put the matrix together again") {
  for (ScalarType dtype : kDtypes)
    for (const IntArray& shape : {IntArray{1, 1}, {5, 5}, {7, 3}, {3, 7}, {20, 33}})
      for (bool full : {false, true}) {
        IntArray batch = {2};
        batch.insert(batch.end(), shape.begin(), shape.end());
        const Tensor a = noise(batch, dtype);
        const int64_t m = shape[0], n = shape[1], k = std::min(m, n);
        const linalg::SvdResult r = linalg::svd(a, full);
        CHECK(r.U.sizes() == IntArray{2, m, full ? m : k});
        CHECK(r.Vh.sizes() == IntArray{2, full ? n : k, n});
        const Tensor first = narrow(r.U, -1, 0, k) * unsqueeze(r.S, -2);
        CHECK(distance(matmul(first, narrow(r.Vh, -2, 0, k)), a) < 20 * tolerance(dtype));
        const Tensor one = expand(unit(r.U.size(-1), dtype), {2, r.U.size(-1), r.U.size(-1)});
        CHECK(distance(matmul(turned(r.U), r.U), one) < 10 * tolerance(dtype));
        CHECK(distance(linalg::svdvals(a), r.S) < 10 * tolerance(dtype));
      }
}

TEST_CASE("Q and R put the matrix together again") {
  for (ScalarType dtype : kDtypes)
    for (const IntArray& shape : {IntArray{1, 1}, {5, 5}, {60, 50}, {3, 7}, {7, 3}})
      for (const char* mode : {"reduced", "complete"}) {
        const Tensor a = noise(shape, dtype);
        const int64_t k = mode == std::string_view("complete") ? shape[0] : std::min(shape[0], shape[1]);
        const linalg::QrResult r = linalg::qr(a, mode);
        CHECK(r.Q.sizes() == IntArray{shape[0], k});
        CHECK(distance(matmul(r.Q, r.R), a) < 20 * tolerance(dtype));
        CHECK(distance(matmul(turned(r.Q), r.Q), unit(k, dtype)) < 20 * tolerance(dtype));
        CHECK(distance(r.R, triu(r.R)) < 20 * tolerance(dtype));
      }
  const linalg::QrResult r = linalg::qr(noise({3, 2}, kFloat64), "r");
  CHECK(r.Q.sizes() == IntArray{0});
  CHECK(r.R.sizes() == IntArray{2, 2});
}

TEST_CASE("LU factors solve systems of every kind") {
  for (ScalarType dtype : kDtypes) {
    const Tensor a = flip(regular({2}, 5, dtype), {-2}), b = noise({3, 1, 5, 5}, dtype);
    const linalg::LuFactorResult f = linalg::lu_factor(a);
    for (bool left : {false, true})
      for (bool adjoint : {false, true}) {
        const Tensor x = linalg::lu_solve(f.LU, f.pivots, b, left, adjoint), m = adjoint ? turned(a) : a;
        CHECK(distance(left ? matmul(m, x) : matmul(x, m), expand(b, {3, 2, 5, 5})) < 20 * tolerance(dtype));
      }
  }
  const Tensor wide = tensor({1, 2, 3, 4, 5, 6}, {2, 3}, {kFloat64});
  const linalg::LuFactorResult f = linalg::lu_factor(wide);
  CHECK(f.pivots.to_vector() == std::vector<double>{2, 2});
  CHECK(distance(f.LU, tensor({4, 5, 6, 0.25, 0.75, 1.5}, {2, 3}, {kFloat64})) < 1e-15);
  const linalg::LuFactorResult tall = linalg::lu_factor(turned(wide));
  CHECK(tall.pivots.to_vector() == std::vector<double>{3, 3});
  CHECK(tall.LU.sizes() == IntArray{3, 2});
}

TEST_CASE("systems with Cholesky factors") {
  for (ScalarType dtype : kDtypes)
    for (bool upper : {false, true}) {
      const Tensor a = positive({2}, 4, dtype), b = noise({3, 1, 4, 2}, dtype), l = cholesky(a, upper);
      CHECK(distance(matmul(a, cholesky_solve(b, l, upper)), expand(b, {3, 2, 4, 2})) <
            20 * tolerance(dtype));
      CHECK(distance(cholesky_inverse(l, upper), inverse(a)) < 20 * tolerance(dtype));
    }
}

TEST_CASE("pseudo-inverses have Penrose's properties, of any rank") {
  for (ScalarType dtype : kDtypes)
    for (const IntArray& shape : {IntArray{4, 4}, {5, 3}, {3, 5}}) {
      const Tensor full = noise(shape, dtype),
                   low = matmul(noise({shape[0], 2}, dtype), noise({2, shape[1]}, dtype, 9));
      for (const Tensor& a : {full, low}) {
        const Tensor p = linalg::pinv(a, {}, 1e-4), ap = matmul(a, p), pa = matmul(p, a);
        CHECK(distance(matmul(ap, a), a) < 100 * tolerance(dtype));
        CHECK(distance(matmul(pa, p), p) < 1000 * tolerance(dtype));
        CHECK(distance(ap, turned(ap)) < 100 * tolerance(dtype));
        CHECK(distance(pa, turned(pa)) < 100 * tolerance(dtype));
      }
      CHECK(linalg::matrix_rank(full).item<int64_t>() == std::min(shape[0], shape[1]));
      CHECK(linalg::matrix_rank(low, {}, 1e-4).item<int64_t>() == 2);
    }
  const Tensor diagonal = diag(tensor({4, 1, -2}, {3}, {kFloat64}));
  CHECK(distance(linalg::pinv(diagonal, 1.5, {}, true), diag(tensor({0.25, 0, -0.5}, {3}, {kFloat64}))) <
        1e-15);
  CHECK(linalg::matrix_rank(diagonal, 1.5, {}, true).item<int64_t>() == 2);
  CHECK(linalg::matrix_rank(diagonal, {}, 0.6).item<int64_t>() == 1);
}

TEST_CASE("least squares: normal equations, and the least norm") {
  for (ScalarType dtype : kDtypes) {
    const Tensor tall = noise({2, 6, 3}, dtype), b = noise({2, 6, 2}, dtype, 8), x = linalg::lstsq(tall, b);
    CHECK(largest(matmul(turned(tall), matmul(tall, x) - b)) < 50 * tolerance(dtype));
    const Tensor wide = turned(tall), y = linalg::lstsq(wide, noise({2, 3, 1}, dtype, 8));
    CHECK(distance(matmul(wide, y), noise({2, 3, 1}, dtype, 8)) < 50 * tolerance(dtype));
    CHECK(distance(matmul(linalg::pinv(wide), matmul(wide, y)), y) < 100 * tolerance(dtype));
  }
  const Tensor one = ones({3, 2}, {kFloat64});
  CHECK(distance(linalg::lstsq(one, ones({3}, {kFloat64})), full({2}, 0.5, {kFloat64})) < 1e-14);
}

TEST_CASE("exponentials") {
  for (ScalarType dtype : kDtypes) {
    const Tensor turn = tensor({0, -1, 1, 0}, {2, 2}, {dtype});
    for (double angle : {1e-9, 0.1, 1.0, 3.0, 50.0}) {
      const double c = std::cos(angle), s = std::sin(angle);
      CHECK(distance(matrix_exp(turn * angle), tensor({c, -s, s, c}, {2, 2}, {dtype})) <
            100 * tolerance(dtype));
    }
    const Tensor nilpotent = tensor({0, 3, 0, 0}, {2, 2}, {dtype});
    CHECK(distance(matrix_exp(nilpotent), tensor({1, 3, 0, 1}, {2, 2}, {dtype})) < tolerance(dtype));
  }
  CHECK(matrix_exp(zeros({2, 2}, {kBFloat16})).to_vector() == std::vector<double>{1, 0, 0, 1});
}

TEST_CASE("norms of matrices") {
  const Tensor a = tensor({1, -2, 3, -4, 5, -6}, {2, 3}, {kFloat64});
  CHECK(linalg::matrix_norm(a, 1).item<double>() == 9);
  CHECK(linalg::matrix_norm(a, -1).item<double>() == 5);
  CHECK(linalg::matrix_norm(a, HUGE_VAL).item<double>() == 15);
  CHECK(linalg::matrix_norm(a, -HUGE_VAL).item<double>() == 6);
  CHECK(linalg::matrix_norm(a).item<double>() == Approx(std::sqrt(91.0)));
  const std::vector<double> s = linalg::svdvals(a).to_vector();
  CHECK(linalg::matrix_norm(a, 2).item<double>() == Approx(s[0]));
  CHECK(linalg::matrix_norm(a, -2).item<double>() == Approx(s[1]));
  CHECK(linalg::matrix_norm(a, "nuc").item<double>() == Approx(s[0] + s[1]));
  const Tensor batch = noise({3, 4, 2}, kFloat64);
  for (const double ord : {1.0, 2.0}) {
    const Tensor kept = linalg::matrix_norm(batch, ord, {2, 0}, true);
    CHECK(kept.sizes() == IntArray{1, 4, 1});
    const Tensor turned_first = linalg::matrix_norm(permute(batch, {1, 2, 0}), ord);
    CHECK(distance(flatten(kept), turned_first) < 1e-13);
  }
  for (const double ord : {1.0, -1.0, 2.0, HUGE_VAL})
    CHECK(linalg::matrix_norm(zeros({0, 3}), ord).item<double>() == 0);
}

TEST_CASE("matrices without elements") {
  CHECK(linalg::eigh(zeros({2, 0, 0})).eigenvectors.sizes() == IntArray{2, 0, 0});
  CHECK(linalg::svd(zeros({0, 3})).Vh.to_vector() == unit(3, kFloat64).to_vector());
  CHECK(linalg::svd(zeros({2, 3, 0}), false).U.sizes() == IntArray{2, 3, 0});
  CHECK(linalg::qr(zeros({3, 0}), "complete").Q.to_vector() == unit(3, kFloat64).to_vector());
  CHECK(linalg::qr(zeros({0, 3})).R.sizes() == IntArray{0, 3});
  CHECK(linalg::lu_factor(zeros({3, 0})).pivots.sizes() == IntArray{0});
  CHECK(linalg::pinv(zeros({2, 0, 3})).sizes() == IntArray{2, 3, 0});
  CHECK(linalg::matrix_rank(zeros({2, 0, 3})).to_vector() == std::vector<double>{0, 0});
  CHECK(linalg::lstsq(zeros({0, 3}), zeros({0, 2})).to_vector() == std::vector<double>(6, 0));
  CHECK(matrix_exp(zeros({0, 0})).sizes() == IntArray{0, 0});
}

TEST_CASE("matrices that are not finite give nan") {
  const Tensor bad = full({2, 2}, NAN, {kFloat64}), mixed = stack({bad, unit(2, kFloat64)});
  for (const Tensor& x : {linalg::eigvalsh(bad), linalg::svdvals(bad), linalg::pinv(bad), linalg::qr(bad).Q,
                          linalg::lstsq(bad, bad), matrix_exp(bad)})
    for (double v : x.to_vector()) CHECK(std::isnan(v));
  CHECK(select(linalg::svdvals(mixed), 0, 1).to_vector() == std::vector<double>{1, 1});
}

TEST_CASE("products") {
  const Tensor x = tensor({1, 0, 0}, {3}, {kFloat64}), y = tensor({0, 1, 0}, {3}, {kFloat64});
  CHECK(linalg::cross(x, y).to_vector() == std::vector<double>{0, 0, 1});
  const Tensor a = noise({2, 3, 4}, kFloat64), b = noise({2, 3, 4}, kFloat64, 8);
  CHECK(distance(linalg::cross(a, b, 1),
                 transpose(linalg::cross(transpose(a, 1, 2), transpose(b, 1, 2)), 1, 2)) == 0);
  CHECK(linalg::cross(tensor({1, 2, 3}, {3}, {kInt32}), tensor({4, 5, 6}, {3}, {kInt32})).to_vector() ==
        std::vector<double>{-3, 6, -3});
  CHECK(distance(linalg::vecdot(a, b), sum(a * b, {-1})) < 1e-15);
  CHECK(linalg::vecdot(full({300}, 1.0, {kBFloat16}), full({300}, 1.0, {kBFloat16})).item<double>() == 300);
  CHECK(distance(inner(a, b), tensordot(a, b, {2}, {2})) == 0);
  const Tensor c = noise({4, 2}, kFloat64), d = noise({2, 5}, kFloat64);
  CHECK(distance(linalg::multi_dot({select(a, 0, 0), c, d}), matmul(matmul(select(a, 0, 0), c), d)) < 1e-14);
  CHECK(linalg::multi_dot({x, noise({3, 3}, kFloat64), y}).dim() == 0);
  const Tensor nothing = full({3, 3}, NAN, {kFloat64});
  CHECK(distance(addbmm(nothing, a, transpose(b, 1, 2), 0, 2),
                 sum(matmul(a, transpose(b, 1, 2)), {0}) * 2.0) < 1e-14);
  CHECK(distance(addmv(x, unit(3, kFloat64), y, 2, 3), x * 2.0 + y * 3.0) == 0);
  CHECK(distance(addr(unit(3, kFloat64), x, y, 2, 3), unit(3, kFloat64) * 2.0 + outer(x, y) * 3.0) == 0);
}

TEST_CASE("errors name the right category") {
  const Tensor square = unit(3, kFloat32), vector = zeros({3}), rectangle = zeros({3, 2});
  const auto of = [](auto f) { return category_of(f); };
  using enum Category;
  CHECK(of([&] { linalg::eigh(vector); }) == bad_dim);
  CHECK(of([&] { linalg::eigh(rectangle); }) == shape_mismatch);
  CHECK(of([&] { linalg::eigh(square, "X"); }) == bad_argument);
  CHECK(of([&] { linalg::svd(zeros({2, 2}, {kInt64})); }) == dtype_mismatch);
  CHECK(of([&] { linalg::qr(square, "full"); }) == bad_argument);
  CHECK(of([&] { linalg::lu_factor(zeros({2, 3, 2})); }) == singular_matrix);
  CHECK(of([&] { linalg::lu_solve(square, tensor({1, 2, 3}, {3}, {kInt64}), square); }) == dtype_mismatch);
  CHECK(of([&] { linalg::lu_solve(square, tensor({1, 2}, {2}, {kInt32}), square); }) == shape_mismatch);
  CHECK(of([&] { linalg::lu_solve(square, tensor({1, 9, 3}, {3}, {kInt32}), square); }) == bad_argument);
  CHECK(of([&] { linalg::lstsq(rectangle, zeros({2, 2})); }) == shape_mismatch);
  CHECK(of([&] { linalg::matrix_norm(square, 3); }) == bad_argument);
  CHECK(of([&] { linalg::matrix_norm(square, 1, {0, 0}); }) == bad_dim);
  CHECK(of([&] { linalg::matrix_norm(vector); }) == bad_dim);
  CHECK(of([&] { linalg::cross(vector, zeros({4})); }) == shape_mismatch);
  CHECK(of([&] { linalg::cross(zeros({4}), zeros({4})); }) == shape_mismatch);
  CHECK(of([&] { linalg::vecdot(vector, zeros({1})); }) == shape_mismatch);
  CHECK(of([&] { linalg::multi_dot({square}); }) == bad_argument);
  CHECK(of([&] { linalg::multi_dot({square, zeros({2, 2})}); }) == shape_mismatch);
  CHECK(of([&] { addmv(vector, rectangle, vector); }) == shape_mismatch);
  CHECK(of([&] { addbmm(square, zeros({2, 3, 2}), zeros({3, 2, 3})); }) == shape_mismatch);
  const Tensor leaf = to(input({3, 2}, -1, 1, 5).detach(), kFloat64).requires_grad_();
  const Tensor q = linalg::qr(leaf, "complete").Q;
  CHECK(of([&] { sum(q).backward(); }) == unsupported);
}

}  // namespace
}  // namespace retrograd
