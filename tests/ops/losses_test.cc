// Losses against their definitions in double, and derivatives. Not tested here: PyTorch's values
// (tests/conformance), speed.
#include "ops/losses.h"

#include "ops/index_ops.h"
#include "ops/softmax.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "tests/ops/gradcheck.h"
#include "tests/errors.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;

Tensor classes(std::initializer_list<double> values, const Shape& shape) {
  return tensor(std::vector<double>(values), shape, {kInt64});
}

TEST_CASE("cross_entropy is the negative logarithm of the target's probability") {
  for (ScalarType dtype : {kFloat64, kFloat32, kBFloat16})
    for (int64_t n : {2, 17, 5000}) {
      const Tensor x = to(input({3, n}, -5, 5, 2).detach(), dtype),
                   target = classes({0, -100, static_cast<double>(n - 1)}, {3});
      const Tensor loss = cross_entropy(x, target, {}, "none"), logp = log_softmax(to(x, kFloat64), 1);
      const double tolerance = dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-5 : 4e-2;
      const double first = -logp.to_vector()[0], last = -logp.to_vector()[static_cast<size_t>(3 * n - 1)];
      CHECK(std::abs(loss.to_vector()[0] - first) <= tolerance);
      CHECK(loss.to_vector()[1] == 0);
      CHECK(std::abs(loss.to_vector()[2] - last) <= tolerance);
      CHECK(std::abs(cross_entropy(x, target).item<double>() - (first + last) / 2) <= tolerance);
    }
}

TEST_CASE("class weights, smoothing and probabilities agree with each other") {
  const Tensor x = input({4, 3}).detach(), target = classes({2, 0, 1, 2}, {4}),
               w = tensor({1, 2, 0.5}, {kFloat64});
  const Tensor onehot =
      scatter(zeros({4, 3}, {kFloat64}), 1, reshape(target, {4, 1}), ones({4, 1}, {kFloat64}));
  const auto same = [](const Tensor& a, const Tensor& b) {
    return std::abs(a.item<double>() - b.item<double>()) < 1e-12;
  };
  CHECK(same(cross_entropy(x, target), cross_entropy(x, onehot)));
  CHECK(same(cross_entropy(x, target, w, "sum"), cross_entropy(x, onehot, w, "sum")));
  CHECK(same(cross_entropy(x, target, w, "sum", -100, 0.3), cross_entropy(x, onehot, w, "sum", -100, 0.3)));
  CHECK(same(cross_entropy(x, target, w), div(cross_entropy(x, target, w, "sum"), 4.0)));
  CHECK(same(cross_entropy(x, target, w, "mean", 1), nll_loss(log_softmax(x, 1), target, w, "mean", 1)));
}

TEST_CASE("derivatives of losses over classes") {
  const Tensor x = input({3, 4, 2}), target = classes({0, 3, 1, 2, 1, 3}, {3, 2}),
               w = tensor({1, 2, 0.5, 1.5}, {kFloat64});
  const Tensor probabilities = softmax(input({3, 4, 2}, -1, 1, 4).detach(), 1).detach().requires_grad_();
  for (std::string reduction : {"none", "sum", "mean"}) {
    gradcheck([&](const Tensors& in) { return cross_entropy(in[0], target, {}, reduction, 3); }, {x});
    gradcheck([&](const Tensors& in) { return cross_entropy(in[0], target, w, reduction, -100, 0.2); }, {x});
    gradcheck([&](const Tensors& in) { return cross_entropy(in[0], in[1], w, reduction); },
              {x, probabilities});
    gradcheck([&](const Tensors& in) { return nll_loss(mul(in[0], in[0]), target, w, reduction, 1); }, {x});
  }
  gradcheck([&](const Tensors& in) { return cross_entropy(in[0], classes({2}, {})); }, {input({4})});
}

TEST_CASE("elementwise losses") {
  const Tensor x = tensor({0.5, -2, 0.1}, {kFloat64}), t = tensor({0, 1, 0.2}, {kFloat64});
  const auto values = [](const Tensor& y) { return y.to_vector(); };
  CHECK(values(mse_loss(x, t, "none"))[1] == 9);
  CHECK(l1_loss(x, t, "sum").item<double>() == Approx(3.6));
  CHECK(values(smooth_l1_loss(x, t, "none", 2.0))[0] == Approx(0.0625));
  CHECK(values(smooth_l1_loss(x, t, "none", 0.0))[1] == 3);
  CHECK(values(huber_loss(x, t, "none", 2.0))[1] == Approx(4));
  const Tensor p = tensor({0.25, 1, 0}, {kFloat64}), y = tensor({1, 1, 1}, {kFloat64});
  CHECK(values(binary_cross_entropy(p, y, {}, "none")) == std::vector<double>{-std::log(0.25), 0, 100});
  CHECK(binary_cross_entropy_with_logits(tensor({800}, {kFloat32}), tensor({0}, {kFloat32})).item<double>() ==
        800);
  CHECK(kl_div(tensor({-1, -2}, {kFloat64}), tensor({0, 0.5}, {kFloat64}), "sum").item<double>() ==
        Approx(0.5 * (std::log(0.5) + 2)));
  CHECK(cosine_similarity(tensor({3, 4}, {kFloat64}), tensor({4, 3}, {kFloat64}), 0).item<double>() ==
        Approx(0.96));
  CHECK(cosine_similarity(zeros({2}), zeros({2}), 0).item<double>() == 0);
}

