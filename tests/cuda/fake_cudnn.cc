// See tests/cuda/fake_cudnn.h.
#if defined(RG_WITH_TOOLKIT) && __has_include(<cudnn.h>)
#include "tests/cuda/fake_cudnn.h"

#include "tests/cuda/plain_dnn.h"

struct cudnnTensorStruct {
  cudnnDataType_t type;
  std::vector<int> sizes, strides;
};
struct cudnnFilterStruct {
  cudnnDataType_t type;
  std::vector<int> sizes;
};
struct cudnnConvolutionStruct {
  std::vector<int> padding, stride, dilation;
  cudnnDataType_t sums;
  int groups = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};
struct cudnnContext {
  cudaStream_t stream = nullptr;
};

using namespace retrograd;
using fake_cudnn::kBytes;
using fake_cudnn::world;

namespace {

template <class T>
cudnnStatus_t make(T** made) {
  *made = new T;
  ++world.live;
  return CUDNN_STATUS_SUCCESS;
}
template <class T>
cudnnStatus_t end(T* made) {
  delete made;
  --world.live;
  return CUDNN_STATUS_SUCCESS;
}

// What a heuristic may say: the best one adds in any order, the next ones want too much memory, transform, or have not
// the digits.
template <class Result, class Algorithm>
cudnnStatus_t list(cudnnConvolutionDescriptor_t c, const std::vector<int>& good, int transforms, int most,
                   int* count, Result* results) {
  ++world.questions;
  world.asked = c->math;
  std::vector<Result> all;
  const auto add = [&](int algorithm, cudnnDeterminism_t determinism, size_t memory, cudnnMathType_t math,
                       cudnnStatus_t status = CUDNN_STATUS_SUCCESS) {
    all.push_back({static_cast<Algorithm>(algorithm), status, 1, memory, determinism, math, {}});
  };
  add(good[0], CUDNN_NON_DETERMINISTIC, 0, c->math);
  add(good[0], CUDNN_DETERMINISTIC, size_t{1} << 40, c->math);
  add(transforms, CUDNN_DETERMINISTIC, 0, c->math);
  add(good[0], CUDNN_DETERMINISTIC, 0, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION);
  add(good[0], CUDNN_DETERMINISTIC, 0, c->math, CUDNN_STATUS_NOT_SUPPORTED);
  if (c->math == CUDNN_FMA_MATH) add(good[0], CUDNN_DETERMINISTIC, 0, CUDNN_DEFAULT_MATH);
  if (!world.has_none)
    for (int g : good) add(g, CUDNN_DETERMINISTIC, kBytes, c->math);
  REQUIRE(most >= static_cast<int>(all.size()));
  std::copy(all.begin(), all.end(), results);
  *count = static_cast<int>(all.size());
  return CUDNN_STATUS_SUCCESS;
}

int64_t at(const std::vector<int>& list, int d) {  // of three spatial dims, from lists of two or three
  const int i = static_cast<int>(list.size()) - 3 + d;
  return i < 0 ? 1 : list[static_cast<size_t>(i)];
}
std::vector<int> places(const std::vector<int>& sizes) { return {sizes.begin() + 2, sizes.end()}; }

cuda::DnnType type_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE: return cuda::DnnType::f64;
    case CUDNN_DATA_HALF: return cuda::DnnType::f16;
    case CUDNN_DATA_BFLOAT16: return cuda::DnnType::bf16;
    default: return cuda::DnnType::f32;
  }
}

