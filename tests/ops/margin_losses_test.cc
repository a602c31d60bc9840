// Losses of margins and likelihoods against their definitions in double, at hinges and at the ends of the range, and
// what they refuse. Derivatives: tests/ops/derivatives. PyTorch's values: tests/conformance.
#include "ops/margin_losses.h"

#include "engine/autograd.h"
#include "ops/likelihood_losses.h"
#include "ops/losses.h"
#include "ops/vector_pairs.h"
#include "tests/errors.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::input;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInfinity = std::numeric_limits<double>::infinity();

Tensor whole(std::initializer_list<double> values, const Shape& shape) {
  return tensor(std::vector<double>(values), shape, {kInt64});
}
Tensor gradient(const Tensor& loss, const Tensor& x) { return autograd::grad({loss}, {x})[0]; }

TEST_CASE("multilabel_margin_loss is the sum of hinges of its definition") {
  const int64_t n = 3, c = 5;
  const Tensor x = input({n, c}).detach(),
               target = whole({1, 3, -1, 0, 2, /**/ -1, 1, 2, 3, 4, /**/ 4, 4, 0, 1, 2}, {n, c});
  const std::vector<double> v = x.to_vector(), t = target.to_vector();
  std::vector<double> want;
  for (int64_t row = 0; row < n; ++row) {
    const auto at = [&](const std::vector<double>& a, double i) {
      return a[static_cast<size_t>(row * c) + static_cast<size_t>(i)];
    };
    std::vector<double> labels;
    for (int64_t k = 0; k < c && at(t, static_cast<double>(k)) >= 0; ++k)
      labels.push_back(at(t, static_cast<double>(k)));
    double sum = 0;
    for (double j : labels)
      for (int64_t i = 0; i < c; ++i)
        if (!std::ranges::count(labels, static_cast<double>(i)))
          sum += std::max(0.0, 1 - at(v, j) + at(v, static_cast<double>(i)));
    want.push_back(sum / static_cast<double>(c));
  }
  CHECK(testing::worst_difference(multilabel_margin_loss(x, target, "none"), tensor(want, {n}, {kFloat64})) <
        1e-14);
  CHECK(want[1] == 0);  // no target at all
}

TEST_CASE("gradients are 0 at the hinge") {
  const Tensor x = tensor({1.0}, {kFloat64, kCPU, true}), zero = tensor({0.0}, {kFloat64});
  const Tensor minus = whole({-1}, {1});
  CHECK(gradient(hinge_embedding_loss(x, minus), x).item<double>() == 0);
  CHECK(gradient(margin_ranking_loss(x, zero, minus, -1.0), x).item<double>() == 0);
  const Tensor scores = tensor({1.0, 0.0}, {kFloat64, kCPU, true});
  CHECK(gradient(multi_margin_loss(scores, whole({0}, {})), scores).to_vector() == std::vector<double>{0, 0});
  CHECK(gradient(multilabel_margin_loss(scores, whole({0, -1}, {2})), scores).to_vector() ==
        std::vector<double>{0, 0});
}

TEST_CASE("losses of large scores do not overflow on the way") {
  const Tensor x = tensor({-300.0, 300.0}, {kFloat32, kCPU, true}), one = tensor({1.0, 1.0}, {kFloat32});
  CHECK(soft_margin_loss(x, one, "none").to_vector() == std::vector<double>{300, 0});
  CHECK(gradient(soft_margin_loss(x, one, "sum"), x).to_vector() == std::vector<double>{-1, 0});
  CHECK(multilabel_soft_margin_loss(x, one, {}, "none").item<double>() == 150);
  const Tensor large = tensor({1e30, 0.0, 0.0, 2e30}, {2, 2}, {kFloat32});
  CHECK(cosine_embedding_loss(large, large, whole({1, -1}, {2}), 0.0, "none").to_vector() ==
        std::vector<double>{0, 1});
  const Tensor small = tensor({1e-20f}, {kFloat32, kCPU, true}), nothing = tensor({0.0}, {kFloat32}),
               variance = tensor({1e-30}, {kFloat32});
  CHECK(gaussian_nll_loss(small, nothing, variance, false, 0.0).item<double>() ==
        Approx(0.5 * (std::log(1e-30) + 1e-10)));
}

