// Tensors of several devices in one call: what is moved to the device of the others, as in PyTorch, and what is
// refused. The device is the host's memory.
#include "ops/indexing.h"
#include "tests/cuda/device_on_host.h"

using namespace retrograd;

namespace {

using Values = std::vector<double>;

struct Device0 {
  cuda::HostDriver& driver = device_on_host();
  TensorOptions there{kFloat32, kCUDA};
  Tensor x = tensor({1, 2, 3}, there);
};

bool is_refused(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.category() == Category::bad_argument &&
           std::string(e.what()).find("device") != std::string::npos;
  }
  return false;
}

}  // namespace

TEST_CASE_METHOD(Device0, "a tensor of the CPU without dims is an operand of elementwise ops on a device") {
  const Tensor two = full({}, 2.0);
  for (const Tensor& y : {x * two, two * x, x * full({}, 2, {kFloat64}), x * full({}, 2, {kInt64})}) {
    CHECK(y.device() == Device(kCUDA));
    CHECK(y.dtype() == kFloat32);
    CHECK(y.to_vector() == Values{2, 4, 6});
  }
  CHECK((tensor({1, 2}, {kInt64, kCUDA}) + full({}, 0.5)).to_vector() == Values{1.5, 2.5});
  CHECK(gt(x, two).to_vector() == Values{0, 0, 1});
  CHECK(where(gt(x, 2), x, two).to_vector() == Values{2, 2, 3});
  CHECK(where(full({}, 1, {kBool}), x, two).to_vector() == Values{1, 2, 3});
  CHECK(lerp(x, x * 3, full({}, 0.5)).to_vector() == Values{2, 4, 6});
  CHECK(addcmul(x, two, two).to_vector() == Values{5, 6, 7});
  CHECK(clamp(x, Operand(two)).to_vector() == Values{2, 2, 3});
  CHECK(pow(2.0, x).to_vector() == Values{2, 4, 8});
  CHECK((full({}, 3, there) * full({}, 2.0)).device() == Device(kCUDA));
}

TEST_CASE_METHOD(Device0, "its gradient is on the CPU") {
  const Tensor two = full({}, 2.0).requires_grad_(), y = x.detach().requires_grad_();
  const Tensor loss = sum(y * two * two);
  loss.backward();
  CHECK(two.grad().device() == Device(kCPU));
  CHECK(two.grad().item<double>() == 24);
  CHECK(y.grad().to_vector() == Values{4, 4, 4});
  two.set_grad({});
  CompiledBackward backward = compile_backward();
  backward(sum(y * two * two));
  CHECK(two.grad().item<double>() == 24);
}

TEST_CASE_METHOD(Device0, "it is written into a tensor of a device") {
  x.add_(full({}, 1.0));
  CHECK(x.to_vector() == Values{2, 3, 4});
  x.select(0, 1).copy_(full({}, 7.0));
  CHECK(x.to_vector() == Values{2, 7, 4});
  setitem_(x, {indexing::Slice{0, 2}}, full({}, 5, {kFloat64}));
  CHECK(x.to_vector() == Values{5, 5, 4});
  setitem_(x, {tensor({2.0, 0.0}, {kInt64, kCUDA})}, full({}, 9.0));
  CHECK(x.to_vector() == Values{9, 5, 9});
  CHECK(masked_fill(x, gt(x, 6), full({}, 1.0)).to_vector() == Values{1, 5, 1});
  const Tensor on_cpu = full({}, 2.0);
  CHECK(is_refused([&] { on_cpu.add_(x.select(0, 0)); }));
  CHECK(on_cpu.item<double>() == 2);
}

TEST_CASE_METHOD(Device0, "copy_ copies from any device to any other") {
  x.copy_(tensor({4, 5, 6}, {kFloat64}));
  CHECK(x.to_vector() == Values{4, 5, 6});
  const Tensor host = zeros({2, 3});
  host.copy_(x);
  CHECK(host.to_vector() == Values{4, 5, 6, 4, 5, 6});
  CHECK(host.device() == Device(kCPU));
}

