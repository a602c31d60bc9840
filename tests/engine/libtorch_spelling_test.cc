// Spellings of programs written for libtorch: results as tuples, sizes and dims as they are written, numbers of any
// integer type, comparisons that are conditions, reductions of losses, modes and switches.
// Not tested here: values of the functions (tests/ops), members of Tensor (tensor_members_test.cc).
#include <thread>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace libtorch_spelling {

using namespace retrograd;
using Values = std::vector<double>;

const Values kRow{3, 1, 2};

Tensor row() { return tensor({3.0, 1.0, 2.0}); }

TEST_CASE("results unpack as tuples do") {
  const auto [sorted, order] = sort(row());
  CHECK(sorted.to_vector() == Values{1, 2, 3});
  CHECK(order.to_vector() == Values{1, 2, 0});
  CHECK(std::get<0>(row().max(0)).item<double>() == 3);
  CHECK(std::get<1>(max(row().view({1, 3}), 1)).item<int64_t>() == 0);
  Tensor values, indices;
  std::tie(values, indices) = topk(row(), 2);
  CHECK(values.to_vector() == Values{3, 2});
  CHECK(indices.to_vector() == Values{0, 2});
  std::tie(std::ignore, indices) = row().min(0);
  CHECK(indices.item<int64_t>() == 1);
  const std::tuple<Tensor, Tensor> pair = row().sort();
  CHECK(std::get<0>(pair).to_vector() == Values{1, 2, 3});
  auto [U, S, Vh] = linalg::svd(eye(2) * 3);
  CHECK(S.to_vector() == Values{3, 3});
  CHECK(std::get<2>(unique(tensor({1, 1, 2}), true, false, true)).to_vector() == Values{2, 1});
}

TEST_CASE("results with names copy, assign and move as values") {
  ValuesAndIndices a = sort(row()), b = a;
  CHECK(&b.values != &a.values);
  b.values = zeros({3});
  CHECK(a.values.to_vector() == Values{1, 2, 3});
  CHECK(std::get<0>(b).to_vector() == Values{0, 0, 0});
  a = b;
  CHECK(a.values.to_vector() == Values{0, 0, 0});
  const ValuesAndIndices c = std::move(b);
  CHECK(c.values.to_vector() == Values{0, 0, 0});
  CHECK(c.indices.to_vector() == Values{1, 2, 0});
  static_assert(std::tuple_size_v<ValuesAndIndices> == 2);
  static_assert(std::is_same_v<std::tuple_element_t<1, MinAndMax>, Tensor>);
  static_assert(std::is_nothrow_move_constructible_v<SlogdetResult>);
}

TEST_CASE("compiled functions take and give results with names") {
  auto f = compile([](const Tensor& x) { return sort(x * 2.0); });
  for (int run = 0; run < 2; ++run) {
    const ValuesAndIndices r = f(row());
    CHECK(r.values.to_vector() == Values{2, 4, 6});
    CHECK(r.indices.to_vector() == Values{1, 2, 0});
  }
  CHECK(f.stats().captures == 1);
}

TEST_CASE("sizes and dims as they are written") {
  CHECK(zeros(3).sizes() == IntArray{3});
  CHECK(ones({2, 3}).view(-1).sizes() == IntArray{6});
  CHECK(ones({2, 3}).view({-1, 2}).sizes() == IntArray{3, 2});
  CHECK(ones({2, 3}).reshape(6).dim() == 1);
  CHECK(ones({2, 3}).size(-1) == 3);
  const size_t wide = 4;
  CHECK(zeros(wide).numel() == 4);
  CHECK(zeros({2, static_cast<int>(wide)}).numel() == 8);
  CHECK(category_of([] { zeros(-3); }) == Category::bad_argument);
  const Tensor x = tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2});
  CHECK(x.sum(0).to_vector() == Values{4, 6});
  CHECK(x.sum({0, 1}, /*keepdim=*/true).sizes() == IntArray{1, 1});
  CHECK(x.mean(1, true).sizes() == IntArray{2, 1});
  CHECK(x.argmax(1).to_vector() == Values{1, 1});
  CHECK(x.argmax(1, /*keepdim=*/true).sizes() == IntArray{2, 1});
  CHECK(x.max().item().to<double>() == 4);
  CHECK(x.var(1, /*unbiased=*/false).to_vector() == Values{0.25, 0.25});
  CHECK(x.norm().item<float>() == Approx(5.477226));
}

TEST_CASE("numbers of any type stand beside tensors") {
  const Tensor x = tensor({1.0, 2.0});
  CHECK((2 - x).to_vector() == Values{1, 0});
  CHECK((x / 2).to_vector() == Values{0.5, 1});
  CHECK((x * 2.0f).to_vector() == Values{2, 4});
  CHECK((x + 3u).to_vector() == Values{4, 5});
  CHECK((size_t{2} * x).to_vector() == Values{2, 4});
  CHECK((x - static_cast<long long>(1)).to_vector() == Values{0, 1});
  CHECK((tensor({1, 2}) + uint8_t{1}).dtype() == kInt64);
  CHECK((x > 1).sum().item<int>() == 1);
  CHECK(full({2}, int16_t{3}).dtype() == kInt64);
  Tensor y = x.clone();
  y += 1;
  CHECK(y.to_vector() == Values{2, 3});
  y.index_put_({0}, 9);
  CHECK(y.to_vector() == Values{9, 3});
}

