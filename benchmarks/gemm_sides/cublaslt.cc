// cuBLASLt: descriptors, layouts and algorithm are made once for a problem, and each run is one call on the device's
// compute stream. It is column-major: it computes C' = B' A', whose columns are the rows of C. The header is available
// in a build with the toolkit; the library is searched for at run time.
#include "benchmarks/gemm_sides/side.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <dlfcn.h>

#include <memory>
#include <stdexcept>

#include "cuda/device.h"
#include "cuda/executor.h"

namespace bench {
namespace {

constexpr size_t kWorkspace = size_t{32} << 20;

void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error("cuBLASLt: status " + std::to_string(status));
}

struct Library {
  void* const handle = open();
  template <class F>
  F* find(const char* name) const {
    return reinterpret_cast<F*>(dlsym(handle, name));
  }
#define RG_FUNCTION(name) decltype(::name)* const name = handle ? find<decltype(::name)>(#name) : nullptr
  RG_FUNCTION(cublasLtCreate);
  RG_FUNCTION(cublasLtMatmul);
  RG_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
  RG_FUNCTION(cublasLtMatmulDescCreate);
  RG_FUNCTION(cublasLtMatmulDescDestroy);
  RG_FUNCTION(cublasLtMatmulDescSetAttribute);
  RG_FUNCTION(cublasLtMatrixLayoutCreate);
  RG_FUNCTION(cublasLtMatrixLayoutDestroy);
  RG_FUNCTION(cublasLtMatmulPreferenceCreate);
  RG_FUNCTION(cublasLtMatmulPreferenceDestroy);
  RG_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
#undef RG_FUNCTION
  cublasLtHandle_t blas = nullptr;

  static void* open() {
    const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
    if (void* found = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
    return dlopen(("/usr/local/cuda/lib64/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
};

class Matmul {
 public:
  Matmul(const std::shared_ptr<const Library>& library, rg::cuda::Gpu& gpu, const Problem& p)
      : l_(library), gpu_(gpu), p_(p), workspace_(rg::empty({kWorkspace}, {rg::kUInt8, p.c.device()})) {
    const auto [m, n, k, a_transposed, b_transposed, batch] = p.product;
    check(l_->cublasLtMatmulDescCreate(&matmul_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, bool transposed) {
      const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
      check(l_->cublasLtMatmulDescSetAttribute(matmul_, attribute, &operation, sizeof(operation)));
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, b_transposed);
    set(CUBLASLT_MATMUL_DESC_TRANSB, a_transposed);
    b_ = layout(b_transposed ? k : n, b_transposed ? n : k);
    a_ = layout(a_transposed ? m : k, a_transposed ? k : m);
    c_ = layout(n, m);
    choose();
  }
  Matmul(const Matmul&) = delete;
  ~Matmul() {
    for (cublasLtMatrixLayout_t layout : {a_, b_, c_}) l_->cublasLtMatrixLayoutDestroy(layout);
    l_->cublasLtMatmulDescDestroy(matmul_);
  }

  void run() const {
    const float one = 1, zero = 0;
    check(l_->cublasLtMatmul(l_->blas, matmul_, &one, p_.b.raw_data(), b_, p_.a.raw_data(), a_, &zero,
                             p_.c.raw_data(), c_, p_.c.raw_data(), c_, &algorithm_, workspace_.raw_data(),
                             kWorkspace, gpu_.compute().handle()));
  }

 private:
  // Column-major and contiguous.
  cublasLtMatrixLayout_t layout(int64_t rows, int64_t columns) const {
    const cudaDataType_t type = p_.dtype() == rg::kFloat32 ? CUDA_R_32F : CUDA_R_16BF;
    cublasLtMatrixLayout_t made = nullptr;
    check(l_->cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows),
                                         static_cast<uint64_t>(columns), rows));
    return made;
  }

  void choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    check(l_->cublasLtMatmulPreferenceCreate(&preference));
    const uint64_t bytes = kWorkspace;
    check(l_->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &bytes, sizeof(bytes)));
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    check(
        l_->cublasLtMatmulAlgoGetHeuristic(l_->blas, matmul_, b_, a_, c_, c_, preference, 1, &best, &found));
    l_->cublasLtMatmulPreferenceDestroy(preference);
    if (found == 0) throw std::runtime_error("cuBLASLt has no algorithm for a product");
    algorithm_ = best.algo;
  }

  std::shared_ptr<const Library> l_;
  rg::cuda::Gpu& gpu_;
  const Problem& p_;
  const rg::Tensor workspace_;
  cublasLtMatmulDesc_t matmul_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace

std::vector<Side> cublaslt_side(const Place& place) {
  if (rg::cuda::device_count() == 0) return {};  // the device is a stand-in
  rg::cuda::Gpu& gpu = rg::cuda::gpu_of(place.device().index());
  const auto library = std::make_shared<Library>();
  gpu.begin();
  if (!library->handle || library->cublasLtCreate(&library->blas) != CUBLAS_STATUS_SUCCESS) return {};
  const auto prepare = [library, &gpu](const Problem& p) -> std::function<rg::Tensor()> {
    return [matmul = std::make_shared<const Matmul>(library, gpu, p), c = p.c] {
      matmul->run();
      return c;
    };
  };
  return {{"cublaslt", [](int) {}, prepare}};
}

}  // namespace bench

#else

namespace bench {
std::vector<Side> cublaslt_side(const Place&) { return {}; }
}  // namespace bench

#endif
