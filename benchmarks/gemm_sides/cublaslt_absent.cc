// Replaces cublaslt.cc in a program without the CUDA component. Weak: a program with it has both.
#include "benchmarks/gemm_sides/side.h"

namespace bench {

[[gnu::weak]] std::vector<Side> cublaslt_side(const Place&) { return {}; }

}  // namespace bench
