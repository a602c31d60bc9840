// SOAP (optim/soap.h) beyond its numbers (tests/optim/composed_test.cc): which of its recordings a step takes, bases,
// state of 16-bit parameters, what is refused, and that it minimises what Adam finds hard.
#include <catch2/catch.hpp>

#include <cmath>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/optimizer_state.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Category;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;

namespace {

Tensor waves(const rg::IntArray& size, double by, rg::ScalarType dtype = rg::kFloat64) {
  const int64_t n = rg::zeros(size).numel();
  return rg::cos(rg::arange(n, {rg::kFloat64}) * by + by).reshape(size).to(dtype);
}
Tensor parameter(const rg::IntArray& size, rg::ScalarType dtype = rg::kFloat64) {
  return waves(size, 0.9, dtype).detach().requires_grad_();
}
Tensor gradient(const Tensor& p, int t) { return waves(p.sizes(), 0.31 + t * t, p.dtype()); }

double largest(const Tensor& x) { return rg::amax(rg::abs(x)).item<double>(); }

}  // namespace

TEST_CASE("a recorded step finds its three recordings again") {
  const Tensor p = parameter({3, 4}), q = parameter({3, 4});
  optim::SOAP eager({p}), recorded({q});
  auto step = rg::compile_step([&](const Tensor& g) {
    q.set_grad(g);
    recorded.step();
  });
  for (int t = 1; t <= 100; ++t) {
    p.set_grad(gradient(p, t));
    eager.step();
    step(gradient(q, t));
    CHECK(step.stats().captures == (t == 1 ? 1 : t <= 10 ? 2 : 3));
  }
  rg::check_same_state(eager, recorded);
}

TEST_CASE("each parameter has steps of its own, and a function may have several") {
  const bool is_twice = GENERATE(false, true);
  const auto params = [] { return Tensors{parameter({3, 4}), parameter({5})}; };
  const Tensors one = params(), two = params();
  const optim::SOAPOptions options{.precondition_frequency = 3, .precondition_1d = true};
  optim::SOAP eager(one, options), recorded(two, options);
  const auto body = [is_twice](const Tensors& all, optim::Optimizer& optimizer) {
    return [&all, &optimizer, is_twice](const Tensors& gradients) {
      for (size_t i = 0; i < gradients.size(); ++i) all[i].set_grad(gradients[i]);
      optimizer.step();
      if (is_twice) optimizer.step();
    };
  };
  const auto plain = body(one, eager);
  auto step = rg::compile_step(body(two, recorded));
  for (int t = 1; t <= 20; ++t) {
    Tensors gradients = {gradient(one[0], t)};
    if (t > 2) gradients.push_back(gradient(one[1], t));  // begins two steps later
    plain(gradients);
    step(gradients);
    INFO("step " << t);
    rg::check_same_state(eager, recorded);
  }
  // Alone: begin, plain. Both: begin with renewing or not, and the period of renewals.
  CHECK(step.stats().captures <= 7);
  CHECK(recorded.state_dict().at("1.step").item<int64_t>() == (is_twice ? 36 : 18));
}

TEST_CASE("a recorded step that is not used leaves the bases as they were") {
  const Tensor p = parameter({3, 3}, rg::kFloat32);
  optim::SOAP optimizer({p}, {.precondition_frequency = 1});
  optim::GradScaler scaler({.init_scale = 2});
  auto step = rg::compile_step([&](const Tensor& g) {
    scaler.scale(rg::sum(p * g)).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
  });
  const Tensor infinite = rg::full({3, 3}, INFINITY, {rg::kFloat32});
  const std::vector<double> before = p.to_vector();
  step(infinite);
  CHECK(rg::state_of(optimizer).empty());
  step(gradient(p, 1));
  CHECK(p.to_vector() == before);  // the first step finds bases only
  for (const int made : {1, 2}) {
    const std::vector<double> basis = rg::state_of(optimizer).at("0.q_1").to_vector();
    step(infinite);
    CHECK(rg::state_of(optimizer).at("0.step").item<int64_t>() == made);
    CHECK(rg::state_of(optimizer).at("0.q_1").to_vector() == basis);
    step(gradient(p, 1 + made));
    CHECK(rg::state_of(optimizer).at("0.q_1").to_vector() != basis);
  }
  CHECK(p.to_vector() != before);
  CHECK(step.stats().captures == 2);
}

TEST_CASE("in the backward SOAP has the bits of the plain optimizer, eagerly and recorded") {
  const Tensor p = parameter({3, 4}), q = parameter({3, 4}), r = parameter({3, 4});
  const optim::SOAPOptions options{.precondition_frequency = 2};
  optim::SOAP plain({p}, options);
  optim::OptimizerInBackward<optim::SOAP> eager({q}, options), recorded({r}, options);
  auto step = rg::compile_step([&](const Tensor& g) { recorded.backward(rg::sum(r * g)); });
  for (int t = 1; t <= 6; ++t) {
    const Tensor g = gradient(p, t);
    p.set_grad(g);
    plain.step();
    eager.backward(rg::sum(q * g));
    step(g);
    rg::check_same_state(plain, eager);
    rg::check_same_state(plain, recorded);
  }
  CHECK(step.stats().captures == 3);
}

