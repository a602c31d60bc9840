// OpenBLAS: the C interface of the BLAS, found at run time.
#include <dlfcn.h>

#include "benchmarks/gemm_sides/side.h"

namespace bench {
namespace {

enum Order { kRowMajor = 101 };
enum Transpose { kPlain = 111, kTransposed = 112 };
using Sgemm = void (*)(Order, Transpose, Transpose, int, int, int, float, const float*, int, const float*,
                       int, float, float*, int);

}  // namespace

std::vector<Side> openblas_side() {
  void* const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) return {};
  const auto sgemm = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
  const auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
  if (!sgemm || !set_threads) return {};
  const auto prepare = [sgemm](const Problem& p) -> std::function<rg::Tensor()> {
    if (p.dtype() != rg::kFloat32) return {};
    return [&p, sgemm] {
      const auto number = [](int64_t n) { return static_cast<int>(n); };
      sgemm(kRowMajor, p.product.a_transposed ? kTransposed : kPlain,
            p.product.b_transposed ? kTransposed : kPlain, number(p.product.m), number(p.product.n),
            number(p.product.k), 1, p.a.data_ptr<float>(), number(p.a_row()), p.b.data_ptr<float>(),
            number(p.b_row()), 0, p.c.data_ptr<float>(), number(p.product.n));
      return p.c;
    };
  };
  return {{"openblas", set_threads, prepare}};
}

}  // namespace bench