TEST_CASE("literals of tensors") {
  CHECK(tensor({1.0, 2.0}).dtype() == kFloat32);
  CHECK(tensor({1.0, 2.0}, kFloat64).dtype() == kFloat64);
  CHECK(tensor({1, 2}).dtype() == kInt64);
  CHECK(tensor({1, 2}, kFloat32).to_vector() == Values{1, 2});
}

template <class T>
concept Condition_of = requires(const T& a) {
  static_cast<bool>(a == a);
};

TEST_CASE("equal and allclose are conditions and tensors; comparisons are no conditions") {
  static_assert(!Condition_of<Tensor>);
  const Tensor x = row();
  if (!x.equal(x.clone())) FAIL("equal tensors");
  CHECK_FALSE(equal(x, x + 1));
  CHECK(allclose(x, x + 1e-9));
  const bool close = x.allclose(x + 1.0);
  CHECK_FALSE(close);
  const Tensor answer = equal(x, x);
  CHECK(answer.dtype() == kBool);
  CHECK((x.equal(x) && x.allclose(x)));
  auto f = compile([](const Tensor& t) { return t.equal(t); });
  for (int run = 0; run < 2; ++run) CHECK(f(x));
  // In arithmetic it is a tensor, not a number that was read.
  static_assert(std::same_as<decltype(equal(x, x) * 1.0), Tensor>);
  static_assert(std::same_as<decltype(equal(x, x) + 1), Tensor>);
}

template <class R>
concept Reduces = requires(const Tensor& x, R reduction) {
  mse_loss(x, x, reduction);
};

TEST_CASE("a reduction is a name or an enumerator, never a number") {
  const Tensor x = row(), y = zeros({3});
  CHECK(mse_loss(x, y, LossReduction::Sum).item<double>() == 14);
  CHECK(mse_loss(x, y, "sum").item<double>() == 14);
  CHECK(mse_loss(x, y, std::string("none")).to_vector() == Values{9, 1, 4});
  CHECK(mse_loss(x, y, LossReduction::None).to_vector() == Values{9, 1, 4});
  CHECK(mse_loss(x, y, LossReduction::Mean).item<double>() == Approx(14.0 / 3));
  CHECK(mse_loss(x, y).item<double>() == Approx(14.0 / 3));
  static_assert(!Reduces<int>);
  static_assert(!Reduces<std::nullptr_t>);
  static_assert(!std::is_convertible_v<int, LossReduction>);
  std::string text;
  CHECK(category_of([&] { mse_loss(x, y, "max"); }, &text) == Category::bad_argument);
  CHECK(text.find("\"max\"") != std::string::npos);
  CHECK(category_of([&] { mse_loss(x, y, static_cast<LossReduction::Value>(7)); }) == Category::bad_argument);
}

TEST_CASE("hooks are removed by what register_hook gave") {
  const Tensor x = ones({1}).requires_grad_();
  int called = 0;
  const auto first = x.register_hook([&](const Tensor&) { ++called; });
  x.register_hook([&](const Tensor& g) { return g * 2.0; });
  sum(x).backward();
  x.remove_hook(first);
  sum(x).backward();
  CHECK(called == 1);
  CHECK(x.grad().item<double>() == 4);
}

TEST_CASE("anomaly mode holds for all threads until it is switched off; guards decide in their scope") {
  const Tensor x = zeros({1}).requires_grad_();
  const auto nan_in_backward = [&] { sum(sqrt(x) * 0.0).backward(); };
  autograd::AnomalyMode::set_enabled(true);
  CHECK(autograd::AnomalyMode::is_enabled());
  CHECK(category_of(nan_in_backward) == Category::bad_argument);
  std::thread([] { CHECK(autograd::AnomalyMode::is_enabled()); }).join();
  {
    const autograd::DetectAnomalyGuard quiet(/*check_nan=*/false);
    CHECK_FALSE(autograd::AnomalyMode::is_enabled());
    CHECK_NOTHROW(nan_in_backward());
    x.mutable_grad().reset();
  }
  autograd::AnomalyMode::set_enabled(true, /*check_nan=*/false);
  CHECK_FALSE(autograd::AnomalyMode::is_enabled());
  autograd::AnomalyMode::set_enabled(false);
  CHECK_NOTHROW(nan_in_backward());
}

TEST_CASE("deterministic algorithms: the switch is kept, and results are the same") {
  const Tensor x = randn({100, 10}), index = randint(0, 10, {100}, {kInt64});
  const auto scattered = [&] { return zeros({10, 10}).index_add(0, index, x); };
  const Tensor before = scattered();
  use_deterministic_algorithms(true, /*warn_only=*/true);
  CHECK(are_deterministic_algorithms_enabled());
  CHECK(is_deterministic_algorithms_warn_only_enabled());
  CHECK(equal(before, scattered()));
  use_deterministic_algorithms(false);
  CHECK_FALSE(are_deterministic_algorithms_enabled());
  CHECK_FALSE(is_deterministic_algorithms_warn_only_enabled());
}

}  // namespace libtorch_spelling
