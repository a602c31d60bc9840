// Linear algebra: residuals of every function (A inverse(A) = 1, L L' = A, A X = B), determinants against
// sums over permutations and known values, layouts, sizes of zero, derivatives to second order, determinants
// and cofactors of singular matrices, saved factors, errors. Results against PyTorch: tests/conformance.
#include "ops/linalg.h"

#include "ops/matmul.h"
#include "ops/rearrange.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "retrograd/retrograd.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;

template <class F>
Error error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  FAIL("nothing was thrown");
  return Error(Category::unsupported, "");
}

template <class F>
Category category_of(const F& f) {
  return error_of(f).category();
}

double largest(const Tensor& x) {
  double m = 0;
  for (double v : x.to_vector()) m = std::isnan(v) ? v : std::max(m, std::abs(v));
  return m;
}

double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return largest(sub(a, b));
}

Tensor turned(const Tensor& x) { return transpose(x, -2, -1); }

// Matrices (..., n, n) that are far from singular.
Tensor regular(IntArray batch, int64_t n, ScalarType dtype = kFloat64, int seed = 3) {
  batch.insert(batch.end(), {n, n});
  const Tensor noise = input(batch, -1, 1, seed).detach();
  return to(noise + eye(n, n, {kFloat64}) * (1.0 + std::sqrt(static_cast<double>(n))), dtype);
}

Tensor positive(IntArray batch, int64_t n, ScalarType dtype = kFloat64) {
  const Tensor x = regular(batch, n, dtype);
  return matmul(x, turned(x)) / (1.0 + static_cast<double>(n));
}

// The same values in other memory: turned, or every other element of a larger tensor.
std::vector<Tensor> layouts(const Tensor& x) {
  const Tensor wide = zeros({x.size(0), x.size(1), 2 * x.size(2)}, {x.dtype()});
  const Tensor sparse = slice(wide, 2, 1, std::nullopt, 2);
  sparse.copy_(x);
  return {x, turned(turned(x).contiguous()), sparse};
}

double tolerance(ScalarType dtype) { return dtype == kFloat64 ? 1e-12 : 2e-4; }

const ScalarType kDtypes[] = {kFloat64, kFloat32};

// The determinant by expansion along the first row.
double expanded(const std::vector<std::vector<double>>& m) {
  if (m.empty()) return 1;
  double sum = 0;
  for (size_t j = 0; j < m.size(); ++j) {
    std::vector<std::vector<double>> minor;
    for (size_t i = 1; i < m.size(); ++i) {
      minor.push_back(m[i]);
      minor.back().erase(minor.back().begin() + static_cast<int64_t>(j));
    }
    sum += (j % 2 ? -1 : 1) * m[0][j] * expanded(minor);
  }
  return sum;
}

std::vector<std::vector<double>> rows_of(const Tensor& x) {
  std::vector<std::vector<double>> rows;
  for (int64_t i = 0; i < x.size(0); ++i) rows.push_back(select(x, 0, i).to_vector());
  return rows;
}

// All cofactors, by expansion.
Tensor cofactors(const Tensor& x) {
  std::vector<double> all;
  const int64_t n = x.size(0);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      auto minor = rows_of(x);
      minor.erase(minor.begin() + i);
      for (auto& row : minor) row.erase(row.begin() + j);
      all.push_back(((i + j) % 2 ? -1 : 1) * expanded(minor));
    }
  return tensor(all, {n, n}, {kFloat64});
}

// The gradient of det.
Tensor det_gradient(const Tensor& x) {
  const Tensor leaf = x.clone().requires_grad_();
  return autograd::grad({sum(det(leaf))}, {leaf})[0];
}

TEST_CASE("A inverse(A) is the unit matrix, at every size, dtype and layout") {
  for (ScalarType dtype : kDtypes)
    for (int64_t n : {1, 2, 3, 7, 16, 33, 70})
      for (const Tensor& a : layouts(regular({3}, n, dtype))) {
        INFO("n = " << n << ", " << name(dtype));
        const Tensor y = inverse(a);
        CHECK(y.dtype() == dtype);
        CHECK(distance(matmul(a, y), eye(n, n, {dtype}) + zeros({3, 1, 1}, {dtype})) < tolerance(dtype));
      }
}

