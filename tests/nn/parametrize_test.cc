// Parametrizations: keys, values and gradients as PyTorch's (numbers of torch 2.15, float64), what a parameter is
// between calls, removal, and the same in compiled steps and captured backwards as eagerly.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
namespace parametrize = retrograd::nn::utils::parametrize;
using namespace retrograd::nn::utils::parametrizations;
using rg::Category;
using rg::Tensor;
using rg::Tensors;
using Names = std::vector<std::string>;
using Values = std::vector<double>;

namespace {

// A layer without a bias, with this weight.
struct Layer : nn::Linear {
  explicit Layer(const Tensor& w) : Linear(nullptr, "", w.size(1), w.size(0), {.bias = false}) {
    to(rg::kFloat64);
    load_state_dict({{"weight", w}});
  }
};

Tensor matrix(const Values& values, int64_t columns) {
  return rg::tensor(values, {static_cast<int64_t>(values.size()) / columns, columns}, {rg::kFloat64});
}

void check_near(const Tensor& x, const Values& wanted) {
  const Values got = x.to_vector();
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(1e-12).margin(1e-12));
}

Tensor loss_of(nn::Linear& layer, const Tensor& x) { return rg::sum(rg::square(layer(x))); }

Names keys(const nn::Module& m) {
  Names all;
  for (const auto& [key, value] : m.state_dict()) all.push_back(key);
  return all;
}

}  // namespace

TEST_CASE("weight_norm: originals in place of the parameter, PyTorch's gradients") {
  struct Case {
    int64_t dim;
    rg::IntArray shape;
    Values grad0, grad1;
  };
  const Case cases[] = {
      {0, {2, 1}, {8.049844718999243, 10.0}, {-9.6, 4.8, -16.0, 12.0}},
      {1, {1, 2}, {-11.384199576606164, 23.25510696599781}, {-2.4, 1.6, 0.8, -0.8}},
      {-1, {}, {12.415044636783765}, {-8.266666666666666, 7.466666666666667, -16.8, 10.933333333333334}}};
  const Tensor x = matrix({1, -2}, 2);
  for (const Case& c : cases) {
    Layer layer(matrix({1, 2, 3, 4}, 2));
    const Values before = layer(x).to_vector();
    weight_norm(layer, "weight", c.dim);
    CHECK(layer.named_parameters().keys() ==
          Names{"parametrizations.weight.original0", "parametrizations.weight.original1"});
    CHECK(layer.parameters()[0].sizes() == c.shape);
    check_near(layer(x), before);
    loss_of(layer, x).backward();
    check_near(layer.parameters()[0].grad(), c.grad0);
    check_near(layer.parameters()[1].grad(), c.grad1);
  }
}

TEST_CASE("between calls a parametrized parameter is undefined: an error, not an old value") {
  Layer layer(matrix({1, 2, 3, 4}, 2));
  weight_norm(layer);
  const Tensor x = matrix({1, -2}, 2);
  layer(x);
  CHECK_FALSE(layer.weight.defined());
  CHECK_THROWS_AS(layer.forward(x), rg::Error);
  CHECK_THROWS_AS(layer(matrix({1, 2, 3}, 3)), rg::Error);
  CHECK_FALSE(layer.weight.defined());
  check_near(parametrize::value(layer, "weight"), {1, 2, 3, 4});
  CHECK(parametrize::value(layer, "weight").requires_grad());
}

