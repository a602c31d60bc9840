// cuDNN as a Dnn (cuda/dnn_cudnn.cc), without a device: with stand-ins for cuDNN's functions (fake_cudnn.h) the device
// of tests runs everything except cuDNN's own kernels. The machine's cuDNN, if there is one, is opened as far as that
// is possible without a device.
#include <dlfcn.h>

#include "tests/cuda/convolution_cases.h"

#if defined(RG_WITH_TOOLKIT) && __has_include(<cudnn.h>)
#include "tests/cuda/fake_cudnn.h"

using namespace retrograd;
using fake_cudnn::world;

namespace {

// open_cudnn() of a library, and why not.
struct Opened {
  std::string problem;
  std::unique_ptr<cuda::Dnn> dnn;
  explicit Opened(void* library) { dnn = cuda::open_cudnn(problem, library); }
};

void* this_program() { return dlopen(nullptr, RTLD_NOW); }

struct WithFake : WithDnn {
  WithFake() : WithDnn([](std::string& problem) { return cuda::open_cudnn(problem, this_program()); }) {
    world = {};
  }
  cuda::DnnStats stats() const { return cuda::gpu_of(0).dnn_stats(); }
};

void convolve(ScalarType dtype = kFloat32) {
  NoGradGuard no_grad;
  conv1d(unit_numbers({2, 3, 9}, dtype).to(kCUDA), unit_numbers({5, 3, 3}, dtype).to(kCUDA));
}

}  // namespace

TEST_CASE("a library without the functions is not taken for cuDNN") {
  const Opened opened(dlopen("libm.so.6", RTLD_NOW));
  CHECK(!opened.dnn);
  CHECK(opened.problem == "the library has no cudnnGetVersion");
}

TEST_CASE("the machine's cuDNN has all functions, or it is said that there is none") {
  const Opened opened(nullptr);
  INFO(opened.problem);
  if (opened.dnn) return;
  CHECK((opened.problem.find("cudnnCreate: ") == 0 || opened.problem.find("libcudnn") != std::string::npos));
}

TEST_CASE("convolutions through cuDNN's functions") {
  WithFake library;
  REQUIRE(cuda::gpu_of(0).dnn());
  CHECK(cuda::gpu_of(0).dnn()->name() == "cuDNN 9.12.34");
  try_convolutions();
  CHECK(library.stats().computed > 80);
  CHECK(library.stats().declined == 0);
  CHECK(world.stream == cuda::gpu_of(0).compute().handle());
}

TEST_CASE(
    "the first algorithm that sums plain products in a fixed order, with the arithmetic that is allowed") {
  WithFake library;
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

TEST_CASE("what cuDNN does not do as wanted is declined") {
  WithFake library;
  SECTION("no algorithm will do") {
    world.has_none = true;
    try_convolutions();
    CHECK(world.questions > 50);
    CHECK(library.stats().declined > 80);
  }
  SECTION("more zeros at the end than in front") {
    NoGradGuard no_grad;
    const Tensor x = unit_numbers({1, 2, 5}, kFloat32), w = unit_numbers({3, 2, 4}, kFloat32);
    expect_same(conv1d(x, w, {}, 1, "same"), conv1d(x.to(kCUDA), w.to(kCUDA), {}, 1, "same"), 100);
    CHECK(world.questions == 0);
    CHECK(library.stats().declined == 1);
  }
  CHECK(library.stats().computed == 0);
}

TEST_CASE("handles and descriptors end with the library; sizes beyond 31 bits are declined") {
  world = {};
  {
    const Opened opened(this_program());
    REQUIRE(opened.dnn);
    cuda::DnnConvolution c;
    c.large[2] = c.small[2] = 9;
    for (c.features = 1; c.features < 20; ++c.features) CHECK(opened.dnn->workspace(c) == fake_cudnn::kBytes);
    CHECK(world.live == 1 + 19 * 4);
    c.batch = int64_t{1} << 31;
    CHECK(!opened.dnn->workspace(c));
  }
  CHECK(world.live == 0);
}

#else

TEST_CASE("in a build without the toolkit or cuDNN's header it is said that there is none") {
  std::string problem;
  CHECK(!retrograd::cuda::open_cudnn(problem));
  CHECK(problem.find("this was built without") == 0);
}

#endif
