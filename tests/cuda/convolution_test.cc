// Convolutions on a device against the CPU (convolution_cases.h), by the kernels alone and through a library of
// convolutions; on the host the library is a stand-in (plain_dnn.h) that checks its arguments.
#include "cuda/on_host/scheduler.h"
#include "tests/cuda/convolution_cases.h"
#include "tests/cuda/plain_dnn.h"
#include "tracer/function/compile.h"

using namespace retrograd;
using cuda::DnnUse;

namespace {

WithDnn::Make plain(DnnLog& log) {
  return [&log](std::string&) { return std::make_unique<PlainDnn>(device_on_host(), log); };
}

Tensor there(const IntArray& size, ScalarType dtype = kFloat32) {
  return unit_numbers(size, dtype).to(kCUDA);
}

Tensors gradients(Device device) {
  unit_bits.seed(4);
  const Tensor x = unit_numbers({2, 3, 8, 7}, kFloat32).to(device).requires_grad_(true);
  const Tensor w = unit_numbers({6, 3, 3, 3}, kFloat32).to(device).requires_grad_(true);
  const Tensor b = unit_numbers({6}, kFloat32).to(device).requires_grad_(true);
  const Tensor y = conv2d(x, w, b, 2, 1);
  sum(y * y + y).backward();
  return {x.grad(), w.grad(), b.grad()};
}
void try_gradients() {
  device_on_host();
  const Tensors expected = gradients(kCPU), found = gradients(kCUDA);
  for (size_t i = 0; i < expected.size(); ++i) expect_same(expected[i], found[i], 100);
}

// Of one infinity among the inputs.
void try_infinity() {
  NoGradGuard no_grad;
  std::vector<double> values(3 * 9 * 9, 0.5);
  values[4 * 9 + 4] = INFINITY;
  const Tensor x = tensor(values, {1, 3, 9, 9}, kFloat32);
  const Tensor w = unit_numbers({4, 3, 3, 3}, kFloat32);
  expect_same(conv2d(x, w), conv2d(x.to(kCUDA), w.to(kCUDA)), 200);
}

}  // namespace

TEST_CASE("convolutions by the kernels") {
  WithDnn none({}, DnnUse::never);
  try_convolutions();
  try_gradients();
  try_infinity();
}

TEST_CASE("convolutions of integers") {
  for (ScalarType dtype : {kInt64, kInt32})
    for (size_t i : {1, 2, 3}) try_convolution(convolution_cases()[i], dtype);
}

TEST_CASE("convolutions through a library") {
  DnnLog log;
  WithDnn library(plain(log));
  try_convolutions();
  try_gradients();
  try_infinity();
  if (!is_on_host()) return;
  CHECK(log.computed > 90);
  CHECK(log.computed == log.asked);
  CHECK(cuda::gpu_of(0).dnn_stats().computed == log.computed);
  CHECK(cuda::gpu_of(0).dnn_stats().declined == 0);
}

TEST_CASE("what a library declines the kernels compute", "[host]") {
  DnnLog log;
  WithDnn library(plain(log));
  SECTION("some of it") {
    log.declines = [](const cuda::DnnConvolution& c) {
      return c.wanted == cuda::DnnWanted::large || c.groups > 1;
    };
    try_convolutions();
    CHECK(log.computed > 40);
    CHECK(log.asked > log.computed + 30);
  }
  SECTION("when all is prepared, the bias too") {
    log.fails = true;
    try_convolutions();
    CHECK(log.computed == 0);
  }
  const cuda::DnnStats stats = cuda::gpu_of(0).dnn_stats();
  CHECK(stats.computed == log.computed);
  CHECK(stats.declined == log.asked - log.computed);
}

TEST_CASE("what a library of convolutions is told", "[host]") {
  DnnLog log;
  WithDnn library(plain(log), DnnUse::where_it_wins);
  NoGradGuard no_grad;
  const cuda::DnnConvolution& told = log.last;
  SECTION("one dim is two; a bias is what the result begins with") {
    conv1d(there({2, 3, 20}), there({5, 3, 4}), there({5}), 2, 1, 3);
    CHECK(told.wanted == cuda::DnnWanted::small);
    CHECK(told.dims == 2);
    CHECK(told.adds);
    CHECK_FALSE(told.tf32);
    CHECK(std::vector(told.large, told.large + 3) == std::vector<int64_t>{1, 1, 20});
    CHECK(std::vector(told.kernel, told.kernel + 3) == std::vector<int64_t>{1, 1, 4});
    CHECK(std::vector(told.small, told.small + 3) == std::vector<int64_t>{1, 1, 7});
    CHECK(std::vector(told.stride, told.stride + 3) == std::vector<int64_t>{1, 1, 2});
    CHECK(std::vector(told.padding, told.padding + 3) == std::vector<int64_t>{0, 0, 1});
    CHECK(std::vector(told.dilation, told.dilation + 3) == std::vector<int64_t>{1, 1, 3});
  }
  SECTION("a transposed one: the large side is wanted") {
    conv_transpose2d(there({2, 4, 5, 5}), there({4, 3, 3, 3}), {}, 2, 1, 1);
    CHECK(told.wanted == cuda::DnnWanted::large);
    CHECK_FALSE(told.adds);
    CHECK(told.channels == 3);
    CHECK(told.features == 4);
    CHECK(std::vector(told.large, told.large + 3) == std::vector<int64_t>{1, 10, 10});
    CHECK(std::vector(told.small, told.small + 3) == std::vector<int64_t>{1, 5, 5});
  }
  SECTION("three dims in groups, of 16 bits") {
    conv3d(there({2, 4, 3, 4, 5}, kBFloat16), there({6, 2, 1, 2, 3}, kBFloat16), {}, 1, 0, 1, 2);
    CHECK(told.type == cuda::DnnType::bf16);
    CHECK(told.dims == 3);
    CHECK(told.groups == 2);
    CHECK(told.channels == 2);
    CHECK(told.features == 3);
  }
  SECTION("TensorFloat-32 only where it is allowed") {
    cuda::gpu_of(0).allow_tf32(true);
    conv1d(there({2, 3, 8}), there({5, 3, 3}));
    CHECK(told.tf32);
  }
}

