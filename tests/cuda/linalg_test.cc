// Linear algebra on a device against the CPU: every op of ops/linalg.h, sizes around the edges of tiles and panels,
// batches, layouts; errors, which are thrown when the device is waited for.
#include "ops/counts.h"
#include "ops/distances.h"
#include "ops/factorizations.h"
#include "ops/matrix_functions.h"
#include "ops/order_statistics.h"
#include "ops/products.h"
#include "ops/search.h"
#include "ops/spectral.h"
#include "tests/cuda/linalg_cases.h"

using namespace retrograd;

TEST_CASE("LU factors and their permutation") {
  for_all([](const Batch& b, ScalarType dtype) {
    const Tensor a = regular(b, dtype);
    against_cpu<ops::LuFactor>({a}, {}, 2, scale_of(b));
    against_cpu<ops::LuFactor>({in_columns(a)}, {}, 2, scale_of(b));
  });
}

TEST_CASE("LU factors of matrices without a pivot") {
  device_on_host();
  for (ScalarType dtype : {kFloat32, kFloat64}) {
    against_cpu<ops::LuFactor>({zeros({2, 3, 3}, {dtype})}, {}, 2);
    against_cpu<ops::LuFactor>({tensor({1, 2, 3, 2, 4, 6, 1, 1, 1}, {3, 3}, {dtype})}, {}, 2);
    // Of pivots of one size the first is taken.
    against_cpu<ops::LuFactor>({tensor({1, 2, -3, 1, -1, 5, -1, 3, 1}, {3, 3}, {dtype})}, {}, 2);
  }
}

TEST_CASE("systems with LU factors") {
  for_all([](const Batch& b, ScalarType dtype) {
    const Factored f = factor(regular(b, dtype));
    for (int64_t columns : {0, 1, 3, 33})
      for (bool transposed : {false, true}) {
        const Tensor rhs = unit_numbers(matrices(b, columns), dtype);
        against_cpu<ops::LuSolve>({f.a, f.lu, f.p, rhs}, {transposed, true}, 1, scale_of(b));
        against_cpu<ops::LuSolve>({f.a, f.lu, f.p, in_columns(rhs)}, {transposed, false}, 1, scale_of(b));
      }
  });
}

TEST_CASE("factors of one matrix solve a batch of systems") {
  device_on_host();
  for (ScalarType dtype : {kFloat32, kFloat64}) {
    const Tensor a = regular({{}, 6}, dtype), b = unit_numbers({2, 3, 6, 4}, dtype);
    expect_same(solve(a, b), solve(a.to(kCUDA), b.to(kCUDA)), 40);
    const Tensor right = unit_numbers({2, 4, 6}, dtype);
    expect_same(solve(a, right, false), solve(a.to(kCUDA), right.to(kCUDA), false), 40);
    expect_same(solve(a, b.select(-1, 0).select(0, 0).select(0, 0)),
                solve(a.to(kCUDA), b.select(-1, 0).select(0, 0).select(0, 0).to(kCUDA)), 40);
  }
}

TEST_CASE("triangular systems") {
  for_all([](const Batch& b, ScalarType dtype) {
    // Triangles of unit diagonal have to have small elements: else errors grow with two to the n.
    const Tensor t = unit_numbers(matrices(b), dtype) * (1.0 / static_cast<double>(b.n + 1)) +
                     (b.n == 0 ? zeros({0, 0}, {dtype}) : eye(b.n, {}, {dtype}));
    for (int64_t columns : {0, 1, 34})
      for (bool upper : {false, true})
        for (bool unit : {false, true}) {
          const Tensor rhs = unit_numbers(matrices(b, columns), dtype);
          against_cpu<ops::SolveTriangular>({t, rhs}, {upper, unit}, 1, scale_of(b));
          against_cpu<ops::SolveTriangular>({in_columns(t), in_columns(rhs)}, {upper, unit}, 1, scale_of(b));
        }
  });
}

