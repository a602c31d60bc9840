// SGD and AdamW against a naive reference in double; groups, missing gradients, parameters
// together and alone, state, clipping, refusals, threads.
//
// Not tested here: other optimizers (there are none), learning (tests/examples). The reference is PyTorch's algorithm
// as it documents it, written out per element; real PyTorch results are in the conformance suite "optim".
#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/optimizer_state.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Category;
using rg::category_of;
using rg::Tensor;

namespace {

using Vector = std::vector<double>;

// A gradient that differs by step and element.
double gradient_at(int64_t step, size_t i) {
  return std::sin(1.3 * static_cast<double>(step) + 0.7 * static_cast<double>(i)) + 0.2;
}

Tensor gradient(int64_t step, const Tensor& like) {
  Vector g(static_cast<size_t>(like.numel()));
  for (size_t i = 0; i < g.size(); ++i) g[i] = gradient_at(step, i);
  return rg::tensor(g, like.sizes(), {like.dtype()});
}

Tensor parameter(int64_t n, rg::ScalarType dtype = rg::kFloat64) {
  Vector values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::cos(0.9 * static_cast<double>(i));
  return rg::tensor(values, {n}, {dtype, rg::kCPU, true});
}

double naive_sgd(double p, const optim::SGDOptions& o, int steps, size_t i) {
  double buffer = 0;
  for (int t = 1; t <= steps; ++t) {
    double g = gradient_at(t, i) * (o.maximize ? -1 : 1) + o.weight_decay * p;
    if (o.momentum != 0) {
      buffer = t == 1 ? g : o.momentum * buffer + (1 - o.dampening) * g;
      g = o.nesterov ? g + o.momentum * buffer : buffer;
    }
    p -= o.lr * g;
  }
  return p;
}

double naive_adamw(double p, const optim::AdamWOptions& o, int steps, size_t i) {
  double m = 0, v = 0, largest = 0;
  for (int t = 1; t <= steps; ++t) {
    const double g = gradient_at(t, i) * (o.maximize ? -1 : 1);
    p *= 1 - o.lr * o.weight_decay;
    m = o.betas[0] * m + (1 - o.betas[0]) * g;
    v = o.betas[1] * v + (1 - o.betas[1]) * g * g;
    largest = std::max(largest, v);
    const double corrected = (o.amsgrad ? largest : v) / (1 - std::pow(o.betas[1], t));
    p -= o.lr * (m / (1 - std::pow(o.betas[0], t))) / (std::sqrt(corrected) + o.eps);
  }
  return p;
}

template <class Optimizer>
void check_trajectory(const typename Optimizer::Options& options,
                      double (*naive)(double, const typename Optimizer::Options&, int, size_t)) {
  for (rg::ScalarType dtype : {rg::kFloat64, rg::kFloat32}) {
    const Tensor p = parameter(37, dtype);
    const Vector start = p.to_vector();
    Optimizer optimizer(rg::Tensors{p}, options);
    for (int step = 1; step <= 7; ++step) {
      p.set_grad(gradient(step, p));
      optimizer.step();
    }
    const Vector got = p.to_vector();
    for (size_t i = 0; i < got.size(); ++i)
      CHECK(
          got[i] ==
          Approx(naive(start[i], options, 7, i)).epsilon(dtype == rg::kFloat64 ? 1e-12 : 2e-5).margin(1e-6));
  }
}

}  // namespace

TEST_CASE("SGD follows the reference") {
  const optim::SGDOptions cases[] = {{.lr = 0.1},
                                     {.lr = 0.1, .momentum = 0.9},
                                     {.lr = 0.1, .momentum = 0.9, .dampening = 0.3},
                                     {.lr = 0.1, .momentum = 0.8, .weight_decay = 0.05, .nesterov = true},
                                     {.lr = 0.02, .momentum = 0.5, .weight_decay = 0.1, .maximize = true}};
  for (const auto& options : cases) check_trajectory<optim::SGD>(options, naive_sgd);
}