TEST_CASE("poisson_nll_loss: targets that Stirling's formula does not cover have finite gradients") {
  const Tensor rate = tensor({0.5, 0.5, 0.5}, {kFloat64}),
               target = tensor({0., 1, 3}, {kFloat64, kCPU, true});
  const Tensor loss = poisson_nll_loss(rate, target, true, true, 1e-8, "none");
  CHECK(loss.to_vector()[2] == Approx(std::exp(0.5) - 1.5 + 3 * std::log(3.) - 3 + 0.5 * std::log(6 * M_PI)));
  const std::vector<double> g = gradient(sum(loss), target).to_vector();
  CHECK(g[0] == -0.5);
  CHECK(g[1] == -0.5);
  CHECK(g[2] == Approx(-0.5 + std::log(3.) + 0.5 / 3));
}

TEST_CASE("gaussian_nll_loss: shapes of the variance, and the clamp that passes the gradient") {
  const Tensor x = input({2, 3}).detach(), t = input({2, 3}, -1, 1, 2).detach(),
               rows = tensor({0.5, 2}, {kFloat64});
  CHECK(gaussian_nll_loss(x, t, rows, false, 1e-6, "none").to_vector() ==
        gaussian_nll_loss(x, t, reshape(rows, {2, 1}), false, 1e-6, "none").to_vector());
  const Tensor var = tensor({0.1}, {kFloat64, kCPU, true}), one = tensor({1.0}, {kFloat64}),
               zero = tensor({0.0}, {kFloat64});
  CHECK(gradient(gaussian_nll_loss(one, zero, var, false, 0.5), var).item<double>() == Approx(0.5 * (2 - 4)));
  for (const Shape& shape : {Shape{3}, Shape{1}, Shape{1, 1}})
    CHECK(category_of([&] { gaussian_nll_loss(x, t, ones(shape, {kFloat64})); }) == Category::bad_argument);
  CHECK(category_of([&] { gaussian_nll_loss(one, zero, tensor({-1.0}, {kFloat64})); }) ==
        Category::bad_argument);
  CHECK(std::isnan(gaussian_nll_loss(one, zero, tensor({kNan}, {kFloat64})).item<double>()));
}

TEST_CASE("binary_cross_entropy refuses exactly what lies outside of [0, 1]") {
  const Tensor half = tensor({0.5}, {kFloat32});
  for (double inside : {0.0, -0.0, 1.0, 1e-40})
    CHECK_NOTHROW(binary_cross_entropy(tensor({inside}, {kFloat32}), half));
  for (double outside : {-1e-9, 1.0000002, kNan, kInfinity, -kInfinity}) {
    const Tensor x = tensor({outside}, {kFloat32});
    CHECK(category_of([&] { binary_cross_entropy(x, half); }) == Category::bad_argument);
    CHECK(category_of([&] { binary_cross_entropy(half, x); }) == Category::bad_argument);
  }
  CHECK(category_of([&] { binary_cross_entropy(half, to(half, kFloat64)); }) == Category::dtype_mismatch);
  CHECK(binary_cross_entropy(ones({0}), ones({0}), {}, "sum").item<float>() == 0);
}