TEST_CASE("Cholesky factors read one triangle") {
  for_all([](const Batch& b, ScalarType dtype) {
    const Tensor a = positive(b, dtype);
    for (bool upper : {false, true}) {
      const Tensor other = upper ? triu(a) : tril(a);
      against_cpu<ops::Cholesky>({a}, {upper}, 1, scale_of(b));
      against_cpu<ops::Cholesky>({in_columns(other)}, {upper}, 1, scale_of(b));
    }
  });
}

TEST_CASE("inverse matrices") {
  for_all([](const Batch& b, ScalarType dtype) {
    const Tensor a = regular(b, dtype);
    against_cpu<ops::Inverse>({a}, {}, 1, scale_of(b));
    against_cpu<ops::Inverse>({in_columns(a)}, {}, 1, scale_of(b));
  });
}

TEST_CASE("determinants, their signs and logarithms") {
  for_all([](const Batch& b, ScalarType dtype) {
    const Factored f = factor(regular(b, dtype) * 0.25);
    against_cpu<ops::LuDet>({f.a, f.lu, f.p}, {}, 1, scale_of(b));
    against_cpu<ops::LuSlogdet>({f.a, f.lu, f.p}, {}, 2, scale_of(b));
  });
  const Factored singular = factor(zeros({2, 3, 3}));
  against_cpu<ops::LuDet>({singular.a, singular.lu, singular.p}, {});
  against_cpu<ops::LuSlogdet>({singular.a, singular.lu, singular.p}, {}, 2);
}

namespace {

// Of rank n - `lost`.
Tensor of_rank(const Batch& b, int64_t lost, ScalarType dtype) {
  const Tensor left = unit_numbers(matrices(b, b.n - lost), dtype);
  return matmul(left, unit_numbers(matrices(b, b.n - lost), dtype).transpose(-2, -1));
}

}  // namespace

TEST_CASE("cofactors, of singular matrices too, and their derivative") {
  device_on_host();
  for (ScalarType dtype : {kFloat32, kFloat64})
    for (const Batch& b : {Batch{{}, 1}, Batch{{}, 2}, Batch{{3}, 5}, Batch{{2, 2}, 4}, Batch{{}, 9},
                           Batch{{2}, 0}, Batch{{0}, 3}})
      for (int64_t lost = 0; lost < 3 && lost <= b.n; ++lost) {
        const Tensor a = lost ? of_rank(b, lost, dtype) : regular(b, dtype) * 0.25;
        const Factored f = factor(a);
        INFO(to_string(Shape(matrices(b))) << " of rank n - " << lost);
        against_cpu<ops::Cofactor>({a, f.lu, f.p}, {}, 1, 400);
        against_cpu<ops::CofactorDerivative>({a, unit_numbers(matrices(b), dtype)}, {}, 1, 400);
        against_cpu<ops::CofactorDerivative>({in_columns(a), in_columns(unit_numbers(matrices(b), dtype))},
                                             {}, 1, 400);
      }
}

TEST_CASE("a batch of which some matrices are singular has the cofactors of all") {
  device_on_host();
  const Tensor a = cat({regular({{2}, 4}, kFloat64), of_rank({{1}, 4}, 1, kFloat64),
                        regular({{1}, 4}, kFloat64), zeros({1, 4, 4}, {kFloat64})});
  const Factored f = factor(a);
  against_cpu<ops::Cofactor>({a, f.lu, f.p}, {}, 1, 100);
}

namespace {

// Relative to the largest result: sums of many terms cancel.
template <class Op>
void expect_near_cpu(const Tensors& operands) {
  Tensors there;
  for (const Tensor& x : operands) there.push_back(with_layout_on_device(x));
  const Tensor expected = results_of<Op>(operands, {}, 1)[0], found = results_of<Op>(there, {}, 1)[0];
  const auto largest = [](const Tensor& x) { return retrograd::max(retrograd::abs(x)).item<double>(); };
  INFO(Op::name);
  CHECK(largest(expected) > 0);
  CHECK(largest(found.to(kCPU) - expected) <= 1e-8 * largest(expected));
}

}  // namespace

