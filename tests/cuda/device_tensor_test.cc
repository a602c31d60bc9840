// Tensors on a device through the public functions: making, moving, reading, writing, differentiating. The device is
// the host's memory.
#include "tests/cuda/device_on_host.h"

using namespace retrograd;

namespace {

using Values = std::vector<double>;

std::string text_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Exception& e) {
    return e.what();
  }
  return "";
}

struct Device0 {
  cuda::HostDriver& driver = device_on_host();
  TensorOptions there{kFloat32, kCUDA};
};

}  // namespace

TEST_CASE_METHOD(Device0, "a tensor goes to the device and back") {
  const Tensor x = tensor({1.0, 2, 3, 4, 5, 6}, {2, 3});
  for (const Tensor& host : {x, x.t(), x.narrow(1, 1, 2), full({}, 7.0), zeros({0, 3})}) {
    const Tensor y = host.to(kCUDA);
    CHECK(y.device() == Device(kCUDA));
    CHECK(y.sizes() == host.sizes());
    const Tensor back = y.cpu();
    CHECK(back.device() == Device(kCPU));
    CHECK(back.to_vector() == host.to_vector());
  }
  CHECK(x.to(kCPU).is_same(x));
  const Tensor y = x.cuda();
  CHECK(y.to(kCUDA).is_same(y));
  CHECK(describe(y) == "f32[2,3] cuda:0");
}

TEST_CASE_METHOD(Device0, "factories make tensors on the device") {
  CHECK(full({2}, 3, there).to_vector() == Values{3, 3});
  CHECK(ones({2}, {kBool, kCUDA}).to_vector() == Values{1, 1});
  CHECK(full({2}, 200, {kUInt8, kCUDA}).to_vector() == Values{200, 200});
  CHECK(arange(3, TensorOptions{kInt64, kCUDA}).to_vector() == Values{0, 1, 2});
  CHECK(tensor({1, 2}, there).to_vector() == Values{1, 2});
  CHECK(empty({2, 3}, there).device() == Device(kCUDA));
  CHECK(zeros_like(ones({2}, there)).to_vector() == Values{0, 0});
  CHECK(zeros({2}, {kFloat32, kCUDA, true}).requires_grad());
}

TEST_CASE_METHOD(Device0, "full is written on the device: nothing is copied there", "[host]") {
  driver.log.clear();
  const Tensor x = zeros({100}, there);
  CHECK(driver.log.empty());
}

TEST_CASE_METHOD(Device0, "values are read from the device") {
  const Tensor x = tensor({1.5}, there);
  CHECK(x.item<double>() == 1.5);
  CHECK(to_string(x).find("1.5000") != std::string::npos);
  CHECK(to_string(x).find("cuda:0") != std::string::npos);
}

TEST_CASE_METHOD(Device0, "dtypes are converted on the device") {
  const Tensor x = tensor({-1.5, 0, 3.25, 300}, there);
  for (ScalarType dtype :
       {kFloat64, kFloat16, kBFloat16, kFloat8_e4m3fn, kFloat8_e5m2, kInt64, kInt32, kBool}) {
    INFO(name(dtype));
    expect_same(x.cpu().to(dtype), x.to(dtype));
    expect_same(x.cpu().to(dtype).to(kFloat32), x.to(dtype).to(kFloat32));
  }
}

TEST_CASE_METHOD(Device0, "operands of two dtypes are promoted on the device") {
  const Tensor a = tensor({1, 2, 3}, {kInt32, kCUDA}), b = tensor({0.5, 1, 2}, there);
  expect_same(a.cpu() * b.cpu(), a * b);
  expect_same(a.cpu() / 2, a / 2);
  expect_same(where(gt(b.cpu(), 0.75), b.cpu(), 0), where(gt(b, 0.75), b, 0));
}

TEST_CASE_METHOD(Device0, "views and writes in place stay on the device") {
  const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3}, there);
  x.t().narrow(0, 1, 1).mul_(10);
  CHECK(x.to_vector() == Values{1, 20, 3, 4, 50, 6});
  x.add_(x);
  x.select(0, 1).fill_(7);
  CHECK(x.to_vector() == Values{2, 40, 6, 7, 7, 7});
  x.copy_(tensor({1, 2, 3, 4, 5, 6}, {3, 2}, there).t());
  CHECK(x.to_vector() == Values{1, 3, 5, 2, 4, 6});
  CHECK(x.clone().to_vector() == x.to_vector());
}

TEST_CASE_METHOD(Device0, "gradients are computed where their tensors are, and go back to the CPU") {
  const Tensor w = tensor({0.5, -1, 2}).requires_grad_();
  const Tensor y = retrograd::tanh(w.to(kCUDA)) * w.to(kCUDA);
  y.backward(ones({3}, there));
  CHECK(w.grad().device() == Device(kCPU));
  const Tensor v = tensor({0.5, -1, 2}).requires_grad_();
  (retrograd::tanh(v) * v).backward(ones({3}));
  const Values a = w.grad().to_vector(), b = v.grad().to_vector();
  for (size_t i = 0; i < 3; ++i) CHECK(is_near(a[i], b[i], 1e-6));
  const Tensor leaf = tensor({1, 2}, there).requires_grad_();
  (leaf * leaf).backward(ones({2}, there));
  CHECK(leaf.grad().device() == Device(kCUDA));
  CHECK(leaf.grad().to_vector() == Values{2, 4});
}

