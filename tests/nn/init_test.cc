// Initial values (nn/init.h): bounds, deviations and structure of what each function writes, against PyTorch's
// formulas; parameters as a vector. Random numbers are not PyTorch's.
#include <catch2/catch.hpp>

#include <cmath>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
namespace init = retrograd::nn::init;
using rg::Category;
using rg::category_of;
using rg::Tensor;

namespace {

struct Moments {
  double mean, deviation, least, most;
};

Moments moments(const Tensor& x) {
  const std::vector<double> v = x.to_vector();
  Moments m{0, 0, v[0], v[0]};
  for (double a : v) m.mean += a / static_cast<double>(v.size());
  for (double a : v) {
    m.deviation += (a - m.mean) * (a - m.mean) / static_cast<double>(v.size());
    m.least = std::min(m.least, a), m.most = std::max(m.most, a);
  }
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// Uniform in +-bound: the deviation is bound / sqrt(3), and some values come close to the bounds.
void check_uniform(const Tensor& x, double bound) {
  const Moments m = moments(x);
  CHECK(m.deviation == Approx(bound / std::sqrt(3.0)).epsilon(0.03));
  CHECK(m.mean == Approx(0).margin(0.05 * bound));
  CHECK((m.least >= -bound * (1 + 1e-6) && m.most <= bound * (1 + 1e-6)));
  CHECK((m.least < -0.99 * bound && m.most > 0.99 * bound));
}

void check_normal(const Tensor& x, double deviation) {
  const Moments m = moments(x);
  CHECK(m.deviation == Approx(deviation).epsilon(0.03));
  CHECK(m.mean == Approx(0).margin(0.05 * deviation));
  CHECK(m.most > 2.5 * deviation);
}

Tensor weight() { return rg::empty({40, 30, 5}); }  // fans 150 and 200

}  // namespace

TEST_CASE("gains") {
  for (const char* name : {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                           "conv_transpose3d", "sigmoid"})
    CHECK(init::calculate_gain(name) == 1);
  CHECK(init::calculate_gain("tanh") == 5.0 / 3);
  CHECK(init::calculate_gain("relu") == Approx(std::sqrt(2.0)));
  CHECK(init::calculate_gain("leaky_relu") == Approx(std::sqrt(2 / 1.0001)));
  CHECK(init::calculate_gain("leaky_relu", 2) == Approx(std::sqrt(0.4)));
  CHECK(init::calculate_gain("selu") == 0.75);
  CHECK(category_of([] { init::calculate_gain("gelu"); }) == Category::bad_argument);
}

TEST_CASE("uniform and normal values, and constants") {
  rg::manual_seed(1);
  const Tensor x = rg::empty({100, 100});
  CHECK(init::uniform_(x, -3, 3).is_same(x));
  check_uniform(x, 3);
  check_normal(init::normal_(x, 0, 2), 2);
  CHECK(init::constant_(x, 4).to_vector() == std::vector<double>(10000, 4));
  CHECK(init::ones_(x).to_vector() == std::vector<double>(10000, 1));
  const Tensor trained = rg::ones({2}).requires_grad_();
  CHECK(init::zeros_(trained).to_vector() == std::vector<double>(2, 0));
  CHECK(trained.is_leaf());
}

TEST_CASE("kaiming and xavier: fans, modes, gains") {
  rg::manual_seed(2);
  check_uniform(init::kaiming_uniform_(weight()), std::sqrt(6 / 150.0));
  check_uniform(init::kaiming_uniform_(weight(), std::sqrt(5.0)), 1 / std::sqrt(150.0));
  check_uniform(init::kaiming_uniform_(weight(), 0, "fan_out", "tanh"), 5.0 / 3 * std::sqrt(3 / 200.0));
  check_normal(init::kaiming_normal_(weight()), std::sqrt(2 / 150.0));
  check_normal(init::kaiming_normal_(weight(), 0, "fan_out", "linear"), std::sqrt(1 / 200.0));
  check_uniform(init::xavier_uniform_(weight(), 2), 2 * std::sqrt(6 / 350.0));
  check_normal(init::xavier_normal_(weight(), 2), 2 * std::sqrt(2 / 350.0));
  CHECK(category_of([] { init::kaiming_normal_(rg::ones({3})); }) == Category::bad_dim);
  CHECK(category_of([] { init::kaiming_normal_(weight(), 0, "fan"); }) == Category::bad_argument);
  CHECK(category_of([] { init::kaiming_normal_(weight(), 0, "fan_in", "gelu"); }) == Category::bad_argument);
  CHECK(category_of([] { init::xavier_normal_(rg::ones({3})); }) == Category::bad_dim);
  CHECK(init::kaiming_uniform_(rg::empty({3, 0})).numel() == 0);
  CHECK(init::xavier_normal_(rg::empty({0, 0})).numel() == 0);
}

TEST_CASE("trunc_normal_ stays between its bounds, in all dtypes, with the truncated deviation") {
  rg::manual_seed(3);
  for (rg::ScalarType dtype : {rg::kFloat64, rg::kFloat32, rg::kBFloat16}) {
    const Moments m = moments(init::trunc_normal_(rg::empty({100, 100}, {dtype}), 1, 2, -1, 3));
    // The deviation of a standard normal distribution between -1 and 1 is 0.5396.
    CHECK(m.deviation == Approx(2 * 0.5396).epsilon(0.03));
    CHECK(m.mean == Approx(1).margin(0.05));
    CHECK((m.least >= -1 && m.most <= 3));
  }
  CHECK(category_of([] { init::trunc_normal_(rg::ones({3}), 0, 0); }) == Category::bad_argument);
  CHECK(category_of([] { init::trunc_normal_(rg::ones({3}), 0, 1, 2, -2); }) == Category::bad_argument);
}

TEST_CASE("eye_ and dirac_") {
  CHECK(init::eye_(rg::ones({2, 3})).to_vector() == std::vector<double>{1, 0, 0, 0, 1, 0});
  CHECK(category_of([] { init::eye_(rg::ones({2, 3, 1})); }) == Category::bad_dim);
  const Tensor x = rg::randn({2, 4, 6, 6});
  CHECK(rg::conv2d(x, init::dirac_(rg::empty({4, 4, 3, 3})), {}, 1, 1).to_vector() == x.to_vector());
  const Tensor grouped = init::dirac_(rg::empty({4, 2, 3, 3}), 2);
  CHECK(rg::conv2d(x, grouped, {}, 1, 1, 1, 2).to_vector() == x.to_vector());
  CHECK(init::dirac_(rg::empty({3, 1, 2})).to_vector() == std::vector<double>{0, 1, 0, 0, 0, 0});
  CHECK(init::dirac_(rg::empty({1, 1, 2, 3, 1})).to_vector() == std::vector<double>{0, 0, 0, 0, 1, 0});
  CHECK(category_of([] { init::dirac_(rg::ones({2, 2})); }) == Category::bad_dim);
  CHECK(category_of([] { init::dirac_(rg::ones({3, 2, 2}), 2); }) == Category::bad_argument);
}

TEST_CASE("orthogonal_: rows or columns are orthogonal and as long as the gain") {
  rg::manual_seed(4);
  for (const rg::IntArray& shape :
       {rg::IntArray{5, 3}, rg::IntArray{3, 5}, rg::IntArray{3, 2, 4}, rg::IntArray{4, 4}}) {
    const Tensor w = init::orthogonal_(rg::empty(shape, {rg::kFloat64}), 2);
    const Tensor m = w.reshape({shape[0], -1});
    const Tensor product = m.size(0) <= m.size(1) ? rg::matmul(m, m.t()) : rg::matmul(m.t(), m);
    const Tensor wanted = 4.0 * rg::eye(product.size(0), rg::Dim(product.size(0)), {rg::kFloat64});
    CHECK(rg::amax(rg::abs(product - wanted)).item<double>() < 1e-12);
  }
  CHECK(moments(init::orthogonal_(rg::empty({8, 8}, {rg::kBFloat16}))).deviation ==
        Approx(1 / std::sqrt(8.0)).epsilon(0.05));
  CHECK(category_of([] { init::orthogonal_(rg::ones({3})); }) == Category::bad_dim);
}

TEST_CASE("sparse_: zeros in each column, at places of their own") {
  rg::manual_seed(5);
  const Tensor w = init::sparse_(rg::empty({30, 40}), 0.25, 0.5);  // 7.5 of 30: 8
  const Tensor zeros = rg::eq(w, 0.0);
  CHECK(rg::sum(zeros, {0}).to_vector() == std::vector<double>(40, 8));
  CHECK(moments(rg::sum(zeros, {1})).deviation > 1);
  CHECK(moments(w).deviation == Approx(0.5 * std::sqrt(22.0 / 30)).epsilon(0.1));
  CHECK(category_of([] { init::sparse_(rg::ones({3}), 0.1); }) == Category::bad_dim);
  CHECK(category_of([] { init::sparse_(rg::ones({3, 3}), 1.1); }) == Category::bad_argument);
}

TEST_CASE("parameters as a vector") {
  rg::nn::Linear a(nullptr, "", 2, 3), b(nullptr, "", 2, 3);
  const Tensor vec = rg::nn::utils::parameters_to_vector(a.parameters());
  CHECK(vec.sizes() == rg::IntArray{9});
  rg::sum(vec * vec).backward();
  CHECK(a.bias.grad().to_vector() == (2.0 * a.bias).to_vector());
  rg::nn::utils::vector_to_parameters(vec, b.parameters());
  CHECK(b.weight.to_vector() == a.weight.to_vector());
  CHECK(b.bias.to_vector() == a.bias.to_vector());
  CHECK(b.weight.is_leaf());
  CHECK(category_of([&] { rg::nn::utils::vector_to_parameters(rg::ones({8}), b.parameters()); }) ==
        Category::shape_mismatch);
  CHECK(category_of([&] {
          rg::nn::utils::vector_to_parameters(rg::ones({9, 1}), b.parameters());
        }) == Category::shape_mismatch);
  CHECK(rg::nn::utils::clip_grad_norm_(a.parameters(), 1e-3) > 1e-3);
}