TEST_CASE("dims after the fourth are merged with it") {
  const Tensor five = parameter({2, 3, 2, 2, 2}), four = parameter({2, 3, 2, 4});
  optim::SOAP optimizer({five, four}, {.lr = 0.01, .precondition_frequency = 2});
  for (int t = 1; t <= 5; ++t) {
    for (const Tensor& p : {five, four}) p.set_grad(gradient(p, t));
    optimizer.step();
  }
  CHECK(five.to_vector() == four.to_vector());
  CHECK(rg::state_of(optimizer).at("0.gg_3").sizes() == rg::IntArray{4, 4});
  CHECK(rg::state_of(optimizer).at("0.exp_avg").sizes() == five.sizes());
}

TEST_CASE("state of 16-bit parameters is float32") {
  const Tensor p = parameter({3, 4}, rg::kBFloat16), q = parameter({3, 4}, rg::kBFloat16).to(rg::kFloat32);
  const Tensor wide = q.detach().requires_grad_();
  optim::SOAP narrow({p}, {.precondition_frequency = 2}), other({wide}, {.precondition_frequency = 2});
  for (int t = 1; t <= 2; ++t) {
    p.set_grad(gradient(p, t));
    wide.set_grad(p.grad().to(rg::kFloat32));
    narrow.step(), other.step();
  }
  for (const char* name : {"0.exp_avg", "0.exp_avg_sq", "0.gg_0", "0.q_1"}) {
    CHECK(rg::state_of(narrow).at(name).dtype() == rg::kFloat32);
    CHECK(rg::state_of(narrow).at(name).to_vector() == rg::state_of(other).at(name).to_vector());
  }
  CHECK(p.to_vector() == wide.to(rg::kBFloat16).to_vector());
}

TEST_CASE("a differentiable step gives the same parameter, with bases that are constants") {
  const Tensor p = parameter({3, 4}), q = parameter({3, 4});
  const optim::SOAPOptions options{.lr = 0.1, .precondition_frequency = 1};
  optim::SOAP plain({p}, options),
      differentiable({{.params = {q}, .options = options, .differentiable = true}});
  const Tensor scale = rg::ones({}, {rg::kFloat64, rg::kCPU, true});
  for (int t = 1; t <= 3; ++t) {
    p.set_grad(gradient(p, t));
    plain.step();
    const Tensor& now = differentiable.param_groups()[0].params[0];
    now.set_grad(gradient(now, t) * scale);
    differentiable.step();
  }
  const Tensor& last = differentiable.param_groups()[0].params[0];
  CHECK(last.to_vector() == p.to_vector());
  rg::sum(last).backward();
  CHECK(std::isfinite(scale.grad().item<double>()));
  CHECK(largest(scale.grad()) > 0);
}

TEST_CASE("options that decide the bases are refused after the first step if they do not fit") {
  const Tensor p = parameter({3, 4});
  optim::SOAP optimizer({p});
  optim::SOAPOptions& options = optimizer.param_groups()[0].options;
  const auto step = [&] {
    p.set_grad(gradient(p, 1));
    optimizer.step();
  };
  step();
  const std::vector<double> before = p.to_vector();
  options.merge_dims = true;
  std::string text;
  CHECK(category_of(step, &text) == Category::bad_argument);
  CHECK(text.find("dim 0 of a parameter has a basis of size 3") != std::string::npos);
  CHECK(p.to_vector() == before);
  options.merge_dims = false;
  step();
  CHECK(p.to_vector() != before);
  CHECK(category_of([&] { optim::SOAP({p}, {.precondition_frequency = 0}); }) == Category::bad_argument);
  CHECK(category_of([&] { optim::SOAP({p}, {.shampoo_beta = 1}); }) == Category::bad_argument);
}

TEST_CASE("parameters without elements are stepped") {
  const Tensor p = rg::zeros({0, 3}, {rg::kFloat32, rg::kCPU, true});
  optim::SOAP optimizer({p});
  for (int t = 1; t <= 2; ++t) {
    p.set_grad(rg::zeros({0, 3}));
    optimizer.step();
  }
  CHECK(rg::state_of(optimizer).at("0.step").item<int64_t>() == 2);
}

TEST_CASE("inputs of rotated, very different scales are easier for SOAP than for AdamW") {
  rg::manual_seed(5);
  const int64_t n = 16;
  const rg::TensorOptions wide{rg::kFloat64};
  const Tensor rotation = rg::linalg::qr(rg::randn({n, n}, wide)).Q;
  const Tensor mixed = rg::pow(10.0, rg::arange(n, wide) * (-2.0 / n)).reshape({n, 1}) * rotation;
  const Tensor target = rg::randn({n, n}, wide);
  const auto train = [&](auto optimizer, const Tensor& w) {
    for (int t = 0; t < 400; ++t) {
      const Tensor x = rg::matmul(rg::randn({32, n}, wide), mixed);
      optimizer.zero_grad();
      rg::mean(rg::square(rg::matmul(x, w - target))).backward();
      optimizer.set_lr(0.05 * (1 - t / 400.0));
      optimizer.step();
    }
    return rg::mean(rg::square(rg::matmul(mixed, w - target))).template item<double>();
  };
  const auto start = [&] { return rg::zeros({n, n}, {rg::kFloat64, rg::kCPU, true}); };
  const Tensor a = start(), b = start();
  const double first = rg::mean(rg::square(rg::matmul(mixed, target))).item<double>();
  const double soap = train(optim::SOAP({a}, {.weight_decay = 0}), a),
               adam = train(optim::AdamW({b}, {.betas = {0.95, 0.95}, .weight_decay = 0}), b);
  INFO("from " << first << ": SOAP " << soap << ", AdamW " << adam);
  CHECK(soap < 0.01 * first);
  CHECK(soap < 0.5 * adam);
}
