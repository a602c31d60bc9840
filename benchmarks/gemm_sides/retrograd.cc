// Our side: the public matmul, whose result is a new tensor in each run. A transposed operand is a view.
#include "benchmarks/gemm_sides/side.h"

namespace bench {

Side retrograd_side() {
  return {"retrograd", [](int threads) { rg::cpu::set_num_threads(threads); },
          [](const Problem& p) -> std::function<rg::Tensor()> {
            const auto view = [](const rg::Tensor& x, bool transposed) { return transposed ? x.t() : x; };
            return [a = view(p.a, p.product.a_transposed), b = view(p.b, p.product.b_transposed)] {
              return rg::matmul(a, b);
            };
          }};
}

}  // namespace bench