TEST_CASE("full pivoting in shared memory and beyond it") {
  device_on_host();
  for (int64_t n : {71, 72})
    for (int64_t lost : {0, 1}) {
      const Batch b{{}, n};
      const Tensor a = (lost ? of_rank(b, lost, kFloat64) : regular(b, kFloat64)) * 0.125;
      const Factored f = factor(a);
      INFO(n << " of rank n - " << lost);
      expect_near_cpu<ops::Cofactor>({a, f.lu, f.p});
      expect_near_cpu<ops::CofactorDerivative>({a, unit_numbers(matrices(b), kFloat64)});
    }
}

TEST_CASE("more matrices than a launch has blocks") {
  device_on_host();
  const Batch b{{4100}, 1};
  const Tensor a = regular(b, kFloat32), d = unit_numbers(matrices(b), kFloat32);
  const Factored f = factor(a);
  against_cpu<ops::LuFactor>({a}, {}, 2);
  against_cpu<ops::Cholesky>({a * a + 1.0}, {}, 1);
  against_cpu<ops::LuDet>({f.a, f.lu, f.p}, {});
  against_cpu<ops::LuSolve>({f.a, f.lu, f.p, d}, {false, true});
  against_cpu<ops::CofactorDerivative>({a, d}, {});
}

// Nothing of what computes may depend on chance: not the order of blocks, and not a library that sums in another order
// each time.
TEST_CASE("factors of one matrix have the same bits each time") {
  device_on_host();
  for (cuda::SolverUse use : solver_uses()) {
    cuda::gpu_of(0).use_solver(use);
    for (ScalarType dtype : {kFloat32, kFloat64}) {
      const Batch b{{2}, is_on_host() ? 70 : 700};
      const Tensor a = regular(b, dtype).to(kCUDA), p = positive(b, dtype).to(kCUDA);
      const auto bits = [&] {
        const Tensors f = results_of<ops::LuFactor>({a}, {}, 2);
        return std::vector{f[0].to_vector(), f[1].to_vector(), cholesky(p).to_vector()};
      };
      const auto first = bits();
      for (int i = 0; i < 3; ++i) CHECK(bits() == first);
    }
  }
  cuda::gpu_of(0).use_solver(cuda::SolverUse::where_it_wins);
}

TEST_CASE("gradients of all of them") {
  device_on_host();
  const Tensor host = tensor({4, 1, 0.5, 1, 3, 0.25, 0.5, 0.25, 2}, {3, 3}, {kFloat64});
  const auto gradient = [](const Tensor& at) {
    const Tensor m = at.detach().requires_grad_();
    sum(sum(solve(m, m.narrow(1, 0, 2))) + sum(cholesky(m)) + det(m) + slogdet(m).logabsdet +
        sum(inverse(m.t())) + sum(solve_triangular(m, m, true)))
        .backward();
    return m.grad();
  };
  expect_same(gradient(host), gradient(host.to(kCUDA)), 10);
}

TEST_CASE("matrices that cannot be factored are reported when the device is waited for") {
  device_on_host();
  for (ScalarType dtype : {kFloat32, kFloat64}) {
    const Tensor one = zeros({3, 3}, {dtype}), unit = eye(3, {}, {dtype});
    const Tensor batch = stack({unit, unit, one, unit, one}).reshape({5, 3, 3});
    const auto invert = [](const Tensors& t) { inverse(t[0]); };
    expect_failure({one}, "inverse: the matrix is singular", invert);
    expect_failure({batch}, "inverse: matrix 2 of the batch is singular", invert);
    expect_failure({batch, stack({unit, unit, unit, unit, unit})}, "matrix 2 of the batch is singular",
                   [](const Tensors& t) { solve(t[0], t[1]); });
    for (double bad : {0.0, -1.0, double(NAN)}) {
      const Tensor hurt = unit * tensor({1, 1, bad}, {3}, {dtype});
      for (bool upper : {false, true}) {
        const auto decompose = [upper](const Tensors& t) { cholesky(t[0], upper); };
        expect_failure({hurt}, "cholesky: the matrix is not positive definite", decompose);
        expect_failure({stack({unit, hurt, hurt})},
                       "cholesky: matrix 1 of the batch is not positive definite", decompose);
      }
    }
  }
}