TEST_CASE("L L' and U' U are the matrix, and one triangle is read") {
  for (ScalarType dtype : kDtypes)
    for (int64_t n : {1, 2, 3, 9, 40, 150})
      for (const Tensor& a : layouts(positive({2}, n, dtype))) {
        INFO("n = " << n << ", " << name(dtype));
        const Tensor l = cholesky(a), u = cholesky(a, true);
        CHECK(distance(matmul(l, turned(l)), a) < tolerance(dtype));
        CHECK(distance(matmul(turned(u), u), a) < tolerance(dtype));
        CHECK(largest(triu(l, 1)) == 0);
        CHECK(largest(tril(u, -1)) == 0);
        const Tensor nan = triu(full({n, n}, NAN, {dtype}), 1);
        const Tensor lower = where(eq(triu(ones({n, n}), 1), 1.0), nan, a);
        CHECK(distance(cholesky(lower), l) == 0);
        CHECK(distance(cholesky(turned(lower), true), u) == 0);
      }
}

TEST_CASE("solve: residuals for matrices, vectors, both sides and broadcast batches") {
  for (ScalarType dtype : kDtypes)
    for (int64_t n : {1, 4, 25}) {
      const Tensor a = regular({2, 1}, n, dtype);
      const auto random = [&](IntArray shape) { return to(input(shape).detach(), dtype); };
      const Tensor b = random({3, n, 2}), c = random({3, 2, n});
      CHECK(distance(matmul(a, solve(a, b)), expand(b, {2, 3, n, 2})) < tolerance(dtype));
      CHECK(distance(matmul(solve(a, c, false), a), expand(c, {2, 3, 2, n})) < tolerance(dtype));
      const Tensor one = random({n}), many = random({2, 1, n});
      CHECK(solve(a, one).sizes() == IntArray{2, 1, n});
      CHECK(distance(squeeze(matmul(a, unsqueeze(solve(a, many), -1)), {-1}), many) < tolerance(dtype));
      const Tensor single = select(select(a, 0, 0), 0, 0);
      CHECK(distance(mv(single, solve(single, one)), one) < tolerance(dtype));
      for (const Tensor& layout : layouts(b)) CHECK(distance(solve(single, layout), solve(single, b)) == 0);
    }
}

TEST_CASE("solve_triangular: residuals in all forms, and what it does not read") {
  for (ScalarType dtype : kDtypes)
    for (int64_t n : {1, 5, 40})
      for (bool upper : {false, true})
        for (bool left : {false, true})
          for (bool unit : {false, true})
            for (const Tensor& a : layouts(regular({2}, n, dtype) * 0.25)) {
              const Tensor part = upper ? triu(a, unit) : tril(a, unit ? -1 : 0);
              const Tensor t = unit ? part + eye(n, n, {dtype}) : part;
              const Tensor b =
                  to(input(left ? Shape{n, 3} : Shape{3, n}).detach(), dtype) + zeros({2, 1, 1}, {dtype});
              const Tensor x = solve_triangular(a, b, upper, left, unit);
              const double scale = 1 + largest(x);
              CHECK(distance(left ? matmul(t, x) : matmul(x, t), b) / scale < tolerance(dtype));
            }
}

TEST_CASE("determinants: expansion, sign and logarithm") {
  for (int64_t n : {0, 1, 2, 3, 4, 5, 6}) {
    const Tensor a = input({n, n}, -2, 2, static_cast<int>(n)).detach();
    const double want = expanded(n ? rows_of(a) : std::vector<std::vector<double>>{});
    INFO("n = " << n);
    CHECK(det(a).item<double>() == Approx(want));
    const SlogdetResult r = slogdet(a);
    CHECK(r.sign.item<double>() == (want > 0 ? 1 : -1));
    CHECK(r.logabsdet.item<double>() == Approx(std::log(std::abs(want))).margin(1e-12));
    CHECK((want > 0 ? logdet(a).item<double>() == Approx(std::log(want)).margin(1e-12)
                    : std::isnan(logdet(a).item<double>())));
  }
  const Tensor large = eye(400, 400, {kFloat64}) * 100.0;  // its determinant is beyond float64
  CHECK(slogdet(large).logabsdet.item<double>() == Approx(400 * std::log(100.0)));
  CHECK(det(large).item<double>() == INFINITY);
  const SlogdetResult zero = slogdet(zeros({2, 2}));
  CHECK((zero.sign.item<double>() == 0 && zero.logabsdet.item<double>() == -INFINITY));
}