TEST_CASE("AdamW follows the reference") {
  const optim::AdamWOptions cases[] = {{},
                                       {.lr = 0.05, .betas = {0.8, 0.95}},
                                       {.lr = 0.05, .weight_decay = 0.3},
                                       {.lr = 0.05, .eps = 0.1, .amsgrad = true},
                                       {.lr = 0.05, .maximize = true}};
  for (const auto& options : cases) check_trajectory<optim::AdamW>(options, naive_adamw);
}

TEST_CASE("groups have their own options, set_lr sets all") {
  const Tensor a = parameter(3), b = parameter(3);
  optim::SGD optimizer({{{a}, {.lr = 1}}, {{b}, {.lr = 10}}});
  const Vector start = a.to_vector();
  const auto step = [&] {
    for (const Tensor& p : {a, b}) p.set_grad(rg::ones({3}, {rg::kFloat64}));
    optimizer.step();
  };
  step();
  CHECK(a.to_vector()[0] == Approx(start[0] - 1));
  CHECK(b.to_vector()[0] == Approx(start[0] - 10));
  optimizer.set_lr(2);
  step();
  CHECK(a.to_vector()[0] == Approx(start[0] - 3));
  CHECK(b.to_vector()[0] == Approx(start[0] - 12));
  optimizer.param_groups()[1].options.lr = 0;
  step();
  CHECK(b.to_vector()[0] == Approx(start[0] - 12));
}

TEST_CASE("a parameter without a gradient is passed over, and its steps are not counted") {
  const Tensor a = parameter(4), b = parameter(4);
  optim::AdamW optimizer(rg::Tensors{a, b}, {.lr = 0.1});
  const Vector start = b.to_vector();
  for (int step = 1; step <= 3; ++step) {
    a.set_grad(gradient(step, a));
    optimizer.step();
  }
  CHECK(b.to_vector() == start);
  CHECK(optimizer.state_dict().count("1.step") == 0);
  b.set_grad(gradient(1, b));
  optimizer.step();
  CHECK(b.to_vector()[2] == Approx(naive_adamw(start[2], {.lr = 0.1}, 1, 2)));
  CHECK(optimizer.state_dict().at("0.step").item<int64_t>() == 4);
  optimizer.zero_grad();
  CHECK_FALSE(a.grad().defined());
}

TEST_CASE("state is made with the optimizer, and shows from the first step on") {
  const Tensor a = parameter(1000);
  const int64_t without = rg::memory::stats().live_bytes;
  optim::AdamW optimizer(rg::Tensors{a});
  const int64_t with = rg::memory::stats().live_bytes;
  CHECK(with - without == 2 * 1000 * 8);
  CHECK(rg::state_of(optimizer).empty());
  a.set_grad(gradient(1, a));
  const int64_t before = rg::memory::stats().live_bytes;
  optimizer.step();
  CHECK(rg::memory::stats().live_bytes == before);
  CHECK(rg::state_of(optimizer).size() == 3);
}

TEST_CASE("a loaded state goes on with the same bits") {
  const Tensor a = parameter(50, rg::kFloat32), b = parameter(50, rg::kFloat32);
  optim::AdamW first(rg::Tensors{a}, {.lr = 0.1, .amsgrad = true}),
      second(rg::Tensors{b}, {.lr = 0.1, .amsgrad = true});
  const auto step = [](const Tensor& p, optim::AdamW& optimizer, int64_t t) {
    p.set_grad(gradient(t, p));
    optimizer.step();
  };
  for (int64_t t = 1; t <= 3; ++t) step(a, first, t);
  {
    rg::NoGradGuard no_grad;
    b.copy_(a);
  }
  second.load_state_dict(first.state_dict());
  for (int64_t t = 4; t <= 6; ++t) {
    step(a, first, t);
    step(b, second, t);
  }
  CHECK(a.to_vector() == b.to_vector());

  rg::StateDict wrong = first.state_dict();
  wrong["0.exp_avg"] = rg::zeros({49});
  CHECK(category_of([&] { second.load_state_dict(wrong); }) == Category::shape_mismatch);
  wrong["0.exp_avg"] = rg::zeros({50}, {rg::kFloat64});
  CHECK(category_of([&] { second.load_state_dict(wrong); }) == Category::dtype_mismatch);
  CHECK(category_of([&] {
          second.load_state_dict({{"0.other", rg::zeros({50})}});
        }) == Category::bad_argument);
}

