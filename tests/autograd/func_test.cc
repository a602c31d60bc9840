// func: derivatives of functions as functions, nested, mapped, of structures and of modules.
#include <retrograd/retrograd.h>
#include <catch2/catch.hpp>

#include "tests/autograd/numbers.h"
#include "tests/errors.h"

namespace rg = retrograd;
namespace ag = retrograd::autograd;
namespace func = retrograd::func;
using rg::Tensor;
using rg::Tensors;
using rg::testing::check_close;
using rg::testing::numbers;
using std::nullopt;

namespace {

const auto loss = [](const Tensor& w, const Tensor& x) { return rg::sum(rg::sin(w * x)); };

TEST_CASE("grad by one argument, by several, and with the value") {
  const Tensor w = numbers({4}), x = numbers({4}, 2);
  check_close(func::grad(loss)(w, x), rg::cos(w * x) * x);
  check_close(func::grad<1>(loss)(w, x), rg::cos(w * x) * w);
  const auto [by_w, by_x] = func::grad<0, 1>(loss)(w, x);
  check_close(by_w, rg::cos(w * x) * x);
  check_close(by_x, rg::cos(w * x) * w);
  const auto [gradient, value] = func::grad_and_value(loss)(w, x);
  check_close(gradient, by_w);
  check_close(value, loss(w, x));
  CHECK_FALSE(gradient.requires_grad());
  CHECK_FALSE(value.requires_grad());
}

TEST_CASE("grad of a structure is a structure") {
  struct Parameters {
    Tensor weight, bias;
  };
  const auto f = [](const Parameters& p, const Tensor& x) {
    return rg::sum(rg::square(x * p.weight + p.bias)) * 3.0;
  };
  const Parameters p{numbers({4}), numbers({4}, 2)};
  const Tensor x = numbers({4}, 3), e = x * p.weight + p.bias;
  const Parameters g = func::grad(f)(p, x);
  check_close(g.weight, e * x * 6.0);
  check_close(g.bias, e * 6.0);
  const Parameters each = rg::vmap(func::grad(f), {nullopt, 0})(p, rg::stack({x, x}));
  check_close(each.weight[1], g.weight);
}

TEST_CASE("only a tensor without dims has a gradient") {
  std::string text;
  const auto f = [](const Tensor& x) { return x * 2.0; };
  CHECK(rg::category_of([&] { func::grad(f)(numbers({1})); }, &text) ==
        rg::Category::non_scalar_backward_without_cotangent);
  CHECK(text.find("Expected f(*args) to return a scalar tensor") != std::string::npos);
}

TEST_CASE("grad nests, and results depend on tensors from outside") {
  const Tensor x = numbers({});
  const auto f = [](const Tensor& x) { return rg::sin(x) * x; };
  check_close(func::grad(func::grad(f))(x), rg::cos(x) * 2.0 - rg::sin(x) * x);
  const Tensor w = numbers({4}).requires_grad_(), y = numbers({4}, 2);
  const Tensor g = func::grad<1>(loss)(w, y);
  check_close(ag::grad({rg::sum(g)}, {w})[0], rg::cos(w * y) - rg::sin(w * y) * y * w);
  const rg::NoGradGuard no_grad;
  CHECK_FALSE(func::grad<1>(loss)(w, y).requires_grad());
}

TEST_CASE("an argument that the function does not use has a gradient of zeros") {
  const auto f = [](const Tensor& x, const Tensor&) { return rg::sum(x); };
  check_close(func::grad<1>(f)(numbers({2}), numbers({3})), rg::zeros({3}, {rg::kFloat64}));
}

TEST_CASE("grad is refused in inference mode, where it would be zeros") {
  const Tensor w = numbers({4}), x = numbers({4}, 2);
  const rg::InferenceMode mode;
  CHECK(rg::category_of([&] { func::grad(loss)(w, x); }) == rg::Category::bad_argument);
}

TEST_CASE("vjp and jvp") {
  const Tensor x = numbers({3}), m = numbers({2, 3}, 2), v = numbers({2}, 3), t = numbers({3}, 4);
  const auto f = [&](const Tensor& m, const Tensor& x) { return rg::mv(m, rg::exp(x)); };
  const auto [y, vjp_fn] = func::vjp(f, m, x);
  check_close(y, f(m, x));
  const auto [by_m, by_x] = vjp_fn(v);
  check_close(by_m, rg::outer(v, rg::exp(x)));
  check_close(by_x, rg::mv(m.t(), v) * rg::exp(x));
  const auto [z, tangent] = func::jvp([&](const Tensor& x) { return f(m, x); }, x, t);
  check_close(z, y);
  check_close(tangent, rg::mv(m, rg::exp(x) * t));
}

TEST_CASE("jacrev, jacfwd and hessian agree with autograd::functional") {
  const Tensor x = numbers({3}), m = numbers({2, 3}, 2);
  const auto f = [&](const Tensor& x) { return rg::tanh(rg::mv(m, x)); };
  const auto listed = [&](const Tensors& x) { return Tensors{f(x[0])}; };
  const Tensor want = ag::jacobian(listed, {x})[0][0];
  check_close(func::jacrev(f)(x), want);
  check_close(func::jacrev(f, 1)(x), want);
  check_close(func::jacfwd(f)(x), want);
  const auto scalar = [&](const Tensor& x) { return rg::sum(rg::exp(f(x))); };
  const auto of_list = [&](const Tensors& x) { return scalar(x[0]); };
  const Tensor hessian = ag::hessian(of_list, {x})[0][0];
  check_close(func::hessian(scalar)(x), hessian);
  check_close(func::jacrev(func::jacfwd(scalar))(x), hessian);
  check_close(func::jacrev(func::jacrev(scalar))(x), hessian);
  check_close(func::jacfwd(func::jacfwd(scalar))(x), hessian);
  const Tensor xs = rg::stack({x, x * 0.5});
  const Tensor each = rg::vmap(func::hessian(scalar))(xs);
  check_close(each[0], hessian);
  check_close(each[1], func::hessian(scalar)(xs[1]));
}

// A small network for pictures.
struct Net : rg::nn::Module {
  rg::nn::Conv2d conv{this, "conv", 2, 4, {3, 3}};
  rg::nn::Linear fc{this, "fc", 16, 5};
  Tensor forward(const Tensor& x) const {
    const Tensor y = rg::max_pool2d(rg::relu(rg::group_norm(conv.forward(x), 2)), {2, 2});
    return fc.forward(rg::flatten(y, 1));
  }
};

TEST_CASE("gradients of each sample of a network are those of a loop") {
  rg::manual_seed(3);
  Net net;
  const Tensor xs = numbers({6, 2, 6, 6}).to(rg::kFloat32);
  const Tensor targets = rg::tensor({0, 1, 2, 3, 4, 0}, {6}, {rg::kInt64});
  Tensors parameters;
  for (const Tensor& p : net.parameters()) parameters.push_back(p.detach());
  const auto sample_loss = [&](const Tensors& parameters, const Tensor& x, const Tensor& target) {
    const Tensor scores = func::functional_call(net, parameters, rg::unsqueeze(x, 0));
    return rg::cross_entropy(scores, rg::unsqueeze(target, 0));
  };
  const Tensors each = rg::vmap(func::grad(sample_loss), {nullopt, 0, 0})(parameters, xs, targets);
  REQUIRE(each.size() == parameters.size());
  for (int64_t k = 0; k < 6; ++k) {
    const Tensors one = func::grad(sample_loss)(parameters, xs[k], targets[k]);
    for (size_t i = 0; i < one.size(); ++i) check_close(each[i][k], one[i], 1e-5);
  }
}

TEST_CASE("an ensemble: a network's parameters are the batch") {
  rg::manual_seed(3);
  Net net;
  const Tensor x = numbers({3, 2, 6, 6}).to(rg::kFloat32);
  Tensors parameters;
  for (const Tensor& p : net.parameters()) parameters.push_back(rg::stack({p.detach(), p.detach() * 0.5}));
  const auto scores = [&](const Tensors& parameters, const Tensor& x) {
    return func::functional_call(net, parameters, x);
  };
  const Tensor each = rg::vmap(scores, {0, nullopt})(parameters, x);
  for (int64_t k = 0; k < 2; ++k) {
    Tensors own;
    for (const Tensor& p : parameters) own.push_back(p[k]);
    check_close(each[k], scores(own, x), 1e-5);
  }
}

}  // namespace