TEST_CASE("sizes of zero") {
  CHECK(inverse(zeros({0, 0})).sizes() == IntArray{0, 0});
  CHECK(inverse(zeros({0, 3, 3})).sizes() == IntArray{0, 3, 3});
  CHECK(det(zeros({2, 0, 0})).to_vector() == std::vector<double>{1, 1});
  CHECK(slogdet(zeros({0, 0})).logabsdet.item<double>() == 0);
  CHECK(cholesky(zeros({0, 2, 2})).sizes() == IntArray{0, 2, 2});
  CHECK(cholesky(zeros({3, 0, 0})).sizes() == IntArray{3, 0, 0});
  CHECK(solve(zeros({0, 0}), zeros({0, 2})).sizes() == IntArray{0, 2});
  CHECK(solve(eye(2), zeros({2, 0})).sizes() == IntArray{2, 0});
  CHECK(solve(zeros({5, 0, 0}), zeros({5, 0})).sizes() == IntArray{5, 0});
  CHECK(solve_triangular(eye(2), zeros({2, 0}), true).sizes() == IntArray{2, 0});
  CHECK(det_gradient(zeros({0, 0}, {kFloat64})).sizes() == IntArray{0, 0});
  CHECK(trace(zeros({0, 3})).item<double>() == 0);
}

TEST_CASE("trace and powers of matrices") {
  CHECK(trace(arange(0, 6).view({2, 3})).item<int64_t>() == 4);
  CHECK(trace(to(ones({3, 2}), kInt32)).dtype() == kInt64);
  const Tensor a = regular({2}, 3) * 0.5;
  Tensor power = eye(3, 3, {kFloat64}) + zeros({2, 1, 1}, {kFloat64});
  for (int64_t n = 0; n < 9; ++n) {
    CHECK(distance(matrix_power(a, n), power) < 1e-12 * (1 + largest(power)));
    CHECK(distance(matmul(matrix_power(a, -n), power), matrix_power(a, 0)) < 1e-10);
    power = matmul(power, a);
  }
  CHECK(matrix_power(to(arange(0, 4), kInt64).view({2, 2}), 3).to_vector() ==
        std::vector<double>{6, 11, 22, 39});
  CHECK_FALSE(matrix_power(a, 1).is_same(a));
}

TEST_CASE("derivatives to second order") {
  const auto matrix = [](Shape shape, int seed = 1) { return input(shape, -0.4, 0.4, seed); };
  const auto shifted = [](const Tensor& x) { return x + eye(x.size(-1), {}, {kFloat64}) * 1.5; };
  gradcheck([&](const Tensors& x) { return inverse(shifted(x[0])); }, {matrix({2, 3, 3})});
  gradcheck([&](const Tensors& x) { return det(shifted(x[0])); }, {matrix({2, 3, 3})});
  gradcheck([&](const Tensors& x) { return slogdet(shifted(x[0])).logabsdet; }, {matrix({2, 3, 3})});
  gradcheck([&](const Tensors& x) { return logdet(shifted(x[0])); }, {matrix({3, 3})});
  gradcheck([](const Tensors& x) { return trace(x[0]); }, {matrix({2, 3})}, false);
  for (int64_t n : {-2, 2, 5})
    gradcheck([&](const Tensors& x) { return matrix_power(shifted(x[0]), n); }, {matrix({2, 2})});
  for (bool upper : {false, true})
    gradcheck([&](const Tensors& x) { return cholesky(shifted(matmul(x[0], turned(x[0]))), upper); },
              {matrix({2, 3, 3})});
}

TEST_CASE("derivatives of systems to second order") {
  const Tensor shift = eye(3, 3, {kFloat64}) * 1.5;
  const Tensor a = input({2, 1, 3, 3}, -0.4, 0.4, 4);
  gradcheck([&](const Tensors& x) { return solve(x[0] + shift, x[1]); }, {a, input({2, 3, 2})});
  gradcheck([&](const Tensors& x) { return solve(x[0] + shift, x[1], false); }, {a, input({2, 3})});
  gradcheck([&](const Tensors& x) { return solve(x[0] + shift, x[1]); }, {a, input({3})});
  gradcheck([&](const Tensors& x) { return solve(x[0] + shift, x[1].detach()); },
            {a, input({3, 2}).detach()});
  for (bool upper : {false, true})
    for (bool unit : {false, true})
      for (bool left : {false, true})
        gradcheck([&](const Tensors& x) { return solve_triangular(x[0] + shift, x[1], upper, left, unit); },
                  {input({2, 3, 3}, -0.4, 0.4, 5), input({3, 3})});
}