TEST_CASE("when a library is asked", "[host]") {
  DnnLog log;
  WithDnn library(plain(log), DnnUse::where_it_wins);
  NoGradGuard no_grad;
  const auto depthwise = [] { conv1d(there({2, 4, 9}), there({8, 1, 3}), {}, 1, 0, 1, 4); };
  SECTION("not for one channel a group, but where everything is to go to it") {
    depthwise();
    CHECK(log.asked == 0);
    cuda::gpu_of(0).use_dnn(DnnUse::wherever_it_can);
    depthwise();
    CHECK(log.asked == 1);
  }
  SECTION("not for integers, empty results and empty sums") {
    conv1d(there({2, 3, 9}, kInt64), there({5, 3, 3}, kInt64));
    conv1d(there({0, 3, 9}), there({5, 3, 3}));
    CHECK(log.asked == 0);
  }
  SECTION("not where it is switched off") {
    setenv("RETROGRAD_CUDA_DNN", "0", 1);
    renew_device();
    conv1d(there({2, 3, 9}), there({5, 3, 3}));
    CHECK(log.asked == 0);
    setenv("RETROGRAD_CUDA_DNN", "all", 1);
    renew_device();
    depthwise();
    CHECK(log.asked == 1);
    unsetenv("RETROGRAD_CUDA_DNN");
  }
  SECTION("who computes does not depend on where operands lie") {
    const Tensor apart = there({200}).narrow(0, 1, 162).reshape({2, 9, 9});  // not at a multiple of 16 bytes
    conv2d(apart.reshape({1, 2, 9, 9}), expand(there({1, 2, 1, 1}), {3, 2, 3, 3}));
    CHECK(log.computed == 1);
  }
}

TEST_CASE("a library's convolutions in graphs of launches", "[host]") {
  DnnLog log;
  WithDnn library(plain(log));
  unit_bits.seed(4);
  const Tensor x = unit_numbers({2, 3, 8, 8}, kFloat32);
  const Tensor start = unit_numbers({4, 3, 3, 3}, kFloat32), shift = unit_numbers({4}, kFloat32);
  const auto step = [](const Tensor& w, const Tensor& b, const Tensor& input) {
    const Tensor loss = mean(square(conv2d(input, w, b, 1, 1)));
    const Tensors g = autograd::grad({loss}, {w, b});
    NoGradGuard no_grad;
    w.add_(g[0], -0.1);
    b.add_(g[1], -0.1);
    return loss.detach();
  };
  const auto parameter = [](const Tensor& values, Device device) {
    return values.clone().to(device).requires_grad_();
  };
  const Tensor w = parameter(start, kCPU), b = parameter(shift, kCPU);
  const Tensor w_there = parameter(start, kCUDA), b_there = parameter(shift, kCUDA);
  FunctionCache cache(FunctionKind::step);
  for (int i = 0; i < 5; ++i) {
    INFO("step " << i << "\n" << cache.segments());
    const Tensor expected = step(w, b, x);
    const Tensor found = cache.run(
        [&](const Tensors& a) -> Tensors { return {step(w_there, b_there, a[0])}; }, {x.to(kCUDA)})[0];
    expect_same(expected, found, 100);
    expect_same(w.detach(), w_there.detach(), 100);
  }
  CHECK(cache.stats().launches.graph_launches == 4);
  CHECK(log.computed == 4);  // two in the first run, two recorded
}

TEST_CASE("bits of a weight's gradient do not depend on the order of blocks and threads") {
  WithDnn none({}, DnnUse::never);
  NoGradGuard no_grad;
  ops::ConvolutionAttrs attrs;
  attrs.stride = attrs.dilation = {1, 1};
  attrs.padding = {1, 1};
  attrs.size = {Dim(3), Dim(3)};
  const Tensors operands{there({2, 3, 24, 24}), there({2, 8, 24, 24})};
  const std::vector<double> first = emit(ops::info<ops::ConvolutionWeight>, operands, &attrs).to_vector();
  for (unsigned seed : {1u, 2u}) {
    on_host::set_seed(seed);
    CHECK(emit(ops::info<ops::ConvolutionWeight>, operands, &attrs).to_vector() == first);
  }
  on_host::set_seed(0);
}
