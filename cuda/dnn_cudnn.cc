// cuDNN as a Dnn: its header is used if the toolkit has it; its functions are looked up when it is opened
// (cuda/cudnn_functions.h).
//
// It uses the functions of cudnn_cnn.h, not the operation graphs that cuDNN recommends since version 9, which
// deprecates these functions. They support all dtypes needed here, tell for each algorithm whether it is deterministic,
// and need much less code.
//
// A plan is everything that a call needs except its pointers: descriptors, and the first algorithm in the order of the
// library's heuristic (no kernel is run for the selection) that is deterministic, needs at most Dnn::kWorkspace and
// sums products of the untransformed operands. Algorithms that transform the operands first (FFT, Winograd) are
// excluded: an infinity would reach results that it is no term of, and cancellation loses digits. Plans are cached by
// sizes and types, at most kPlans of them.
//
// Declined: paddings that differ at the two ends, sides of 2^31 elements, and cases for which the library has no such
// algorithm.
#include "cuda/dnn.h"

#if __has_include(<cudnn.h>)
#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "cuda/cudnn_functions.h"

namespace retrograd::inline v0::cuda {
namespace {

using Functions = CudnnFunctions;

constexpr size_t kPlans = 4096;

bool succeeds(cudnnStatus_t status) { return status == CUDNN_STATUS_SUCCESS; }

cudnnDataType_t data_type(DnnType type) {
  switch (type) {
    case DnnType::f32: return CUDNN_DATA_FLOAT;
    case DnnType::f64: return CUDNN_DATA_DOUBLE;
    case DnnType::f16: return CUDNN_DATA_HALF;
    case DnnType::bf16: return CUDNN_DATA_BFLOAT16;
  }
  return CUDNN_DATA_FLOAT;
}

// CUDNN_DEFAULT_MATH allows float32 to be computed in TensorFloat-32.
cudnnMathType_t math_type(const DnnConvolution& c) {
  if (c.type == DnnType::f32) return c.tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  return c.type == DnnType::f64 ? CUDNN_DEFAULT_MATH : CUDNN_TENSOR_OP_MATH;
}
bool is_exact_enough(cudnnMathType_t math, const DnnConvolution& c) {
  if (c.type == DnnType::f32 && !c.tf32) return math == CUDNN_FMA_MATH;
  return math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
}

bool is_plain_sum(cudnnConvolutionFwdAlgo_t a) {
  return a == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM ||
         a == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM || a == CUDNN_CONVOLUTION_FWD_ALGO_GEMM ||
         a == CUDNN_CONVOLUTION_FWD_ALGO_DIRECT;
}
bool is_plain_sum(cudnnConvolutionBwdDataAlgo_t a) { return a == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1; }
bool is_plain_sum(cudnnConvolutionBwdFilterAlgo_t a) { return a == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1; }

int64_t product(const int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

// The library has one padding for both ends, and its sizes are ints.
bool fits(const DnnConvolution& c) {
  for (int d = 0; d < 3; ++d)
    if ((c.large[d] + 2 * c.padding[d] - c.dilation[d] * (c.kernel[d] - 1) - 1) / c.stride[d] + 1 !=
        c.small[d])
      return false;
  const int64_t channels = c.groups * c.channels, features = c.groups * c.features;
  return std::max({c.batch * channels * product(c.large), c.batch * features * product(c.small),
                   features * c.channels * product(c.kernel)}) <= INT32_MAX;
}

using Key = std::array<int64_t, 27>;

Key key_of(const DnnConvolution& c) {
  Key key = {static_cast<int64_t>(c.wanted),
             static_cast<int64_t>(c.type),
             c.tf32,
             c.dims,
             c.batch,
             c.groups,
             c.channels,
             c.features};
  int64_t* to = &key[8];
  for (const auto* list : {&c.large, &c.small, &c.kernel, &c.stride, &c.padding, &c.dilation})
    to = std::copy(*list, *list + 3, to);
  return key;
}

class Plan {
 public:
  Plan(const Functions& f, cudnnHandle_t handle, const DnnConvolution& c) : f_(f) {
    is_usable_ = fits(c) && describe(c) && choose(handle, c);
  }
  Plan(const Plan&) = delete;
  ~Plan() {
    if (convolution_) f_.DestroyConvolutionDescriptor(convolution_);
    if (weight_) f_.DestroyFilterDescriptor(weight_);
    for (cudnnTensorDescriptor_t side : {large_, small_})
      if (side) f_.DestroyTensorDescriptor(side);
  }

  std::optional<int64_t> workspace() const {
    return is_usable_ ? std::optional(static_cast<int64_t>(bytes_)) : std::nullopt;
  }

  bool run(cudnnHandle_t handle, const DnnConvolution& c, void* workspace) const {
    static constexpr float ones = 1, zeros = 0;
    static constexpr double one = 1, zero = 0;
    const bool is_double = c.type == DnnType::f64;
    const void* const alpha = is_double ? static_cast<const void*>(&one) : &ones;
    const void* const none = is_double ? static_cast<const void*>(&zero) : &zeros;
    const void* const beta = c.adds ? alpha : none;
    switch (c.wanted) {
      case DnnWanted::small:
        return succeeds(f_.ConvolutionForward(handle, alpha, large_, c.x, weight_, c.w, convolution_,
                                              forward_, workspace, bytes_, beta, small_, c.g));
      case DnnWanted::large:
        return succeeds(f_.ConvolutionBackwardData(handle, alpha, weight_, c.w, small_, c.g, convolution_,
                                                   data_, workspace, bytes_, beta, large_, c.x));
      case DnnWanted::weight:
        return succeeds(f_.ConvolutionBackwardFilter(handle, alpha, large_, c.x, small_, c.g, convolution_,
                                                     filter_, workspace, bytes_, beta, weight_, c.w));
    }
    return false;
  }

 private:
  // The first two sizes, and those of the spatial dims that count.
  static std::vector<int> with_places(int64_t first, int64_t second, const DnnConvolution& c,
                                      const int64_t (&places)[3]) {
    std::vector<int> sizes{static_cast<int>(first), static_cast<int>(second)};
    sizes.insert(sizes.end(), places + 3 - c.dims, places + 3);
    return sizes;
  }
  bool describe_side(cudnnTensorDescriptor_t& side, const DnnConvolution& c, int64_t channels,
                     const int64_t (&places)[3]) {
    const std::vector<int> sizes = with_places(c.batch, channels, c, places);
    std::vector<int> strides(sizes.size(), 1);
    for (size_t d = sizes.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * sizes[d];
    return succeeds(f_.CreateTensorDescriptor(&side)) &&
           succeeds(f_.SetTensorNdDescriptor(side, data_type(c.type), static_cast<int>(sizes.size()),
                                             sizes.data(), strides.data()));
  }
  bool describe_weight(const DnnConvolution& c) {
    const std::vector<int> sizes = with_places(c.groups * c.features, c.channels, c, c.kernel);
    return succeeds(f_.CreateFilterDescriptor(&weight_)) &&
           succeeds(f_.SetFilterNdDescriptor(weight_, data_type(c.type), CUDNN_TENSOR_NCHW,
                                             static_cast<int>(sizes.size()), sizes.data()));
  }
  bool describe(const DnnConvolution& c) {
    const auto last = [&](const int64_t(&list)[3]) {
      return std::array<int, 3>{static_cast<int>(list[3 - c.dims]), static_cast<int>(list[4 - c.dims]),
                                static_cast<int>(list[2])};
    };
    const cudnnDataType_t sums = c.type == DnnType::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    return describe_side(large_, c, c.groups * c.channels, c.large) &&
           describe_side(small_, c, c.groups * c.features, c.small) && describe_weight(c) &&
           succeeds(f_.CreateConvolutionDescriptor(&convolution_)) &&
           succeeds(f_.SetConvolutionNdDescriptor(convolution_, c.dims, last(c.padding).data(),
                                                  last(c.stride).data(), last(c.dilation).data(),
                                                  CUDNN_CROSS_CORRELATION, sums)) &&
           succeeds(f_.SetConvolutionGroupCount(convolution_, static_cast<int>(c.groups))) &&
           succeeds(f_.SetConvolutionMathType(convolution_, math_type(c)));
  }

  bool choose(cudnnHandle_t handle, const DnnConvolution& c) {
    switch (c.wanted) {
      case DnnWanted::small:
        return choose<cudnnConvolutionFwdAlgoPerf_t>(c, forward_, [&](int most, int* count, auto* list) {
          return f_.GetConvolutionForwardAlgorithm_v7(handle, large_, weight_, convolution_, small_, most,
                                                      count, list);
        });
      case DnnWanted::large:
        return choose<cudnnConvolutionBwdDataAlgoPerf_t>(c, data_, [&](int most, int* count, auto* list) {
          return f_.GetConvolutionBackwardDataAlgorithm_v7(handle, weight_, small_, convolution_, large_,
                                                           most, count, list);
        });
      case DnnWanted::weight:
        return choose<cudnnConvolutionBwdFilterAlgoPerf_t>(c, filter_, [&](int most, int* count, auto* list) {
          return f_.GetConvolutionBackwardFilterAlgorithm_v7(handle, large_, small_, convolution_, weight_,
                                                             most, count, list);
        });
    }
    return false;
  }
  // list(most, count, results) writes results in the order that the heuristic prefers.
  template <class Result, class Algorithm, class List>
  bool choose(const DnnConvolution& c, Algorithm& algorithm, List list) {
    constexpr int kMost = 32;  // each algorithm, for each type of arithmetic
    Result results[kMost];
    int count = 0;
    if (!succeeds(list(kMost, &count, results))) return false;
    for (const Result* r = results; r != results + count; ++r) {
      if (!succeeds(r->status) || r->determinism != CUDNN_DETERMINISTIC || !is_plain_sum(r->algo) ||
          r->memory > static_cast<size_t>(Dnn::kWorkspace) || !is_exact_enough(r->mathType, c))
        continue;
      algorithm = r->algo;
      bytes_ = r->memory;
      return succeeds(f_.SetConvolutionMathType(convolution_, r->mathType));
    }
    return false;
  }

  const Functions& f_;
  cudnnTensorDescriptor_t large_ = nullptr, small_ = nullptr;
  cudnnFilterDescriptor_t weight_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  cudnnConvolutionFwdAlgo_t forward_{};  // only one of the three is used
  cudnnConvolutionBwdDataAlgo_t data_{};
  cudnnConvolutionBwdFilterAlgo_t filter_{};
  size_t bytes_ = 0;
  bool is_usable_;
};

class Cudnn final : public Dnn {
 public:
  Cudnn(const Functions& f, cudnnHandle_t handle) : f_(f), handle_(handle) {}
  ~Cudnn() override {
    plans_.clear();
    f_.Destroy(handle_);
  }

  std::string name() const override {
    const size_t version = f_.GetVersion();  // 91900 is 9.19.0
    return "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
  }
  std::optional<int64_t> workspace(const DnnConvolution& c) override {
    std::lock_guard lock(mutex_);
    return plan(c).workspace();
  }
  bool convolve(const DnnConvolution& c, void* workspace, int64_t bytes, CUstream_st* stream) override {
    std::lock_guard lock(mutex_);
    const Plan& p = plan(c);
    return p.workspace().value_or(INT64_MAX) <= bytes && succeeds(f_.SetStream(handle_, stream)) &&
           p.run(handle_, c, workspace);
  }

 private:
  Plan& plan(const DnnConvolution& c) {
    const Key key = key_of(c);
    auto it = plans_.find(key);
    if (it == plans_.end()) {
      if (plans_.size() == kPlans) plans_.clear();
      it = plans_.try_emplace(key, f_, handle_, c).first;
    }
    return it->second;
  }

  const Functions f_;
  const cudnnHandle_t handle_;
  std::mutex mutex_;
  std::map<Key, Plan> plans_;
};

}  // namespace

std::unique_ptr<Dnn> open_cudnn(std::string& problem, void* library) {
  if (!library) library = find_cudnn(problem);
  if (!library) return nullptr;
  const Functions f(library);
  if (f.missing()) {
    problem = "the library has no " + std::string(f.missing());
    return nullptr;
  }
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = f.Create(&handle);
  if (!succeeds(status)) {
    problem = "cudnnCreate: " + std::string(f.GetErrorString(status));
    return nullptr;
  }
  return std::make_unique<Cudnn>(f, handle);
}

}  // namespace retrograd::cuda

#else

namespace retrograd::inline v0::cuda {

std::unique_ptr<Dnn> open_cudnn(std::string& problem, void*) {
  problem = "this was built without cudnn.h";
  return nullptr;
}

}  // namespace retrograd::cuda

#endif