// What the descriptors say, with what cuDNN checks of them.
cuda::DnnConvolution read(cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t g, cudnnFilterDescriptor_t w,
                          cudnnConvolutionDescriptor_t c) {
  for (cudnnTensorDescriptor_t side : {x, g}) {
    int step = 1;
    for (size_t d = side->sizes.size(); d-- > 0; step *= side->sizes[d]) REQUIRE(side->strides[d] == step);
    REQUIRE(side->type == w->type);
    REQUIRE(side->sizes.size() == w->sizes.size());
    REQUIRE(side->sizes.size() == c->stride.size() + 2);
  }
  REQUIRE(c->sums == (w->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
  REQUIRE(x->sizes[0] == g->sizes[0]);
  REQUIRE(x->sizes[1] == c->groups * w->sizes[1]);
  REQUIRE(g->sizes[1] == w->sizes[0]);
  cuda::DnnConvolution r;
  r.type = type_of(w->type);
  r.batch = x->sizes[0];
  r.groups = c->groups;
  r.channels = w->sizes[1];
  r.features = w->sizes[0] / c->groups;
  for (int d = 0; d < 3; ++d) {
    r.large[d] = at(places(x->sizes), d);
    r.small[d] = at(places(g->sizes), d);
    r.kernel[d] = at(places(w->sizes), d);
    r.stride[d] = at(c->stride, d);
    r.dilation[d] = at(c->dilation, d);
    r.padding[d] = c->padding.size() == 2 && d == 0 ? 0 : at(c->padding, d);
    const int64_t window = r.dilation[d] * (r.kernel[d] - 1) + 1;
    REQUIRE(r.small[d] == (r.large[d] + 2 * r.padding[d] - window) / r.stride[d] + 1);
  }
  return r;
}

cudnnStatus_t compute(cudnnHandle_t handle, cuda::DnnConvolution r, cudnnConvolutionDescriptor_t c,
                      int algorithm, const void* alpha, const void* beta, void* workspace, size_t bytes) {
  const auto number = [&](const void* p) {
    return r.type == cuda::DnnType::f64 ? *static_cast<const double*>(p) : *static_cast<const float*>(p);
  };
  REQUIRE(number(alpha) == 1);
  r.adds = number(beta) == 1;
  REQUIRE((r.adds || number(beta) == 0));
  REQUIRE(static_cast<int64_t>(bytes) >= kBytes);
  std::memset(workspace, 0xff, kBytes);
  world.math = c->math;
  world.stream = handle->stream;
  world.algorithm = algorithm;
  plain_dnn::compute(r);
  return CUDNN_STATUS_SUCCESS;
}

void* writable(const void* p) { return const_cast<void*>(p); }

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return 91234; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "an error"; }
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return make(handle); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return end(handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* d) { return make(d); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) { return end(d); }
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t d, cudnnDataType_t type, int dims,
                                         const int* sizes, const int* strides) {
  *d = {type, {sizes, sizes + dims}, {strides, strides + dims}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* d) { return make(d); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) { return end(d); }
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int dims, const int* sizes) {
  REQUIRE(format == CUDNN_TENSOR_NCHW);
  *d = {type, {sizes, sizes + dims}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* d) { return make(d); }
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) { return end(d); }
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t d, int dims, const int* padding,
                                              const int* stride, const int* dilation,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t sums) {
  REQUIRE(mode == CUDNN_CROSS_CORRELATION);
  REQUIRE((dims == 2 || dims == 3));
  *d = {{padding, padding + dims}, {stride, stride + dims}, {dilation, dilation + dims}, sums};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups) {
  d->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t math) {
  d->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w,
                                                     cudnnConvolutionDescriptor_t c,
                                                     cudnnTensorDescriptor_t g, int most, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* results) {
  read(x, g, w, c);
  return list<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(
      c, {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_GEMM},
      CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, most, count, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t g,
                                                          cudnnConvolutionDescriptor_t c,
                                                          cudnnTensorDescriptor_t x, int most, int* count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* results) {
  read(x, g, w, c);
  return list<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
      c, {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1}, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, most, count, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t g,
                                                            cudnnConvolutionDescriptor_t c,
                                                            cudnnFilterDescriptor_t w, int most, int* count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  read(x, g, w, c);
  return list<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>(
      c, {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1}, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, most,
      count, results);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x,
                                      const void* x_data, cudnnFilterDescriptor_t w, const void* w_data,
                                      cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, size_t bytes, const void* beta,
                                      cudnnTensorDescriptor_t g, void* g_data) {
  cuda::DnnConvolution r = read(x, g, w, c);
  r.wanted = cuda::DnnWanted::small;
  r.x = writable(x_data);
  r.w = writable(w_data);
  r.g = g_data;
  return compute(handle, r, c, algorithm, alpha, beta, workspace, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w,
                                           const void* w_data, cudnnTensorDescriptor_t g, const void* g_data,
                                           cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t bytes, const void* beta, cudnnTensorDescriptor_t x,
                                           void* x_data) {
  cuda::DnnConvolution r = read(x, g, w, c);
  r.wanted = cuda::DnnWanted::large;
  r.w = writable(w_data);
  r.g = writable(g_data);
  r.x = x_data;
  return compute(handle, r, c, algorithm, alpha, beta, workspace, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             cudnnTensorDescriptor_t x, const void* x_data,
                                             cudnnTensorDescriptor_t g, const void* g_data,
                                             cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             size_t bytes, const void* beta, cudnnFilterDescriptor_t w,
                                             void* w_data) {
  cuda::DnnConvolution r = read(x, g, w, c);
  r.wanted = cuda::DnnWanted::weight;
  r.x = writable(x_data);
  r.g = writable(g_data);
  r.w = w_data;
  return compute(handle, r, c, algorithm, alpha, beta, workspace, bytes);
}

}  // extern "C"

#endif