TEST_CASE("the gradient of cholesky is symmetric") {
  const Tensor a = positive({}, 4).requires_grad_();
  const Tensor g = autograd::grad({sum(cholesky(a))}, {a})[0];
  CHECK(distance(g, turned(g)) < 1e-14);
}

TEST_CASE("the tangent of cholesky at 1 is that of the triangle which is read") {
  const Tensor one = eye(2, {}, {kFloat64}), tangent = tensor({2, 3, 5, 8}, {2, 2}, {kFloat64});
  const auto at = [&](bool upper) {
    const auto f = [=](const Tensors& x) { return Tensors{cholesky(x[0], upper)}; };
    return autograd::jvp(f, {one}, {tangent}).tangents[0].to_vector();
  };
  CHECK(at(false) == std::vector<double>{1, 0, 5, 4});
  CHECK(at(true) == std::vector<double>{1, 3, 0, 4});
}

TEST_CASE("the gradient of a determinant is the matrix of cofactors, also where it is singular") {
  const Tensor zero = zeros({4, 4}, {kFloat64});
  const Tensor base = input({4, 4}, -2, 2, 6).detach();
  const Tensor twice = index_copy(base, 0, tensor({3}, {kInt64}), select(base, 0, 0).view({1, 4}) * 2.0);
  const Tensor zero_row = index_copy(base, 0, tensor({1}, {kInt64}), zeros({1, 4}, {kFloat64}));
  const Tensor outer_product = outer(select(base, 0, 0), select(base, 0, 1));
  for (const Tensor& a : {base, base * 1e-3, twice, turned(twice), zero_row, outer_product, zero}) {
    const Tensor want = cofactors(a);
    CHECK(distance(det_gradient(a), want) <= 1e-12 * (1 + largest(want)));
    CHECK(distance(det_gradient(to(a, kFloat32)), to(want, kFloat32)) <= 1e-5 * (1 + largest(want)));
  }
  CHECK(det_gradient(tensor({0.0}, {kFloat64}).view({1, 1})).item<double>() == 1);
}

TEST_CASE("the second derivative of a determinant, also where it is singular") {
  const Tensor base = input({2, 4, 4}, -2, 2, 6).detach();
  for (int64_t rank = 0; rank <= 4; ++rank) {
    INFO("rank " << rank);
    Tensor low = matmul(narrow(base, 2, 0, rank), narrow(base, 1, 0, rank));
    gradcheck([](const Tensors& x) { return det(x[0]); }, {low.requires_grad_()});
  }
}

TEST_CASE("the gradient of slogdet where the matrix is singular is no error") {
  const Tensor a = ones({2, 2}).requires_grad_();
  sum(slogdet(a).logabsdet).backward();
  for (double g : a.grad().to_vector()) CHECK_FALSE(std::isfinite(g));
}

TEST_CASE("a solve is factored once, for its backward, too") {
  const Tensor a = regular({}, 3).requires_grad_(), b = input({3, 2});
  CompiledBackward backward = compile_backward();
  const Tensor loss = sum(solve(a, b));
  backward(loss);
  const std::string text = backward.graph()->print();
  CHECK(text.find("lu_factor") == std::string::npos);
  CHECK(text.find("lu_solve") != std::string::npos);
  const Tensor x = a.detach().requires_grad_(), y = b.detach().requires_grad_();
  sum(solve(x, y)).backward();
  CHECK(x.grad().to_vector() == a.grad().to_vector());
  CHECK(y.grad().to_vector() == b.grad().to_vector());
}

TEST_CASE("traced backwards serve other sizes") {
  CompiledBackward backward = compile_backward();
  for (int64_t n : {3, 4, 7}) {
    const auto loss = [&](const Tensor& x) {
      const Tensor s = matmul(x, turned(x)) + eye(n, n, {kFloat64});
      return sum(cholesky(s)) + sum(inverse(x)) + sum(det(x)) + sum(slogdet(x).logabsdet);
    };
    const Tensor a = regular({2}, n).requires_grad_(), b = a.detach().requires_grad_();
    backward(loss(a));
    loss(b).backward();
    CHECK(a.grad().to_vector() == b.grad().to_vector());
  }
  CHECK(backward.stats().captures == 1);
}