TEST_CASE("what the losses refuse") {
  const Tensor x = input({2, 3}).detach(), labels = whole({0, 1, 2, 2, 1, 0}, {2, 3}),
               two = whole({0, 1}, {2});
  const auto refused = [](const auto& f) { return category_of(f); };
  CHECK(refused([&] { margin_ranking_loss(x, x, two); }) == Category::shape_mismatch);
  CHECK(refused([&] { cosine_embedding_loss(x, x, labels); }) == Category::bad_dim);
  CHECK(refused([&] { triplet_margin_loss(x, x, x, 0.0); }) == Category::bad_argument);
  CHECK(refused([&] { triplet_margin_loss(x, x, input({3})); }) == Category::shape_mismatch);
  CHECK(refused([&] { multi_margin_loss(x, two, 3); }) == Category::bad_argument);
  CHECK(refused([&] { multi_margin_loss(x, whole({0, 3}, {2})); }) == Category::index_out_of_range);
  CHECK(refused([&] { multi_margin_loss(x, whole({0, -1}, {2})); }) == Category::index_out_of_range);
  CHECK(refused([&] { multi_margin_loss(x, whole({0}, {1})); }) == Category::shape_mismatch);
  CHECK(refused([&] { multi_margin_loss(x, two, 1, 1.0, ones({2}, {kFloat64})); }) ==
        Category::shape_mismatch);
  CHECK(refused([&] { multi_margin_loss(ones({2, 3, 1}), two); }) == Category::bad_dim);
  CHECK(refused([&] { multilabel_margin_loss(x, two); }) == Category::shape_mismatch);
  CHECK(refused([&] {
          multilabel_margin_loss(x, whole({0, -1, 3, 0, -1, -1}, {2, 3}));
        }) == Category::index_out_of_range);
  CHECK(refused([&] { multilabel_margin_loss(x, x); }) == Category::dtype_mismatch);
  CHECK(refused([&] { soft_margin_loss(x, ones({2, 2, 3})); }) == Category::shape_mismatch);
  CHECK(refused([&] { multilabel_soft_margin_loss(ones({}), ones({})); }) == Category::bad_dim);
  CHECK(refused([&] { poisson_nll_loss(x, x, true, false, 1e-8, "all"); }) == Category::bad_argument);
}

TEST_CASE("bilinear and pairwise_distance by their definitions, and what they refuse") {
  const Tensor a = input({4, 2}).detach(), b = input({4, 3}, -1, 1, 2).detach(),
               w = input({2, 2, 3}, -1, 1, 3).detach();
  const std::vector<double> x = a.to_vector(), y = b.to_vector(), m = w.to_vector();
  std::vector<double> want;
  for (size_t n = 0; n < 4; ++n)
    for (size_t o = 0; o < 2; ++o) {
      double sum = 0;
      for (size_t i = 0; i < 2; ++i)
        for (size_t j = 0; j < 3; ++j) sum += x[n * 2 + i] * m[(o * 2 + i) * 3 + j] * y[n * 3 + j];
      want.push_back(sum);
    }
  CHECK(testing::worst_difference(bilinear(a, b, w), tensor(want, {4, 2}, {kFloat64})) < 1e-14);
  CHECK(bilinear(ones({0, 2}), ones({0, 3}), ones({5, 2, 3})).sizes() == IntArray{0, 5});
  CHECK(pairwise_distance(tensor({3., 0}, {2}, {kFloat64}), tensor({0., 4}, {2}, {kFloat64}), 2.0, 0.0)
            .item<double>() == 5);
  CHECK(pairwise_distance(ones({3, 2}), ones({2}), 2.0, 1e-6, true).sizes() == IntArray{3, 1});
  const auto refused = [](const auto& f) { return category_of(f); };
  CHECK(refused([&] { bilinear(a, input({3, 3}), w); }) == Category::shape_mismatch);
  CHECK(refused([&] { bilinear(a, input({3}), w); }) == Category::bad_dim);
  CHECK(refused([&] { bilinear(a, b, input({2, 3, 2})); }) == Category::shape_mismatch);
  CHECK(refused([&] { bilinear(a, b, w, input({1})); }) == Category::shape_mismatch);
  CHECK(refused([&] { bilinear(a, to(b, kFloat32), w); }) == Category::dtype_mismatch);
  CHECK(refused([&] { pairwise_distance(ones({2, 3}), ones({2, 2})); }) == Category::shape_mismatch);
}

}  // namespace
}  // namespace retrograd
