// Types, options, factories and functions as programs of libtorch spell them. What must not compile is asserted as a
// requirement that does not hold.
#include <retrograd/torch.h>
#include <catch2/catch.hpp>

#include <sstream>

#include "tests/errors.h"

namespace libtorch {
namespace {

using Values = std::vector<double>;

template <class F>
std::string error_of(const F& f) {
  return retrograd::error_of(f).what();
}

TEST_CASE("dtypes and devices have libtorch's names") {
  CHECK(torch::kFloat == torch::kFloat32);
  CHECK(torch::kU8 == torch::kByte);
  CHECK(torch::kI64 == at::kLong);
  CHECK(c10::kDouble == torch::kF64);
  CHECK(torch::typeMetaToScalarType(torch::get_default_dtype()) == torch::kFloat);
  torch::set_default_dtype(torch::scalarTypeToTypeMeta(torch::kDouble));
  CHECK(torch::ones({1}).dtype() == torch::kDouble);
  torch::set_default_dtype(torch::kFloat);
  CHECK(torch::elementSize(torch::kHalf) == 2);
  CHECK(torch::isFloatingType(torch::kHalf));
  CHECK(torch::isIntegralType(torch::kBool, /*includeBool=*/true));
  CHECK_FALSE(torch::isIntegralType(torch::kBool, false));
  CHECK(torch::Device("cuda:1").index() == 1);
  CHECK(torch::Device(torch::kCUDA, 2).str() == "cuda:2");
  CHECK(torch::Device(torch::kCUDA).is_cuda());
  CHECK(torch::Device("cpu").type() == torch::kCPU);
  CHECK(torch::Device(std::string("cuda")) == torch::Device(torch::DeviceType::CUDA));
  const torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  std::ostringstream text;
  text << device;
  CHECK(text.str() == "cpu");
  CHECK(error_of([] { torch::Device("tpu"); }).find("is no device") != std::string::npos);
  for (const char* wrong : {"cuda:", "cuda:-1", "cuda:x", "cuda:200", "CPU", ""})
    CHECK_THROWS_AS(torch::Device(wrong), torch::Error);
}

template <class T>
concept MakesADtype = requires(T dtype) {
  torch::zeros({2}, torch::TensorOptions().dtype(dtype));
};
template <class T>
concept HasATransform = requires(const T& x) {
  torch::fft::rfft(x);
};
template <class T>
concept DrawsCounts = requires(const T& x) {
  torch::poisson(x);
};
template <class T>
concept HasComplexEigenvalues = requires(const T& x) {
  torch::linalg_eig(x);
};
template <class T>
concept MakesComplexNumbers = requires(const T& x) {
  torch::complex(x, x);
};

TEST_CASE("what does not exist does not compile") {
  static_assert(MakesADtype<torch::ScalarType>);
  static_assert(!MakesADtype<decltype(torch::kInt16)>);
  static_assert(!MakesADtype<decltype(torch::kComplexFloat)>);
  static_assert(!std::is_convertible_v<decltype(torch::kSparse), torch::Layout>);
  static_assert(!std::is_convertible_v<int, torch::Device>);
  static_assert(!HasATransform<torch::Tensor>);
  static_assert(!MakesComplexNumbers<torch::Tensor>);
  static_assert(!DrawsCounts<torch::Tensor> && !HasComplexEigenvalues<torch::Tensor>);
}

TEST_CASE("options are chained, and what they leave out is the factory's") {
  const auto options = torch::TensorOptions()
                           .dtype(torch::kDouble)
                           .layout(torch::kStrided)
                           .device(torch::kCPU)
                           .requires_grad(true);
  const torch::Tensor x = torch::zeros({2, 3}, options);
  CHECK(x.dtype() == torch::kDouble);
  CHECK(x.requires_grad());
  CHECK(torch::ones(3, torch::dtype(torch::kInt).device(torch::kCPU)).dtype() == torch::kInt);
  CHECK(torch::ones({1}, torch::requires_grad()).requires_grad());
  CHECK(torch::full({2}, 7, torch::device("cpu")).dtype() == torch::kLong);
  CHECK(torch::full({2}, 7.5, torch::device(torch::kCPU)).dtype() == torch::kFloat);
  CHECK(torch::arange(3, torch::device(torch::kCPU)).dtype() == torch::kLong);
  CHECK(torch::arange(1, 4, torch::kFloat).to_vector() == Values{1, 2, 3});
  CHECK(torch::randint(5, {2}, torch::device(torch::kCPU)).dtype() == torch::kLong);
  CHECK(torch::randperm(5, torch::device(torch::kCPU)).dtype() == torch::kLong);
  CHECK(torch::zeros({2}, torch::kBool).dtype() == torch::kBool);
  CHECK(torch::dtype<double>().dtype() == torch::kDouble);
  CHECK(torch::TensorOptions(torch::kHalf).has_dtype());
  CHECK_FALSE(torch::TensorOptions(torch::kCPU).has_dtype());
  CHECK(torch::TensorOptions("cuda:3").device() == torch::Device(torch::kCUDA, 3));
  CHECK(torch::zeros({2}, torch::kDouble).dtype() == torch::kDouble);
  CHECK_THROWS_AS(torch::zeros({2}, torch::ScalarType::Undefined), torch::Error);
}

TEST_CASE("factories like a tensor take options") {
  const torch::Tensor x = torch::ones({2, 2}, torch::kDouble);
  CHECK(torch::zeros_like(x).dtype() == torch::kDouble);
  CHECK(torch::zeros_like(x, torch::kInt).dtype() == torch::kInt);
  CHECK(torch::ones_like(x, torch::TensorOptions().requires_grad(true)).requires_grad());
  CHECK(torch::ones_like(x, torch::TensorOptions().requires_grad(true)).dtype() == torch::kDouble);
  CHECK(torch::full_like(x, 3).to_vector() == Values{3, 3, 3, 3});
  CHECK(torch::full_like(x, 2.5, torch::kFloat).to_vector() == Values{2.5, 2.5, 2.5, 2.5});
  CHECK(torch::empty_like(x, torch::kHalf).dtype() == torch::kHalf);
  CHECK(torch::rand_like(x).dtype() == torch::kDouble);
  CHECK(torch::randn_like(x, torch::kFloat).dtype() == torch::kFloat);
  CHECK(torch::randn_like(x, torch::dtype(torch::kFloat).requires_grad(true)).requires_grad());
  CHECK(torch::randint_like(x, 3, torch::TensorOptions(torch::kLong)).dtype() == torch::kLong);
}

TEST_CASE("sizes are lists, vectors, one number, or what a tensor has") {
  const std::vector<int64_t> sizes{2, 3};
  std::ostringstream printed;
  printed << torch::zeros({2, 3}).sizes();
  CHECK(printed.str() == "[2, 3]");
  CHECK(torch::zeros({2, 3}).sizes() == sizes);
  CHECK(torch::zeros(sizes).sizes() == sizes);
  CHECK(torch::zeros(torch::IntArrayRef(sizes)).sizes() == sizes);
  CHECK(torch::zeros(torch::IntArrayRef({2, 3})).dim() == 2);
  CHECK(torch::empty(4).sizes() == std::vector<int64_t>{4});
  CHECK(torch::rand(torch::zeros({2, 3}).sizes()).sizes() == sizes);
  CHECK(torch::zeros({}).dim() == 0);
  const auto rank = [](torch::IntArrayRef list) { return list.size(); };
  CHECK(rank(torch::zeros({2, 3}).sizes()) == 2);
  CHECK(rank({1, 2, 3}) == 3);
  CHECK(rank(5) == 1);
  CHECK(rank(sizes) == 2);
  torch::IntArrayRef list({4, 5, 6});
  CHECK(list.slice(1) == torch::IntArrayRef({5, 6}));
  CHECK(list.vec() == std::vector<int64_t>{4, 5, 6});
  CHECK(torch::ones({2, 3, 4}).permute(torch::IntArrayRef({2, 0, 1})).size(0) == 4);
  std::ostringstream text;
  text << list << torch::IntArrayRef();
  CHECK(text.str() == "[4, 5, 6][]");
  const std::vector<torch::Tensor> two{torch::ones(1), torch::zeros(2)};
  CHECK(torch::cat(torch::TensorList(two)).to_vector() == Values{1, 0, 0});
  const auto total = [](torch::TensorList tensors) {
    int64_t n = 0;
    for (const torch::Tensor& x : tensors) n += x.numel();
    return n;
  };
  CHECK(total(two) == 3);
  CHECK(total({two[0], two[1], two[1]}) == 5);
  CHECK_THROWS_AS(torch::TensorList(two).at(2), torch::Error);
}

TEST_CASE("a tensor of numbers, nested lists and vectors") {
  CHECK(torch::tensor(3).dim() == 0);
  CHECK(torch::tensor(3).dtype() == torch::kLong);
  CHECK(torch::tensor(2.5).item<double>() == 2.5);
  CHECK(torch::tensor({1.0, 2.0}).dtype() == torch::kFloat);
  CHECK(torch::tensor({1, 2}, torch::kDouble).dtype() == torch::kDouble);
  CHECK(torch::tensor({true, false}).dtype() == torch::kBool);
  const torch::Tensor x = torch::tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(x.sizes() == std::vector<int64_t>{2, 3});
  CHECK(x.to_vector() == Values{1, 2, 3, 4, 5, 6});
  CHECK(torch::tensor({{{1.5}}, {{2.5}}}).sizes() == std::vector<int64_t>{2, 1, 1});
  CHECK(torch::tensor({{1, 2}}).sizes() == std::vector<int64_t>{1, 2});
  CHECK(torch::tensor(std::vector<float>{1.5F, 2}).to_vector() == Values{1.5, 2});
  CHECK(torch::tensor(std::vector<int64_t>{int64_t{1} << 60}).item<int64_t>() == int64_t{1} << 60);
  CHECK(torch::tensor(std::vector<uint8_t>{7}).dtype() == torch::kByte);
  CHECK(torch::tensor(std::vector<bool>{true, false}).dtype() == torch::kBool);
  CHECK(torch::tensor(std::vector<int>{3}, torch::dtype(torch::kFloat).requires_grad(true)).requires_grad());
  CHECK(torch::tensor({}).sizes() == std::vector<int64_t>{0});
  CHECK(torch::tensor({1.0}, torch::requires_grad()).dtype() == torch::kFloat);
  CHECK(error_of([] {
          torch::tensor({{1, 2}, {3}});
        }).find("lists of shapes [2] and [1]") != std::string::npos);
  CHECK(error_of([] { torch::tensor({1, 2.5}); }).find("kinds") != std::string::npos);
}

TEST_CASE("from_blob shares the memory of its caller") {
  std::vector<float> data{1, 2, 3, 4, 5, 6};
  const torch::Tensor x = torch::from_blob(data.data(), {2, 3}, torch::kFloat);
  data[4] = 50;
  CHECK(x.to_vector() == Values{1, 2, 3, 4, 50, 6});
  x.fill_(9);
  CHECK(data[0] == 9);
  CHECK(torch::from_blob(data.data(), {6}).dtype() == torch::kFloat);
  data = {1, 2, 3, 4, 5, 6};
  const torch::Tensor t =
      torch::from_blob(data.data(), {3, 2}, {1, 3}, torch::TensorOptions().dtype(torch::kFloat));
  CHECK(t.to_vector() == Values{1, 4, 2, 5, 3, 6});
  void* freed = nullptr;
  {
    const torch::Tensor y = torch::from_blob(
        data.data(), {6}, [&](void* p) { freed = p; }, torch::kFloat);
    const torch::Tensor z = torch::from_blob(
                                data.data(), {2}, {2}, [&](void*) {}, torch::kFloat)
                                .clone();
    CHECK(z.to_vector() == Values{1, 3});
    CHECK(freed == nullptr);
  }
  CHECK(freed == data.data());
  int calls = 0;  // once, also where the tensor is refused
  CHECK_THROWS_AS(
      torch::from_blob(
          data.data(), {2}, [&](void*) { ++calls; }, torch::dtype(torch::kInt).requires_grad(true)),
      torch::Error);
  CHECK(calls == 1);
  CHECK(torch::from_blob(data.data(), {6}, torch::Deleter(), torch::kFloat).numel() == 6);
  CHECK_THROWS_AS(torch::from_blob(data.data(), {2}, {-1}), torch::Error);
  CHECK_THROWS_AS(torch::from_blob(data.data(), {2}, {1, 1}), torch::Error);
}

TEST_CASE("functions are called by qualified names") {
  const torch::Tensor x = torch::tensor({{1.0, 5.0}, {7.0, 3.0}});
  CHECK(torch::sum(x).item<float>() == 16);
  CHECK(torch::sum(x, 1).to_vector() == Values{6, 10});
  CHECK(torch::sum(x, {0, 1}, true).sizes() == std::vector<int64_t>{1, 1});
  CHECK(torch::mean(x, {0}).to_vector() == Values{4, 4});
  CHECK(torch::argmax(x, 1).to_vector() == Values{1, 0});
  CHECK(torch::stack({x, x}).sizes() == std::vector<int64_t>{2, 2, 2});
  CHECK(torch::cat({x, x}, 1).size(1) == 4);
  CHECK(torch::equal(torch::matmul(x, torch::eye(2)), x));
  CHECK(torch::einsum("ij,ij->", {x, x}).item<double>() == 84);
  CHECK(torch::where(x > 4, x, torch::zeros_like(x)).to_vector() == Values{0, 5, 7, 0});
  CHECK(torch::relu(-x).sum().item<double>() == 0);
  CHECK(torch::allclose(torch::exp(torch::log(x)), x));
  CHECK(torch::clamp(x, 2, 4).to_vector() == Values{2, 4, 4, 3});
  CHECK(torch::clip(x, 2, 4).to_vector() == Values{2, 4, 4, 3});
  CHECK(torch::equal(torch::absolute(-x), x));
  CHECK(torch::greater_equal(x, 5).to_vector() == Values{0, 1, 1, 0});
  CHECK(torch::multiply(x, 2).sum().item<double>() == 32);
  CHECK(torch::concat({x, x}).size(0) == 4);
  CHECK(torch::allclose(torch::linalg_inv(x).matmul(x), torch::eye(2), 1e-5, 1e-5));
  CHECK(torch::equal(torch::linalg::inv(x), torch::inverse(x)));
  CHECK(torch::equal(torch::special::expit(x), torch::sigmoid(x)));
  const auto best = torch::max(x, 1);
  CHECK(std::get<0>(best).to_vector() == Values{5, 7});
  const auto [values, indices] = torch::sort(x, 1);
  CHECK(values.to_vector() == Values{1, 5, 3, 7});
  torch::Tensor top, places;
  std::tie(top, places) = torch::topk(x, 1);
  CHECK(places.to_vector() == Values{1, 0});
  CHECK(torch::zeros({2}, x.options().dtype(torch::kDouble)).dtype() == torch::kDouble);
  CHECK(torch::zeros({2}, x.options().dtype(torch::kDouble).requires_grad(true)).requires_grad());
  CHECK(torch::eye(2, torch::kInt).dtype() == torch::kInt);
  CHECK(x.new_zeros({2}, torch::kLong).dtype() == torch::kLong);
  CHECK(x.to(torch::TensorOptions(torch::kCPU)).dtype() == torch::kFloat);
  CHECK(x.to(torch::dtype(torch::kDouble)).dtype() == torch::kDouble);
  if (!torch::equal(x, x)) FAIL("a condition");
  torch::manual_seed(3);
  const torch::Tensor drawn = torch::randn({4});
  torch::manual_seed(3);
  CHECK(torch::equal(torch::randn({4}), drawn));
  torch::relu_(x);
  CHECK(torch::get_num_threads() >= 1);
}

TEST_CASE("functions with ATen's parameters") {
  const torch::Tensor a = torch::arange(6, torch::kFloat).view({3, 2}), b = torch::ones({3, 2});
  CHECK(torch::equal(torch::cross(a, b), torch::linalg_cross(a, b, 0)));
  CHECK(error_of([&] { torch::cross(a.view({6}), b.view({6})); }).find("size 3") != std::string::npos);

  const torch::Tensor rows = torch::tensor({2, 0});
  CHECK(torch::equal(torch::embedding(a, rows, -1), a.index_select(0, rows)));
  CHECK(torch::equal(torch::embedding(a, rows, 0, false, false), a.index_select(0, rows)));
  CHECK(error_of([&] { torch::embedding(a, rows, -1, false, true); }).find("sparse") != std::string::npos);

  CHECK(std::get<0>(torch::sort(a, true, 0, true)).to_vector() == Values{4, 5, 2, 3, 0, 1});
  CHECK(torch::argsort(a, /*stable=*/true, 0, true).to_vector() == Values{2, 2, 1, 1, 0, 0});
  const auto [deviation, mean] = torch::std_mean(b, false);
  CHECK(deviation.item<float>() == 0);
  CHECK(mean.item<float>() == 1);
  CHECK(torch::equal(torch::layer_norm(a, {2}, {}, {}, 1e-5, true), torch::layer_norm(a, {2})));
  CHECK(torch::equal(torch::group_norm(a, 1, {}, {}, 1e-5, true), torch::group_norm(a, 1)));
  CHECK(torch::equal(torch::batch_norm(a, {}, {}, {}, {}, true, 0.1, 1e-5, true),
                     torch::batch_norm(a, {}, {}, {}, {}, true)));
}

TEST_CASE("an ArrayRef is compared, and read backwards") {
  const std::vector<double> values = {1, 2, 3};
  const torch::ArrayRef<double> list(values), front = list.slice(0, 2);
  CHECK((list == torch::ArrayRef<double>(values)));
  CHECK_FALSE(list.equals(front));
  CHECK(std::vector<double>(front.rbegin(), front.rend()) == Values{2, 1});
  CHECK(std::vector<double>(list.cbegin(), list.cend()) == values);
}

TEST_CASE("a regression with plain tensors") {
  torch::manual_seed(0);
  const auto device = torch::Device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  const auto options = torch::TensorOptions().dtype(torch::kFloat64).device(device);
  const torch::Tensor x = torch::linspace(-1, 1, 100, options).unsqueeze(1);
  const torch::Tensor y = 3 * x + 0.5 + torch::normal(0, 0.01, {100, 1}).to(x.options());
  torch::Tensor w = torch::zeros({1, 1}, options.requires_grad(true));
  torch::Tensor b = torch::zeros(1, options);
  b.set_requires_grad(true);
  for (int step = 0; step < 200; ++step) {
    torch::Tensor loss = torch::mse_loss(torch::mm(x, w) + b, y);
    loss.backward();
    torch::NoGradGuard no_grad;
    w -= 0.5 * w.grad();
    b -= 0.5 * b.grad();
    w.mutable_grad().reset();
    b.grad().zero_();
  }
  CHECK(w.item<double>() == Approx(3).epsilon(0.01));
  CHECK(b.item().toDouble() == Approx(0.5).epsilon(0.01));
}

TEST_CASE("indexing") {
  using namespace torch::indexing;
  const torch::Tensor x = torch::arange(12).reshape({3, 4});
  CHECK(x.index({1, Slice(1, None)}).to_vector() == Values{5, 6, 7});
  CHECK(x.index({"...", 0}).to_vector() == Values{0, 4, 8});
  CHECK(x.index({Slice(None, None, 2), Ellipsis}).size(0) == 2);
  CHECK(x.index({None}).dim() == 3);
  x.index_put_({Slice(), 0}, 0);
  CHECK(x.index({torch::indexing::Slice(), torch::tensor({0, 1})}).to_vector() == Values{0, 1, 0, 5, 0, 9});
  CHECK(x[2][3].item<int64_t>() == 11);
}

TEST_CASE("gradient mode and errors") {
  const torch::Tensor x = torch::ones({2}, torch::requires_grad());
  {
    torch::NoGradGuard no_grad;
    CHECK_FALSE((x * 2).requires_grad());
    torch::AutoGradMode on(true);
    CHECK((x * 2).requires_grad());
  }
  CHECK(torch::GradMode::is_enabled());
  {
    torch::InferenceMode guard;
    CHECK(torch::InferenceMode::is_enabled());
    CHECK((x * 2).is_inference());
  }
  CHECK_FALSE(torch::ones({2}, x.options()).requires_grad());
  try {
    torch::ones({2}) + torch::ones({3});
    FAIL("no error");
  } catch (const c10::Error& e) {
    CHECK(std::string(e.what_without_backtrace()).find("[2]") != std::string::npos);
  }
  const int n = 3;
  TORCH_CHECK(n == 3, "never");
  CHECK(error_of([&] { TORCH_CHECK(n == 4, "n is ", n, '!'); }).find("n is 3!") != std::string::npos);
  CHECK(error_of([&] { TORCH_CHECK(n == 4); }).find("n == 4") != std::string::npos);
  CHECK(error_of([&] { AT_ERROR("n is ", n); }).find("n is 3") != std::string::npos);
  CHECK(error_of([&] { TORCH_CHECK_VALUE(n == 4, "n is ", n); }).find("n is 3") != std::string::npos);
  CHECK_FALSE(torch::cuda::cudnn_is_available());
  if (n == 3)
    TORCH_CHECK(true, "a statement");
  else
    FAIL("the else of another if");
}

namespace with_directives {
using namespace torch;  // nn, optim and cuda are those of torch

TEST_CASE("with a using-directive") {
  Tensor x = zeros({2}, requires_grad());
  optim::SGD sgd(std::vector<Tensor>{x}, 0.5);
  CHECK(sgd.param_groups().size() == 1);
  CHECK_FALSE(cuda::is_available());
  CHECK(tensor({1.0, 2.0}, kDouble).dtype() == kDouble);
  CHECK(full({2}, 1.5).numel() == 2);
  CHECK(torch::equal(zeros_like(x), x));
}
}  // namespace with_directives

}  // namespace
}  // namespace libtorch
