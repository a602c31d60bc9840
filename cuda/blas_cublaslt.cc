// cuBLASLt as a Blas, in a build with the toolkit: its header is used; its functions are looked up when it is opened.
//
// It is column-major. A row-major matrix, read by columns, is its transpose, so the computation is out' = b' a': the
// first factor here is b.
//
// A plan is everything that a call needs except its pointers: descriptors, and the first algorithm of the library's
// heuristic. Plans are cached by sizes, distances, types and alignments, at most kPlans of them; a program whose sizes
// never repeat clears the cache. Algorithms that add split sums in the type of the result, or by atomics, are excluded
// (reduction scheme).
#include <cublasLt.h>
#include <dlfcn.h>

#include <array>
#include <map>
#include <mutex>
#include <string>

#include "cuda/blas.h"
#include "cuda/open_library.h"

namespace retrograd::inline v0::cuda {
namespace {

constexpr size_t kPlans = 4096;

struct Functions {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulDescCreate) create_description;
  decltype(&cublasLtMatmulDescDestroy) destroy_description;
  decltype(&cublasLtMatmulDescSetAttribute) set_description;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
};

template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

// Null if the library or one of the functions is missing. The library stays open.
const Functions* functions() {
  static const Functions* found = []() -> const Functions* {
    std::string problem;
    void* library = open_library("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR), problem);
    if (!library) return nullptr;
    static Functions f;
    const bool all = find(library, "cublasLtCreate", f.create) &&
                     find(library, "cublasLtDestroy", f.destroy) &&
                     find(library, "cublasLtMatmul", f.matmul) &&
                     find(library, "cublasLtMatmulAlgoGetHeuristic", f.heuristic) &&
                     find(library, "cublasLtMatmulDescCreate", f.create_description) &&
                     find(library, "cublasLtMatmulDescDestroy", f.destroy_description) &&
                     find(library, "cublasLtMatmulDescSetAttribute", f.set_description) &&
                     find(library, "cublasLtMatrixLayoutCreate", f.create_layout) &&
                     find(library, "cublasLtMatrixLayoutDestroy", f.destroy_layout) &&
                     find(library, "cublasLtMatrixLayoutSetAttribute", f.set_layout) &&
                     find(library, "cublasLtMatmulPreferenceCreate", f.create_preference) &&
                     find(library, "cublasLtMatmulPreferenceDestroy", f.destroy_preference) &&
                     find(library, "cublasLtMatmulPreferenceSetAttribute", f.set_preference);
    return all ? &f : nullptr;
  }();
  return found;
}

cudaDataType_t data_type(BlasType type) {
  switch (type) {
    case BlasType::f32: return CUDA_R_32F;
    case BlasType::f64: return CUDA_R_64F;
    case BlasType::f16: return CUDA_R_16F;
    case BlasType::bf16: return CUDA_R_16BF;
  }
  return CUDA_R_32F;
}

cublasComputeType_t compute_type(const BlasProduct& p) {
  if (p.type == BlasType::f64) return CUBLAS_COMPUTE_64F;
  return p.type == BlasType::f32 && p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// The alignment of an address: the power of two that divides it, at most 16 bytes, the largest that a load or a tensor
// copy needs. So a larger alignment, which depends on the plan's placement, does not select another algorithm with
// other bits.
uint32_t alignment(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return address % 16 == 0 ? 16 : static_cast<uint32_t>(address & (~address + 1));
}

using Key = std::array<int64_t, 22>;

Key key_of(const BlasProduct& p) {
  return {static_cast<int64_t>(p.type),
          p.tf32,
          p.m,
          p.n,
          p.k,
          p.batches,
          p.a.turned,
          p.a.step,
          p.a.batch,
          p.b.turned,
          p.b.step,
          p.b.batch,
          p.start.data != nullptr,
          p.start.step,
          p.start.batch,
          p.out_step,
          p.out_batch,
          p.bias != nullptr,
          alignment(p.a.data),
          alignment(p.b.data),
          alignment(p.start.data),
          alignment(p.out)};
}

// The pointer for which an algorithm is chosen, for any bias: the library derives the alignment from the pointer.
const void* const kAnyBias = reinterpret_cast<const void*>(BlasProduct::kBiasAlignment);

class Plan {
 public:
  Plan(const Functions& f, cublasLtHandle_t handle, const BlasProduct& p) : f_(f) {
    is_usable_ = describe(p) && lay_out(p) && choose(handle, p);
  }
  Plan(const Plan&) = delete;
  ~Plan() {
    if (description_) f_.destroy_description(description_);
    for (cublasLtMatrixLayout_t layout : {first_, second_, start_, out_})
      if (layout) f_.destroy_layout(layout);
  }

  bool run(cublasLtHandle_t handle, const BlasProduct& p, void* workspace, CUstream_st* stream) {
    if (!is_usable_ || (p.bias && !set_bias(p.bias))) return false;
    const float alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
    const bool is_double = p.type == BlasType::f64;
    const void* const factor = is_double ? static_cast<const void*>(&p.alpha) : &alpha;
    const void* const start_factor = is_double ? static_cast<const void*>(&p.beta) : &beta;
    return f_.matmul(handle, description_, factor, p.b.data, first_, p.a.data, second_, start_factor,
                     p.start.data ? p.start.data : p.out, start_, p.out, out_, &algorithm_, workspace,
                     Blas::kWorkspace, stream) == CUBLAS_STATUS_SUCCESS;
  }

 private:
  template <class T>
  bool set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return f_.set_description(description_, attribute, &value, sizeof(T)) == CUBLAS_STATUS_SUCCESS;
  }
  bool set_bias(const void* bias) { return set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }

  bool describe(const BlasProduct& p) {
    const cudaDataType_t scale = p.type == BlasType::f64 ? CUDA_R_64F : CUDA_R_32F;
    const cublasOperation_t first = p.b.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = p.a.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue = p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    return f_.create_description(&description_, compute_type(p), scale) == CUBLAS_STATUS_SUCCESS &&
           set(CUBLASLT_MATMUL_DESC_TRANSA, first) && set(CUBLASLT_MATMUL_DESC_TRANSB, second) &&
           set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue) && (!p.bias || set_bias(kAnyBias));
  }

  // `rows`, `columns`: as the library counts them.
  bool make(cublasLtMatrixLayout_t& layout, const BlasProduct& p, int64_t rows, int64_t columns, int64_t step,
            int64_t batch) {
    const auto batches = static_cast<int32_t>(p.batches);
    const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
      return f_.set_layout(layout, attribute, &value, sizeof(value)) == CUBLAS_STATUS_SUCCESS;
    };
    return f_.create_layout(&layout, data_type(p.type), static_cast<uint64_t>(rows),
                            static_cast<uint64_t>(columns), step) == CUBLAS_STATUS_SUCCESS &&
           set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batches) &&
           set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch);
  }
  bool lay_out(const BlasProduct& p) {
    const int64_t start_step = p.start.data ? p.start.step : p.out_step;
    const int64_t start_batch = p.start.data ? p.start.batch : p.out_batch;
    return p.batches <= INT32_MAX &&
           make(first_, p, p.b.turned ? p.k : p.n, p.b.turned ? p.n : p.k, p.b.step, p.b.batch) &&
           make(second_, p, p.a.turned ? p.m : p.k, p.a.turned ? p.k : p.m, p.a.step, p.a.batch) &&
           make(start_, p, p.n, p.m, start_step, start_batch) &&
           make(out_, p, p.n, p.m, p.out_step, p.out_batch);
  }

  bool choose(cublasLtHandle_t handle, const BlasProduct& p) {
    cublasLtMatmulPreference_t preference = nullptr;
    if (f_.create_preference(&preference) != CUBLAS_STATUS_SUCCESS) return false;
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      return f_.set_preference(preference, attribute, &value, sizeof(value)) == CUBLAS_STATUS_SUCCESS;
    };
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const bool all =
        set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(Blas::kWorkspace)) &&
        set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}) &&
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(p.b.data)) &&
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(p.a.data)) &&
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(p.start.data ? p.start.data : p.out)) &&
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(p.out)) &&
        f_.heuristic(handle, description_, first_, second_, start_, out_, preference, 1, &best, &found) ==
            CUBLAS_STATUS_SUCCESS;
    f_.destroy_preference(preference);
    algorithm_ = best.algo;
    return all && found > 0 && best.state == CUBLAS_STATUS_SUCCESS;
  }

  const Functions& f_;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, start_ = nullptr, out_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  bool is_usable_;
};

class CublasLt final : public Blas {
 public:
  CublasLt(const Functions& f, cublasLtHandle_t handle) : f_(f), handle_(handle) {}
  ~CublasLt() override {
    plans_.clear();
    f_.destroy(handle_);
  }

  bool multiply(const BlasProduct& p, void* workspace, CUstream_st* stream) override {
    std::lock_guard lock(mutex_);
    const Key key = key_of(p);
    auto it = plans_.find(key);
    if (it == plans_.end()) {
      if (plans_.size() == kPlans) plans_.clear();
      it = plans_.try_emplace(key, f_, handle_, p).first;
    }
    return it->second.run(handle_, p, workspace, stream);
  }

 private:
  const Functions& f_;
  const cublasLtHandle_t handle_;
  std::mutex mutex_;
  std::map<Key, Plan> plans_;
};

}  // namespace

std::unique_ptr<Blas> open_cublaslt() {
  const Functions* f = functions();
  cublasLtHandle_t handle = nullptr;
  if (!f || f->create(&handle) != CUBLAS_STATUS_SUCCESS) return nullptr;
  return std::make_unique<CublasLt>(*f, handle);
}

}  // namespace retrograd::cuda
