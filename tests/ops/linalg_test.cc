// Linear algebra: residuals of every function (A inverse(A) = 1, L L' = A, A X = B), layouts, sizes of
// zero, saved factors, threads, errors. Derivatives and determinants: linalg_derivatives_test.cc,
// determinants_test.cc. Results against PyTorch: tests/conformance.
#include "ops/linalg.h"

#include "ops/linalg_parts.h"
#include "ops/matmul.h"
#include "ops/rearrange.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "retrograd/retrograd.h"
#include "tests/ops/matrices.h"

namespace retrograd {
namespace {

using namespace testing;

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

template <class Op>
Tensors results_of(std::initializer_list<TensorImpl*> operands, int8_t outputs) {
  const std::vector<TensorImpl*> list(operands);
  Tensors results(static_cast<size_t>(outputs));
  ops::NoAttrs attrs;
  Emitter::current().emit({&ops::info<Op>, list, &attrs, SourceLocation{}, outputs}, results.data());
  return results;
}

// Factors are saved for a backward, where a hook may change them, and are operands in the text of a graph.
TEST_CASE("row numbers that are no permutation are refused") {
  const Tensor a = regular({2}, 3), b = input({2, 3, 2}).detach();
  const Tensor lu = results_of<ops::LuFactor>({a.get()}, 2)[0];
  const auto with = [&](const std::vector<double>& rows) {
    const Tensor p = tensor(rows, {2, 3}, {kInt32});
    const ops::Factors f{a, lu, p};
    const auto category = [&]<class Op>(Op, int8_t outputs) {
      return category_of([&] { results_of<Op>({a.get(), lu.get(), p.get()}, outputs); });
    };
    for (const bool transposed : {false, true}) {
      const Error error = error_of([&] { ops::lu_solve(f, b, {transposed, false}, SourceLocation{}); });
      CHECK(error.category() == Category::bad_argument);
      CHECK_THAT(error.what(), Catch::Matchers::Contains("matrix 1 of the batch has row numbers"));
    }
    CHECK(category(ops::LuDet{}, 1) == Category::bad_argument);
    CHECK(category(ops::LuSlogdet{}, 2) == Category::bad_argument);
    CHECK(category(ops::Cofactor{}, 1) == Category::bad_argument);
  };
  with({0, 1, 2, 0, 0, 0});
  with({0, 1, 2, 1, 2, 1});
  with({0, 1, 2, 0, 1, 3});
  with({0, 1, 2, 0, -1, 2});
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
