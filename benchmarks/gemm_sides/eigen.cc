// Eigen as a side (side.h): C is divided along its longer side, and each thread of our pool computes a piece of it,
// since Eigen's own threads are OpenMP's. The product of a piece is in eigen_product.cc, which is compiled for this
// machine.
#include "benchmarks/gemm_sides/eigen_product.h"
#include "benchmarks/gemm_sides/side.h"

namespace bench {
namespace {

// C is divided along its longer side.
EigenPiece piece_of(const Product& p, int64_t i, int64_t count) {
  const auto cut = [&](int64_t size) { return size * i / count; };
  const auto next = [&](int64_t size) { return size * (i + 1) / count; };
  if (p.m >= p.n) return {cut(p.m), next(p.m) - cut(p.m), 0, p.n};
  return {0, p.m, cut(p.n), next(p.n) - cut(p.n)};
}

EigenOperand operand(const rg::Tensor& x, bool transposed) {
  return {x.data_ptr<float>(), x.size(0), x.size(1), transposed};
}

}  // namespace

Side eigen_side() {
  return {"eigen", [](int threads) { rg::cpu::set_num_threads(threads); },
          [](const Problem& p) -> std::function<rg::Tensor()> {
            if (p.dtype() != rg::kFloat32) return {};  // Eigen 3.4 multiplies 16-bit floats one by one
            return [&p] {
              const int64_t threads = rg::cpu::get_num_threads();
              rg::cpu::parallel_for(threads, [&](int64_t i) {
                eigen_product(operand(p.a, p.product.a_transposed), operand(p.b, p.product.b_transposed),
                              p.c.data_ptr<float>(), p.product.m, p.product.n,
                              piece_of(p.product, i, threads));
              });
              return p.c;
            };
          }};
}

}  // namespace bench