TEST_CASE("spectral_norm: PyTorch's keys, power iteration in training only, gradients") {
  Layer layer(matrix({1, 2, 3, 3, 4, -1}, 3));
  spectral_norm(layer);
  CHECK(keys(layer) == Names{"parametrizations.weight.0._u", "parametrizations.weight.0._v",
                             "parametrizations.weight.original"});
  rg::StateDict state = layer.state_dict();
  const Tensor u = state["parametrizations.weight.0._u"], v = state["parametrizations.weight.0._v"];
  u.copy_(rg::tensor({0.6, 0.8}, {rg::kFloat64}));
  v.copy_(rg::tensor({1.0, 0, 0}, {rg::kFloat64}));
  const Tensor x = matrix({1, -2, 0.5}, 3), original = layer.parameters()[0];
  const Values grads[] = {{-0.17553871439006566, 0.09884039444850254, -0.05067567567567566,
                           -0.5941837107377645, 0.43165631848064284, -0.18581081081081077},
                          {-0.1923243216107921, 0.06951572639899234, -0.0587946212612152, -0.5758231943848631,
                           0.43845084017122865, -0.20334295506612748}};
  for (const Values& grad : grads) {
    layer.zero_grad();
    loss_of(layer, x).backward();
    check_near(original.grad(), grad);
  }
  check_near(u, {0.40416384832094115, 0.9146866040947617});
  check_near(v, {0.5752183350089891, 0.8161881780532954, 0.05441254520355301});
  layer.eval();
  check_near(layer(x), {-0.27406804456441014, -1.0049161634028372});
  check_near(u, {0.40416384832094115, 0.9146866040947617});
}

TEST_CASE("spectral_norm: two calls before a backward, transposed convolutions, vectors") {
  Layer layer(matrix({1, 2, 3, 3, 4, -1}, 3));
  spectral_norm(layer, "weight", 2);
  const Tensor x = matrix({1, -2, 0.5}, 3);
  (loss_of(layer, x) + loss_of(layer, x * 2.0)).backward();
  CHECK(layer.parameters()[0].grad().defined());

  nn::ConvTranspose2d up(nullptr, "", 2, 3, 2);
  spectral_norm(up);
  const rg::StateDict state = up.state_dict();
  CHECK(state.at("parametrizations.weight.0._u").sizes() == rg::IntArray{3});
  CHECK(state.at("parametrizations.weight.0._v").sizes() == rg::IntArray{8});
  const Tensor largest =
      rg::linalg::svdvals(parametrize::value(up, "weight").detach().transpose(0, 1).reshape({3, 8}));
  CHECK(largest.to_vector()[0] == Approx(1).epsilon(0.02));

  nn::LayerNorm norm(nullptr, "", {4});
  spectral_norm(norm);
  CHECK(parametrize::value(norm, "weight").to_vector() == Values(4, 0.5));
  CHECK(keys(norm) == Names{"bias", "parametrizations.weight.original"});
}

TEST_CASE("a state is loaded, removal makes a parameter again, and errors") {
  Layer a(matrix({1, 2, 3, 4}, 2)), b(matrix({0, 1, 1, 0}, 2));
  weight_norm(a), weight_norm(b);
  b.load_state_dict(a.state_dict());
  const Tensor x = matrix({1, -2}, 2);
  CHECK(b(x).to_vector() == a(x).to_vector());
  CHECK((parametrize::is_parametrized(a) && parametrize::is_parametrized(a, "weight")));
  CHECK_FALSE(parametrize::is_parametrized(a, "bias"));

  const auto refused = [](const auto& f) { return rg::category_of(f) == Category::bad_argument; };
  CHECK(refused([&] { weight_norm(a); }));
  CHECK(refused([&] { weight_norm(a, "other"); }));
  CHECK(refused([&] { parametrize::remove_parametrizations(a, "weight", false); }));
  CHECK(refused([&] { parametrize::remove_parametrizations(a, "bias"); }));
  CHECK(refused([&] { parametrize::value(a, "bias"); }));
  CHECK(rg::category_of([&] { a.clone(); }) == Category::unsupported);

  const Values before = a(x).to_vector();
  parametrize::remove_parametrizations(a, "weight");
  CHECK(a.named_parameters().keys() == Names{"weight"});
  CHECK((a.weight.is_leaf() && a.weight.requires_grad()));
  CHECK(a.children().empty());
  check_near(a(x), before);
  CHECK(refused([&] { spectral_norm(a, "weight", 0); }));
  CHECK(rg::category_of([&] { weight_norm(a, "weight", 2); }) == Category::bad_dim);
  spectral_norm(a);
  parametrize::remove_parametrizations(a, "weight", false);
  check_near(a(x), before);

  nn::Module root;
  root.register_parameter("w", rg::ones({2, 2}));
  CHECK(refused([&] { weight_norm(root, "w"); }));
  CHECK(refused([&] { parametrize::register_parametrization(a, "weight", nullptr); }));
}