TEST_CASE_METHOD(Device0, "memory is counted by the device, and given back") {
  cuda::Allocator& memory = cuda::gpu_of(0).memory();
  const int64_t before = memory.stats().live_bytes, host = memory::stats().live_bytes;
  {
    const Tensor x = zeros({1000}, there);
    CHECK(memory.stats().live_bytes == before + 4000);
    CHECK(memory::stats().live_bytes == host);
    const Tensor y = x.detach();
    CHECK(memory.stats().live_bytes == before + 4000);
  }
  CHECK(memory.stats().live_bytes == before);
}

TEST_CASE_METHOD(Device0, "out of memory leaves everything as it was") {
  cuda::Allocator& memory = cuda::gpu_of(0).memory();
  const Tensor x = ones({1000}, there);
  memory.set_limit(memory.stats().live_bytes + 1000);
  CHECK_THROWS_AS(x * 2, OutOfMemory);
  memory.set_limit(0);
  CHECK((x * 2).to_vector()[999] == 2);
}

TEST_CASE_METHOD(Device0, "tensors of two devices are not mixed") {
  const Tensor a = ones({2}, there), b = ones({2});
  CHECK(text_of([&] { a + b; }).find("different devices") != std::string::npos);
}

TEST_CASE_METHOD(Device0, "a device that is not there is refused with the reason", "[host]") {
  CHECK(text_of([&] { ones({2}).to(Device(kCUDA, 5)); }).find("there are 1 devices") != std::string::npos);
  driver.count_status = 35;
  CHECK(text_of([&] { ones({2}).to(Device(kCUDA, 1)); }).find("no CUDA device: no driver") !=
        std::string::npos);
  driver.count_status = 0;
}

// Like neg(), but another op, which no executor has.
struct Unknown : ops::Neg {
  static constexpr std::string_view name = "unknown";
};

TEST_CASE_METHOD(Device0, "an op without a kernel is refused by name") {
  const Tensor x = ones({2}, there);
  const std::string text = text_of([&] { ops::emit<Unknown>({x.get()}, {}, {}); });
  CHECK(text.find("unknown") != std::string::npos);
  CHECK(text.find("the cuda executor has no kernel for it") != std::string::npos);
}

namespace {

// A loss whose parameters are on the device, and what its gradient is.
Tensor loss_of(const Tensor& w, const Tensor& x) { return sum(square(retrograd::tanh(w * x) - 0.25)); }

}  // namespace

TEST_CASE_METHOD(Device0, "a captured backward runs on the device and gives the bits of the eager one") {
  CompiledBackward backward = compile_backward();
  for (double value : {0.5, -1.5, 2.0}) {
    const Tensor w = full({3, 5}, value, there).requires_grad_(), x = full({5}, 0.75, there);
    const Tensor v = w.detach().clone().requires_grad_();
    loss_of(v, x).backward();
    backward(loss_of(w, x));
    CHECK(w.grad().device() == Device(kCUDA));
    CHECK(w.grad().to_vector() == v.grad().to_vector());
  }
  CHECK(backward.stats().captures == 1);
}

TEST_CASE_METHOD(Device0, "a captured backward goes through both devices") {
  CompiledBackward backward = compile_backward();
  for (double value : {0.5, -1.5}) {
    const Tensor w = full({3}, value).requires_grad_(), v = full({3}, value).requires_grad_();
    const auto loss = [&](const Tensor& p) {
      return loss_of(retrograd::exp(p).to(kCUDA), full({3}, 0.5, there)).cpu() * 2;
    };
    loss(v).backward();
    backward(loss(w));
    CHECK(w.grad().to_vector() == v.grad().to_vector());
  }
  CHECK(backward.graph()->print().find("{device=cuda:0}") != std::string::npos);
}

TEST_CASE_METHOD(Device0, "a compiled step runs on the device") {
  const Tensor w = full({4}, 2.0, there).requires_grad_(), v = full({4}, 2.0, there).requires_grad_();
  const auto step_of = [](const Tensor& p) {
    return [p](const Tensor& x) {
      p.set_grad({});
      const Tensor loss = loss_of(p, x);
      loss.backward();
      NoGradGuard no_grad;
      p.add_(p.grad(), -0.125);
      return loss;
    };
  };
  auto compiled = compile_step(step_of(w));
  const auto eager = step_of(v);
  for (int i = 0; i < 3; ++i) {
    const Tensor x = full({4}, 0.5 + i, there);
    CHECK(compiled(x).to_vector() == eager(x).to_vector());
  }
  CHECK(w.to_vector() == v.to_vector());
  CHECK(w.device() == Device(kCUDA));
}
