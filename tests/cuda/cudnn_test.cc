// cuDNN as a Dnn (cuda/dnn_cudnn.cc), without a device: cuDNN's functions have stand-ins in this program, which note what descriptors say and
// convolve on the host (plain_dnn.h). So the device of tests computes through all but cuDNN's own kernels. The machine's cuDNN, where there is
// one, is opened as far as that goes without a device: all functions are found.
//
// The program exports its symbols (-rdynamic), and is the library that is opened.
#include <dlfcn.h>

#include "tests/cuda/convolution_cases.h"
#include "tests/cuda/plain_dnn.h"

using namespace retrograd;

namespace {

// open_cudnn() of the library, and why not.
struct Opened {
  std::string problem;
  std::unique_ptr<cuda::Dnn> dnn;
  explicit Opened(void* library) { dnn = cuda::open_cudnn(problem, library); }
};

bool is_built_in() { return Opened(dlopen(nullptr, RTLD_NOW)).problem.find("built without") == std::string::npos; }

}  // namespace

TEST_CASE("a library without the functions is not taken for cuDNN") {
  if (!is_built_in()) return;
  const Opened opened(dlopen("libm.so.6", RTLD_NOW));
  CHECK(!opened.dnn);
  CHECK(opened.problem == "the library has no cudnnGetVersion");
}

TEST_CASE("the machine's cuDNN has all functions, or it is said that there is none") {
  if (!is_built_in()) return;
  const Opened opened(nullptr);
  INFO(opened.problem);
  if (opened.dnn)
    CHECK(opened.dnn->name().substr(0, 6) == "cuDNN ");
  else
    CHECK((opened.problem.find("cudnnCreate: ") == 0 || opened.problem.find("is not found") != std::string::npos));
}

#if __has_include(<cudnn.h>)
#include <cudnn.h>

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