TEST_CASE("a parametrization of a user") {
  struct Symmetric : parametrize::Parametrization {
    Tensor forward(const Tensors& originals) override {
      const Tensor upper = rg::triu(originals[0]);
      return upper + rg::triu(originals[0], 1).t();
    }
  };
  struct Narrow : parametrize::Parametrization {
    Tensor forward(const Tensors& originals) override { return originals[0].narrow(0, 0, 1); }
  };
  Layer layer(matrix({1, 2, 3, 4}, 2));
  CHECK(rg::category_of([&] {
          parametrize::register_parametrization(layer, "weight", std::make_shared<Narrow>());
        }) == Category::shape_mismatch);
  CHECK(layer.weight.defined());
  parametrize::register_parametrization(layer, "weight", std::make_shared<Symmetric>());
  check_near(layer(matrix({1, 0}, 2)), {1, 2});
  check_near(nn::functional_call(layer, {{"parametrizations.weight.original", matrix({5, 6, 7, 8}, 2)}},
                                 matrix({1, 0}, 2)),
             {5, 6});
}

TEST_CASE("parametrized modules in compiled steps, functions and captured backwards: eager's bits") {
  for (const bool spectral : {false, true}) {
    rg::manual_seed(7);
    Layer first(matrix({1, 2, 3, 3, 4, -1}, 3)), second(matrix({1, 2, 3, 3, 4, -1}, 3));
    for (Layer* layer : {&first, &second}) spectral ? spectral_norm(*layer) : weight_norm(*layer);
    second.load_state_dict(first.state_dict());
    rg::optim::SGD eager_sgd(first.parameters(), {.lr = 0.1}), recorded_sgd(second.parameters(), {.lr = 0.1});
    const auto step = [](Layer& layer, rg::optim::SGD& sgd, const Tensor& x) {
      const Tensor loss = loss_of(layer, x);
      loss.backward();
      sgd.step();
      sgd.zero_grad();
      return loss;
    };
    auto compiled = rg::compile_step([&](const Tensor& x) { return step(second, recorded_sgd, x); });
    for (int i = 1; i <= 4; ++i) {
      const Tensor x = rg::full({2, 3}, 0.1 * i, {rg::kFloat64});
      CHECK(rg::testing::same_bits(step(first, eager_sgd, x), compiled(x)));
      CHECK_FALSE(second.weight.defined());
      const rg::StateDict a = first.state_dict(), b = second.state_dict();
      for (const auto& [key, value] : a) CHECK(rg::testing::same_bits(value, b.at(key)));
    }
    CHECK(compiled.stats().hits >= 2);

    auto function = rg::compile([&](const Tensor& x) { return second(x); });
    const Tensor x = rg::full({2, 3}, 0.3, {rg::kFloat64});
    first.eval(), second.eval();
    CHECK(rg::testing::same_bits(first(x), function(x)));
    CHECK(rg::testing::same_bits(first(x), function(x)));

    auto backward = rg::compile_backward();
    for (int i = 0; i < 2; ++i) {
      loss_of(first, x).backward();
      backward(loss_of(second, x));
      for (size_t p = 0; p < first.parameters().size(); ++p)
        CHECK(rg::testing::same_bits(first.parameters()[p].grad(), second.parameters()[p].grad()));
    }
  }
}