TEST_CASE("row numbers that are no permutation are reported before matrices that are singular") {
  device_on_host();
  const Tensor unit = eye(3), lu = stack({zeros({3, 3}), unit, unit});
  for (const std::vector<double>& numbers :
       {std::vector<double>{0, 1, 1}, std::vector<double>{0, 1, 3}, std::vector<double>{-1, 1, 2}}) {
    std::vector<double> all = {0, 1, 2, 0, 1, 2};
    all.insert(all.end(), numbers.begin(), numbers.end());
    const Tensor p = tensor(all, {3, 3}, kInt32);
    const std::string words = "matrix 2 of the batch has row numbers, operand 2, that are no permutation";
    expect_failure({lu, p}, words, [&](const Tensors& t) {
      results_of<ops::LuSolve>({t[0], t[0], t[1], t[0]}, {false, true}, 1);
    });
    expect_failure({lu, p}, words, [&](const Tensors& t) {
      results_of<ops::LuDet>({t[0], t[0], t[1]}, {}, 1);
    });
    expect_failure({lu, p}, words, [&](const Tensors& t) {
      results_of<ops::Cofactor>({t[0], t[0], t[1]}, {}, 1);
    });
  }
}

TEST_CASE("linear algebra leaves nothing to the CPU", "[host]") {
  cuda::HostDriver& driver = device_on_host();
  const Tensor a = regular({{2}, 5}, kFloat64).to(kCUDA);
  inverse(a);  // the first note of a fault takes memory
  driver.log.clear();
  const int waits = driver.synchronizations;
  const Tensor x = solve(a, inverse(a)), y = det(a), z = cholesky(matmul(a, a.transpose(-2, -1)));
  INFO(driver.log);
  CHECK(driver.log.find("copy") == std::string::npos);
  CHECK(driver.synchronizations == waits);
  cuda::gpu_of(0).synchronize();
}

TEST_CASE("what the host computes for a device") {
  device_on_host();
  for (ScalarType dtype : {kFloat32, kFloat64}) {
    const Tensor tall = unit_numbers({2, 5, 3}, dtype), square = regular({{2}, 4}, dtype);
    for (const Tensor& a : {tall, in_columns(tall)}) {
      against_cpu<ops::Svd>({a}, {false}, 3);
      against_cpu<ops::Svdvals>({a}, {});
      against_cpu<ops::Qr>({a}, {true}, 2);
      against_cpu<ops::PivotedLu>({a}, {}, 2);
      against_cpu<ops::Pinv>({a}, {0.0, -1.0, false});
      against_cpu<ops::Lstsq>({a, a}, {});
      against_cpu<ops::Cross>({a, a * 2.0}, {2});
    }
    for (const Tensor& a : {square, in_columns(square)}) {
      against_cpu<ops::Eigh>({a}, {true}, 2);
      against_cpu<ops::Eigvalsh>({a}, {false});
      against_cpu<ops::MatrixExp>({a * 0.1}, {});
    }
  }
  const Tensor rows = unit_numbers({5, 3}, kFloat32), sorted = linspace(-1, 1, 9);
  against_cpu<ops::Cdist>({rows, rows * 0.5}, {2});
  against_cpu<ops::Mode>({round(rows * 2)}, {{1}, false}, 2);
  against_cpu<ops::MedianOfAll>({rows}, {});
  against_cpu<ops::Histc>({rows}, {4, -1, 1});
  expect_same(searchsorted(sorted, rows), searchsorted(sorted.cuda(), rows.cuda()), 1);  // without a sorter
  against_cpu<ops::PivotOrder>({tensor({2, 3, 3}, {3}, {kInt32})}, {4, true});
  CHECK(category_of([] {
          linalg::lu_factor(zeros({2, 2}, {kFloat32, kCUDA}));
        }) == Category::singular_matrix);
}