TEST_CASE("results do not depend on the number of threads") {
  const Tensor a = regular({37}, 20), s = positive({37}, 20);
  const int before = cpu::get_num_threads();
  std::vector<std::vector<double>> all;
  for (int threads : {1, 4}) {
    cpu::set_num_threads(threads);
    all.push_back((inverse(a) + cholesky(s) + solve(a, s) + solve_triangular(a, s, true) +
                   unsqueeze(unsqueeze(det(a), -1), -1))
                      .to_vector());
  }
  cpu::set_num_threads(before);
  CHECK(all[0] == all[1]);
}

TEST_CASE("errors name the category and the batch entry") {
  const Tensor wide = ones({2, 3}), line = ones({3}), half = to(eye(2), kHalf);
  const std::function<Tensor(const Tensor&)> functions[] = {
      [](const Tensor& x) { return inverse(x); }, [](const Tensor& x) { return det(x); },
      [](const Tensor& x) { return slogdet(x).sign; }, [](const Tensor& x) { return cholesky(x); }};
  for (const auto& f : functions) {
    CHECK(category_of([&] { f(wide); }) == Category::shape_mismatch);
    CHECK(category_of([&] { f(line); }) == Category::bad_dim);
    CHECK(category_of([&] { f(half); }) == Category::dtype_mismatch);
    CHECK(category_of([&] { f(arange(0, 4).view({2, 2})); }) == Category::dtype_mismatch);
  }
  Tensor batch = eye(3) + zeros({5, 1, 1});
  for (int64_t i : {2, 4}) select(batch, 0, i).zero_();
  for (const Error& e : {error_of([&] { inverse(batch); }), error_of([&] { solve(batch, line); })}) {
    CHECK(e.category() == Category::singular_matrix);
    CHECK(std::string(e.what()).find("matrix 2 of the batch") != std::string::npos);
  }
  const Error e = error_of([&] { cholesky(batch); });
  CHECK(e.category() == Category::not_positive_definite);
  CHECK(std::string(e.what()).find("matrix 2 of the batch") != std::string::npos);
  CHECK(category_of([] { cholesky(full({1, 1}, NAN)); }) == Category::not_positive_definite);
  CHECK(category_of([] { inverse(ones({40, 40})); }) == Category::singular_matrix);
  CHECK(category_of([] { matrix_power(zeros({2, 2}), -1); }) == Category::singular_matrix);
}

TEST_CASE("systems that do not fit are refused") {
  const Tensor a = eye(3), batch = eye(3) + zeros({2, 1, 1});
  CHECK(category_of([&] { solve(a, ones({2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { solve(a, ones({2, 3})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { solve(a, ones({3}), false); }) == Category::shape_mismatch);
  CHECK(category_of([&] { solve(batch, ones({4, 3, 1})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { solve(a, ones({})); }) == Category::bad_dim);
  CHECK(category_of([&] { solve(ones({3}), ones({3, 3})); }) == Category::bad_dim);
  CHECK(category_of([&] { solve(ones({3, 2}), ones({2, 1})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { solve(a, ones({3}, {kFloat64})); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { solve_triangular(a, ones({3}), true); }) == Category::bad_dim);
  CHECK(category_of([&] { solve_triangular(a, ones({2, 1}), true); }) == Category::shape_mismatch);
  CHECK(category_of([&] { trace(batch); }) == Category::bad_dim);
  CHECK(category_of([&] { trace(ones({2, 2}, {kBool})); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { matrix_power(ones({2, 3}), 2); }) == Category::shape_mismatch);
  const Tensor divided = solve_triangular(zeros({2, 2}), ones({2, 1}), true);
  for (double v : divided.to_vector()) CHECK_FALSE(std::isfinite(v));
}

TEST_CASE("eye") {
  CHECK(eye(2, 3).to_vector() == std::vector<double>{1, 0, 0, 0, 1, 0});
  CHECK(eye(3, 1, {kInt64}).to_vector() == std::vector<double>{1, 0, 0});
  CHECK(eye(0, 3).sizes() == IntArray{0, 3});
  CHECK(eye(2, {}, {kBool}).to_vector() == std::vector<double>{1, 0, 0, 1});
  CHECK(category_of([] { eye(-1); }) == Category::bad_argument);
}

}  // namespace
}  // namespace retrograd