namespace {

struct World {
  int live = 0;                     // handles and descriptors
  cudnnMathType_t math{}, asked{};  // of the last convolution; in the last question about algorithms
  int algorithm = -1, questions = 0;
  bool has_none = false;  // no algorithm for anything
} world;

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

constexpr size_t kBytes = 64;

// What a heuristic may say: the best one adds in any order, the next ones want too much memory, transform, or have not the digits.
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

cudnnStatus_t compute(cuda::DnnConvolution r, cudnnConvolutionDescriptor_t c, int algorithm, const void* alpha,
                      const void* beta, void* workspace, size_t bytes) {
  const auto number = [&](const void* p) {
    return r.type == cuda::DnnType::f64 ? *static_cast<const double*>(p) : *static_cast<const float*>(p);
  };
  REQUIRE(number(alpha) == 1);
  r.adds = number(beta) == 1;
  REQUIRE((r.adds || number(beta) == 0));
  REQUIRE(bytes >= kBytes);
  std::memset(workspace, 0xff, kBytes);
  world.math = c->math;
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

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t, const void* alpha, cudnnTensorDescriptor_t x,
                                      const void* x_data, cudnnFilterDescriptor_t w, const void* w_data,
                                      cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, size_t bytes, const void* beta,
                                      cudnnTensorDescriptor_t g, void* g_data) {
  cuda::DnnConvolution r = read(x, g, w, c);
  r.wanted = cuda::DnnWanted::small;
  r.x = writable(x_data);
  r.w = writable(w_data);
  r.g = g_data;
  return compute(r, c, algorithm, alpha, beta, workspace, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t, const void* alpha, cudnnFilterDescriptor_t w,
                                           const void* w_data, cudnnTensorDescriptor_t g,
                                           const void* g_data, cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t bytes, const void* beta, cudnnTensorDescriptor_t x,
                                           void* x_data) {
  cuda::DnnConvolution r = read(x, g, w, c);
  r.wanted = cuda::DnnWanted::large;
  r.w = writable(w_data);
  r.g = writable(g_data);
  r.x = x_data;
  return compute(r, c, algorithm, alpha, beta, workspace, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t, const void* alpha, cudnnTensorDescriptor_t x,
                                             const void* x_data, cudnnTensorDescriptor_t g,
                                             const void* g_data, cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             size_t bytes, const void* beta, cudnnFilterDescriptor_t w,
                                             void* w_data) {
  cuda::DnnConvolution r = read(x, g, w, c);
  r.wanted = cuda::DnnWanted::weight;
  r.x = writable(x_data);
  r.g = writable(g_data);
  r.w = w_data;
  return compute(r, c, algorithm, alpha, beta, workspace, bytes);
}

}  // extern "C"

namespace {

WithDnn::Make this_program() {
  return [](std::string& problem) { return cuda::open_cudnn(problem, dlopen(nullptr, RTLD_NOW)); };
}

void convolve(ScalarType dtype = kFloat32) {
  NoGradGuard no_grad;
  conv1d(unit_numbers({2, 3, 9}, dtype).to(kCUDA), unit_numbers({5, 3, 3}, dtype).to(kCUDA));
}

}  // namespace

TEST_CASE("convolutions through cuDNN's functions") {
  if (!is_built_in()) return;
  world = {};
  {
    WithDnn library(this_program());
    CHECK(cuda::gpu_of(0).dnn()->name() == "cuDNN 9.12.34");
    try_convolutions();
    CHECK(cuda::gpu_of(0).dnn_stats().computed > 80);
    CHECK(cuda::gpu_of(0).dnn_stats().declined == 0);
  }
}

TEST_CASE("the first algorithm is taken that sums products of the operands in a fixed order, with its arithmetic") {
  if (!is_built_in()) return;
  world = {};
  WithDnn library(this_program());
  convolve();
  CHECK(world.algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
  CHECK(world.asked == CUDNN_FMA_MATH);
  CHECK(world.math == CUDNN_FMA_MATH);
  convolve();
  CHECK(world.questions == 1);
  cuda::gpu_of(0).allow_tf32(true);
  convolve();
  CHECK(world.questions == 2);
  CHECK(world.math == CUDNN_DEFAULT_MATH);
  convolve(kBFloat16);
  CHECK(world.math == CUDNN_TENSOR_OP_MATH);
  convolve(kFloat64);
  CHECK(world.math == CUDNN_DEFAULT_MATH);
}

TEST_CASE("what cuDNN cannot do is declined") {
  if (!is_built_in()) return;
  world = {};
  WithDnn library(this_program());
  NoGradGuard no_grad;
  SECTION("no algorithm will do") {
    world.has_none = true;
    try_convolutions();
    CHECK(cuda::gpu_of(0).dnn_stats().computed == 0);
  }
  SECTION("more zeros at the end than in front") {
    const Tensor x = unit_numbers({1, 2, 5}, kFloat32), w = unit_numbers({3, 2, 4}, kFloat32);
    const Tensor expected = conv1d(x, w, {}, 1, "same");
    expect_same(expected, conv1d(x.to(kCUDA), w.to(kCUDA), {}, 1, "same"), 100);
    CHECK(world.questions == 0);
    CHECK(cuda::gpu_of(0).dnn_stats().declined == 1);
  }
  CHECK(cuda::gpu_of(0).dnn_stats().declined > 0);
}

TEST_CASE("handles and descriptors end with the library") {
  if (!is_built_in()) return;
  world = {};
  {
    Opened opened(dlopen(nullptr, RTLD_NOW));
    REQUIRE(opened.dnn);
    cuda::DnnConvolution c;
    c.large[2] = c.small[2] = 9;
    for (c.features = 1; c.features < 20; ++c.features) CHECK(opened.dnn->workspace(c) == kBytes);
    CHECK(world.live == 1 + 19 * 4);
    c.batch = int64_t{1} << 31;
    CHECK(!opened.dnn->workspace(c));
  }
  CHECK(world.live == 0);
}

#endif