TEST_CASE("a saturated probability has a finite gradient") {
  const Tensor p = tensor({0, 1}, {kFloat64}).requires_grad_(), t = tensor({1, 1}, {kFloat64});
  const std::vector<double> g = autograd::grad({binary_cross_entropy(p, t, {}, "sum")}, {p})[0].to_vector();
  CHECK(g[0] == Approx(-1e12));
  CHECK(g[1] == 0);
}

TEST_CASE("logarithms of a saturated probability end at -100, in the gradient of the target, too") {
  const Tensor p = tensor({0, 1}, {kFloat64}), t = tensor({0.25, 0.25}, {kFloat64}).requires_grad_();
  const Tensor loss = binary_cross_entropy(p, t, {}, "none");
  CHECK(loss.detach().to_vector() == std::vector<double>{25, 75});
  CHECK(autograd::grad({sum(loss)}, {t})[0].to_vector() == std::vector<double>{100, -100});
}

TEST_CASE("derivatives of losses between tensors") {
  const Tensor x = input({3, 2}, -2, 2, 3), t = input({3, 2}, -2, 2, 4), p = input({3, 2}, 0.1, 0.9, 5),
               q = input({3, 2}, 0.1, 0.9, 6);
  const Tensor w = input({2}, 0.5, 1.5, 7);
  gradcheck([](const Tensors& in) { return mse_loss(in[0], in[1], "none"); }, {x, t});
  gradcheck([](const Tensors& in) { return l1_loss(mul(in[0], in[0]), in[1]); }, {x, t});
  gradcheck([](const Tensors& in) { return smooth_l1_loss(in[0], in[1], "sum", 0.7); }, {x, t});
  gradcheck([](const Tensors& in) { return huber_loss(in[0], in[1], "none", 1.3); }, {x, t});
  gradcheck([](const Tensors& in) { return binary_cross_entropy(in[0], in[1], in[2]); }, {p, q, w});
  gradcheck(
      [](const Tensors& in) { return binary_cross_entropy_with_logits(in[0], in[1], {}, in[2], "none"); },
      {x, q, w});
  gradcheck([](const Tensors& in) { return kl_div(in[0], in[1], "batchmean"); }, {x, q});
  gradcheck([](const Tensors& in) { return kl_div(in[0], in[1], "mean", true); }, {x, t});
  gradcheck([](const Tensors& in) { return cosine_similarity(in[0], in[1], -1); },
            {x, input({1, 2}, 0.5, 1, 8)});
}

TEST_CASE("kl_div without a batch is not averaged over one") {
  const Tensor x = tensor({-1.0}, {kFloat64}).view({}), target = tensor({0.5}, {kFloat64}).view({});
  CHECK(kl_div(x, target, "batchmean").item() == kl_div(x, target, "sum").item());
}

TEST_CASE("refused losses") {
  const Tensor x = zeros({2, 3}), t = classes({0, 1}, {2});
  CHECK(category_of([&] { cross_entropy(x, classes({0, 3}, {2})); }) == Category::index_out_of_range);
  CHECK(category_of([&] { nll_loss(x, classes({0, -1}, {2})); }) == Category::index_out_of_range);
  CHECK(category_of([&] { cross_entropy(x, classes({0, 1, 2}, {3})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { cross_entropy(x, t, zeros({2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { cross_entropy(x, to(t, kFloat32)); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { cross_entropy(x, to(x, kInt64)); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { cross_entropy(x, t, {}, "mean", -100, 1.5); }) == Category::bad_argument);
  CHECK(category_of([&] { mse_loss(x, x, "Mean"); }) == Category::bad_argument);
  CHECK(category_of([&] { mse_loss(x, zeros({4, 3})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { huber_loss(x, x, "mean", 0.0); }) == Category::bad_argument);
  CHECK(category_of([&] { smooth_l1_loss(x, x, "mean", -1.0); }) == Category::bad_argument);
  CHECK(category_of([&] { binary_cross_entropy(x, zeros({3})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { nll_loss(zeros({}), classes({0}, {})); }) == Category::bad_dim);
  const Tensor wide = ones({4, 2, 3});
  CHECK(category_of([&] { binary_cross_entropy(x, x, wide); }) == Category::shape_mismatch);
  CHECK(category_of([&] { binary_cross_entropy_with_logits(x, x, wide); }) == Category::shape_mismatch);
  CHECK(category_of([&] { binary_cross_entropy_with_logits(x, x, {}, wide); }) == Category::shape_mismatch);
}

}  // namespace
}  // namespace retrograd