TEST_CASE_METHOD(Device0, "indices of the CPU serve a tensor of a device") {
  const Tensor places = tensor({2, 0}, {kInt64}), mask = tensor({1, 0, 1}, {kBool});
  CHECK(getitem(x, {places}).to_vector() == Values{3, 1});
  CHECK(getitem(x, {mask}).to_vector() == Values{1, 3});
  setitem_(x, {places}, 0);
  CHECK(x.to_vector() == Values{0, 2, 0});
  setitem_(x, {mask}, tensor({7, 8}, there));
  CHECK(x.to_vector() == Values{7, 2, 8});
}

TEST_CASE("a copy between devices is waited for: what is freed then may be reused immediately", "[host]") {
  auto& driver = *new cuda::HostDriver(size_t{1} << 24, 2);  // never destroyed, as devices
  static const cuda::Launchers no_kernels{};
  cuda::use_driver(driver, no_kernels);
  const Tensor there = tensor({1, 2, 3}, {kFloat32, Device(kCUDA, 1)});
  const int before = driver.synchronizations;
  const Tensor here = there.to(Device(kCUDA, 0));
  CHECK(driver.synchronizations == before + 2);  // for the read, and for the copy
  CHECK(here.device() == Device(kCUDA, 0));
  CHECK(here.to_vector() == Values{1, 2, 3});
  renew_device();
}

TEST_CASE_METHOD(Device0, "all other mixtures are refused, before anything is read") {
  const Tensor host = tensor({1.0, 2, 3}), places = tensor({2, 0}, {kInt64});
  const Tensor matrix = ones({3, 3}, there);
  CHECK(is_refused([&] { x + host; }));
  CHECK(is_refused([&] { host + x; }));
  CHECK(is_refused([&] { mm(matrix, ones({3, 3})); }));
  CHECK(is_refused([&] { mv(ones({3, 3}), x); }));
  CHECK(is_refused([&] { cat({x, host}); }));
  CHECK(is_refused([&] { cat({host, x}); }));
  CHECK(is_refused([&] { gather(host, 0, places.to(kCUDA)); }));
  CHECK(is_refused([&] { gather(x, 0, places); }));
  CHECK(is_refused([&] { index_select(x, 0, places); }));
  CHECK(is_refused([&] { embedding(matrix, places); }));
  CHECK(is_refused([&] { embedding(ones({3, 3}), places.to(kCUDA)); }));
  CHECK(is_refused([&] { layer_norm(x, {3}, host); }));
  CHECK(is_refused([&] { getitem(host, {places.to(kCUDA)}); }));
  CHECK(is_refused([&] { compile([](const Tensor& a, const Tensor& b) { return cat({a, b}); })(host, x); }));
  CHECK(is_refused([&] { x.add_(host); }));
}

TEST_CASE_METHOD(Device0, "gradcheck and jacobian work where their inputs are") {
  const Tensor a = tensor({0.5, -1, 2, 1.5}, {2, 2}, {kFloat64, kCUDA}).t().requires_grad_();
  const Tensor b = tensor({0.25, 3}, {kFloat64, kCUDA}).requires_grad_();
  const auto f = [](const Tensors& x) { return Tensors{retrograd::tanh(mv(x[0], x[1])) * x[1]}; };
  CHECK(autograd::gradcheck(f, {a, b}).passed);
  CHECK(autograd::gradgradcheck(f, {a, b}).passed);
  const auto wrong = [&](const Tensors& x) { return Tensors{f(x)[0] + x[1].detach()}; };
  CHECK(!autograd::gradcheck(wrong, {a, b}, {.raise = false}).passed);
}

TEST_CASE_METHOD(Device0, "linear algebra gives what the CPU does") {
  const Tensor host = tensor({4, 1, 0.5, 1, 3, 0.25, 0.5, 0.25, 2}, {3, 3}, {kFloat64});
  const Tensor a = host.to(kCUDA).requires_grad_(), b = host.detach().requires_grad_();
  const auto f = [](const Tensor& m) {
    return sum(solve(m, m.narrow(1, 0, 2))) + sum(cholesky(m)) + det(m) + slogdet(m).logabsdet +
           sum(inverse(m.t()));
  };
  const Tensor x = f(a), y = f(b);
  CHECK(x.device() == Device(kCUDA));
  CHECK(x.item<double>() == Approx(y.item<double>()));
  x.backward();
  y.backward();
  expect_same(b.grad(), a.grad());
  CHECK_THROWS_WITH(inverse(zeros({2, 2}, there)).to_vector(), Catch::Contains("is singular"));
}