// One optimizer of all parameters compared with one of each: joint computation gives the same bits as separate
// computation.
template <class Optimizer>
void check_together(const typename Optimizer::Options& options) {
  const int64_t sizes[] = {5, 0, 1000, 64, 1, 40'000, 17};
  rg::Tensors together, alone;
  for (size_t i = 0; i < std::size(sizes); ++i)
    for (rg::Tensors* list : {&together, &alone})
      list->push_back(parameter(sizes[i], i == 3 ? rg::kFloat64 : rg::kFloat32));
  Optimizer all(together, options);
  std::vector<Optimizer> each;
  for (const Tensor& p : alone) each.emplace_back(rg::Tensors{p}, options);
  for (int64_t step = 1; step <= 3; ++step) {
    for (size_t i = 0; i < alone.size(); ++i) {
      const bool has_gradient = step != 2 || i != 2;  // from then on its step count differs
      together[i].set_grad(has_gradient ? gradient(step, together[i]) : Tensor());
      alone[i].set_grad(has_gradient ? gradient(step, alone[i]) : Tensor());
      each[i].step();
    }
    all.step();
    for (size_t i = 0; i < alone.size(); ++i) CHECK(together[i].to_vector() == alone[i].to_vector());
  }
}

TEST_CASE("parameters are updated together as they are alone") {
  check_together<optim::AdamW>({.lr = 0.1});
  check_together<optim::AdamW>({.lr = 0.1, .amsgrad = true});
  check_together<optim::SGD>({.lr = 0.1});
  check_together<optim::SGD>({.lr = 0.1, .momentum = 0.9});
}

TEST_CASE("parameters that share memory are updated one after the other") {
  const Tensor p = parameter(30'000), q = p.detach().requires_grad_(), alone = parameter(30'000);
  optim::SGD both(rg::Tensors{p, q}, {.lr = 0.1, .weight_decay = 0.5}),
      one({alone}, {.lr = 0.1, .weight_decay = 0.5});
  p.set_grad(gradient(1, p));
  q.set_grad(gradient(2, q));
  both.step();
  for (int64_t step : {1, 2}) {
    alone.set_grad(gradient(step, alone));
    one.step();
  }
  CHECK(p.to_vector() == alone.to_vector());
}

TEST_CASE("a step raises the version of what it writes") {
  const Tensor p = rg::tensor({2.0, 3}).requires_grad_();
  const Tensor loss = rg::sum(p * p);
  optim::SGD optimizer(rg::Tensors{p}, {.lr = 0.1});
  p.set_grad(rg::ones({2}));
  optimizer.step();
  CHECK(category_of([&] { loss.backward(); }) == Category::version_mismatch);
}

TEST_CASE("what an optimizer cannot do is refused") {
  const auto sgd = [](const rg::Tensors& params, optim::SGDOptions options = {}) {
    return category_of([&] { optim::SGD(params, options); });
  };
  const Tensor p = parameter(4);
  CHECK(sgd({}) == Category::bad_argument);
  CHECK(sgd({Tensor()}) == Category::bad_argument);
  CHECK(sgd({p, p}) == Category::bad_argument);
  CHECK(sgd({p * 2}) == Category::bad_argument);
  CHECK(sgd({rg::ones({4}).to(rg::kFloat8_e4m3fn).requires_grad_()}) == Category::dtype_mismatch);
  CHECK(sgd({rg::ones({2, 3}).t().detach().requires_grad_()}) == Category::bad_argument);
  CHECK(sgd({p}, {.lr = -1}) == Category::bad_argument);
  CHECK(sgd({p}, {.nesterov = true}) == Category::bad_argument);
  CHECK(category_of([&] { optim::AdamW(rg::Tensors{p}, {.betas = {1, 0.9}}); }) == Category::bad_argument);
  optim::SGD optimizer(rg::Tensors{p});
  CHECK(category_of([&] {
          optimizer.set_lr(NAN);
          optimizer.step();
        }) == Category::bad_argument);
}

TEST_CASE("clip_grad_norm_ scales to the norm asked for and returns the one before") {
  const Tensor a = parameter(3), b = parameter(1), none = parameter(2);
  const auto set = [&] {
    a.set_grad(rg::tensor({2, -4, 4}, {rg::kFloat64}));
    b.set_grad(rg::tensor({8}, {rg::kFloat64}));
  };
  set();
  CHECK(optim::clip_grad_norm_({a, b, none}, 5) == Approx(10));
  CHECK(a.grad().to_vector()[1] == Approx(-2).epsilon(1e-6));
  CHECK(b.grad().to_vector()[0] == Approx(4).epsilon(1e-6));
  set();
  CHECK(optim::clip_grad_norm_({a, b}, 20) == Approx(10));
  CHECK(b.grad().to_vector()[0] == 8);
  CHECK(optim::clip_grad_norm_({a, b}, 4, INFINITY) == Approx(8));
  CHECK(b.grad().to_vector()[0] == Approx(4).epsilon(1e-6));
  set();
  CHECK(optim::clip_grad_norm_({a, b}, 100, 1) == Approx(18));
  CHECK(optim::clip_grad_norm_({none}, 1) == 0);

  b.set_grad(rg::tensor({NAN}, {rg::kFloat64}));
  CHECK(std::isnan(optim::clip_grad_norm_({b, a}, 1, INFINITY)));
  CHECK(category_of([&] { optim::clip_grad_norm_({a, b}, 1, 2, true); }) == Category::bad_argument);
  CHECK(category_of([&] { optim::clip_grad_norm_({a}, -1); }) == Category::bad_argument);
  CHECK(category_of([&] { optim::clip_grad_norm_({a}, 1, 0); }) == Category::bad_argument);
}

TEST_CASE("clip_grad_value_ clamps, strided gradients too") {
  const Tensor p = rg::zeros({2, 3}).requires_grad_();
  p.set_grad(rg::tensor({1.0, 2, 3, -4, 5, 6}, {3, 2}).t());
  optim::clip_grad_value_({p}, 3);
  CHECK(p.grad().to_vector() == Vector{1, 3, 3, 2, -3, 3});
  CHECK(category_of([&] { optim::clip_grad_value_({p}, -1); }) == Category::bad_argument);
}

TEST_CASE("results do not depend on the number of threads") {
  const int before = rg::cpu::get_num_threads();
  std::vector<Vector> results;
  std::vector<double> norms;
  for (int threads : {1, 2, 5}) {
    rg::cpu::set_num_threads(threads);
    const Tensor large = parameter(100'003, rg::kFloat32), small = parameter(7, rg::kFloat32);
    optim::AdamW optimizer(rg::Tensors{small, large}, {.lr = 0.1});
    for (int64_t t = 1; t <= 3; ++t) {
      for (const Tensor& p : {large, small}) p.set_grad(gradient(t, p));
      norms.push_back(optim::clip_grad_norm_({small, large}, 1));
      optimizer.step();
    }
    results.push_back(large.to_vector());
  }
  rg::cpu::set_num_threads(before);
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
  for (size_t i = 0; i < 3; ++i) CHECK((norms[i] == norms[i + 3] && norms[i] == norms[i + 6]));
}
