// Every update rule against its published algorithm, written out for one element in double; and in all modes the same
// bits: eager, recorded by compile_step, one parameter at a time.
//
// The references are naive on purpose: they restart from the options at every step. PyTorch's own results are in the
// conformance suite "optim", except for Rprop and ASGD, whose numbers of PyTorch 2.15 are here.
#include <catch2/catch.hpp>

#include <cmath>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Tensor;

namespace {

using Vector = std::vector<double>;
constexpr int kSteps = 9;
constexpr int64_t kElements = 37;

// Differs by step and element, changes its sign, and is exactly 0 now and then.
double gradient_at(int step, size_t i) {
  if ((static_cast<size_t>(step) + i) % 7 == 0) return 0;
  return std::sin(1.3 * step + 0.7 * static_cast<double>(i)) + 0.2;
}

Tensor gradient(int step, rg::ScalarType dtype) {
  Vector g(kElements);
  for (size_t i = 0; i < g.size(); ++i) g[i] = gradient_at(step, i);
  return rg::tensor(g, {kElements}, {dtype});
}

Tensor parameter(rg::ScalarType dtype) {
  Vector values(kElements);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::cos(0.9 * static_cast<double>(i));
  return rg::tensor(values, {kElements}, {dtype, rg::kCPU, true});
}

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

// One element: all states begin at 0 unless set.
struct Element {
  double p;
  double a = 0, b = 0, c = 0, d = 1;
};
// Of each: updates an element at step t with gradient g, whose sign is that to minimise.
template <class Options>
using Reference = void (*)(Element&, const Options&, int t, double g);

void adam_like(Element& e, double lr, std::array<double, 2> betas, double eps, bool amsgrad, int t,
               double g) {
  e.a = betas[0] * e.a + (1 - betas[0]) * g;
  e.b = betas[1] * e.b + (1 - betas[1]) * g * g;
  e.c = std::max(e.c, e.b);
  const double v = (amsgrad ? e.c : e.b) / (1 - std::pow(betas[1], t));
  e.p -= lr * (e.a / (1 - std::pow(betas[0], t))) / (std::sqrt(v) + eps);
}

void adam(Element& e, const optim::AdamOptions& o, int t, double g) {
  if (o.decoupled_weight_decay)
    e.p *= 1 - o.lr * o.weight_decay;
  else
    g += o.weight_decay * e.p;
  adam_like(e, o.lr, o.betas, o.eps, o.amsgrad, t, g);
}

void adamax(Element& e, const optim::AdamaxOptions& o, int t, double g) {
  g += o.weight_decay * e.p;
  e.a = o.betas[0] * e.a + (1 - o.betas[0]) * g;
  e.b = std::max(o.betas[1] * e.b, std::abs(g) + o.eps);
  e.p -= o.lr / (1 - std::pow(o.betas[0], t)) * e.a / e.b;
}

void nadam(Element& e, const optim::NAdamOptions& o, int t, double g) {
  if (o.decoupled_weight_decay)
    e.p *= 1 - o.lr * o.weight_decay;
  else
    g += o.weight_decay * e.p;
  const auto mu = [&](int k) { return o.betas[0] * (1 - 0.5 * std::pow(0.96, k * o.momentum_decay)); };
  e.d *= mu(t);
  e.a = o.betas[0] * e.a + (1 - o.betas[0]) * g;
  e.b = o.betas[1] * e.b + (1 - o.betas[1]) * g * g;
  const double denominator = std::sqrt(e.b / (1 - std::pow(o.betas[1], t))) + o.eps;
  e.p -= o.lr * (1 - mu(t)) / (1 - e.d) * g / denominator;
  e.p -= o.lr * mu(t + 1) / (1 - e.d * mu(t + 1)) * e.a / denominator;
}

void radam(Element& e, const optim::RAdamOptions& o, int t, double g) {
  if (o.decoupled_weight_decay)
    e.p *= 1 - o.lr * o.weight_decay;
  else
    g += o.weight_decay * e.p;
  e.a = o.betas[0] * e.a + (1 - o.betas[0]) * g;
  e.b = o.betas[1] * e.b + (1 - o.betas[1]) * g * g;
  const double m = e.a / (1 - std::pow(o.betas[0], t)), power = std::pow(o.betas[1], t);
  const double rho = 2 / (1 - o.betas[1]) - 1, now = rho - 2 * t * power / (1 - power);
  if (now > 5)
    e.p -= o.lr * m * std::sqrt((now - 4) * (now - 2) * rho / ((rho - 4) * (rho - 2) * now)) *
           std::sqrt(1 - power) / (std::sqrt(e.b) + o.eps);
  else
    e.p -= o.lr * m;
}

void adagrad(Element& e, const optim::AdagradOptions& o, int t, double g) {
  if (t == 1) e.a = o.initial_accumulator_value;
  g += o.weight_decay * e.p;
  e.a += g * g;
  e.p -= o.lr / (1 + (t - 1) * o.lr_decay) * g / (std::sqrt(e.a) + o.eps);
}

void adadelta(Element& e, const optim::AdadeltaOptions& o, int, double g) {
  g += o.weight_decay * e.p;
  e.a = o.rho * e.a + (1 - o.rho) * g * g;
  const double d = std::sqrt(e.b + o.eps) / std::sqrt(e.a + o.eps) * g;
  e.b = o.rho * e.b + (1 - o.rho) * d * d;
  e.p -= o.lr * d;
}

void rmsprop(Element& e, const optim::RMSpropOptions& o, int, double g) {
  g += o.weight_decay * e.p;
  e.a = o.alpha * e.a + (1 - o.alpha) * g * g;
  double square = e.a;
  if (o.centered) {
    e.b = o.alpha * e.b + (1 - o.alpha) * g;
    square -= e.b * e.b;
  }
  double d = g / (std::sqrt(square) + o.eps);
  if (o.momentum != 0) d = e.c = o.momentum * e.c + d;
  e.p -= o.lr * d;
}

void rprop(Element& e, const optim::RpropOptions& o, int t, double g) {
  if (t == 1) e.b = o.lr;
  const double s = sign(g * e.a);
  e.b = std::clamp(e.b * (s > 0 ? o.etas[1] : s < 0 ? o.etas[0] : 1), o.step_sizes[0], o.step_sizes[1]);
  if (s < 0) g = 0;
  e.p -= sign(g) * e.b;
  e.a = g;
}

void asgd(Element& e, const optim::ASGDOptions& o, int t, double g) {
  const double eta = t == 1 ? o.lr : o.lr / std::pow(1 + o.lambd * o.lr * (t - 1), o.alpha);
  g += o.weight_decay * e.p;
  e.p = e.p * (1 - o.lambd * eta) - eta * g;
  e.a += (e.p - e.a) / std::max(1.0, t - 1 - o.t0);
}

void lion(Element& e, const optim::LionOptions& o, int, double g) {
  e.p *= 1 - o.lr * o.weight_decay;
  e.p -= o.lr * sign(o.betas[0] * e.a + (1 - o.betas[0]) * g);
  e.a = o.betas[1] * e.a + (1 - o.betas[1]) * g;
}

void ademamix(Element& e, const optim::AdEMAMixOptions& o, int t, double g) {
  double alpha = o.alpha, beta3 = o.betas[2];
  if (t < o.alpha_warmup) alpha *= t / o.alpha_warmup;
  if (t < o.beta3_warmup) {  // equation 9 of the paper's appendix, in its code's form
    const auto f = [](double beta) { return std::log(0.5) / std::log(beta + 1e-8) - 1; };
    const double share = t / o.beta3_warmup;
    beta3 = std::pow(0.5, 1 / ((1 - share) * f(o.betas[0]) + share * f(beta3) + 1));
  }
  e.a = o.betas[0] * e.a + (1 - o.betas[0]) * g;
  e.b = beta3 * e.b + (1 - beta3) * g;
  e.c = o.betas[1] * e.c + (1 - o.betas[1]) * g * g;
  const double denominator = std::sqrt(e.c / (1 - std::pow(o.betas[1], t))) + o.eps;
  e.p -= o.lr * ((e.a / (1 - std::pow(o.betas[0], t)) + alpha * e.b) / denominator + o.weight_decay * e.p);
}

// By the paper's own sequences: x, z, and y where the gradient is taken.
void schedule_free(Element& e, const optim::AdamWScheduleFreeOptions& o, int t, double g) {
  if (t == 1) e.a = e.b = e.p, e.d = 0;  // x, z, the sum of weights
  const double rate = o.lr * std::min(1.0, o.warmup_steps > 0 ? t / o.warmup_steps : 1.0) *
                      std::sqrt(1 - std::pow(o.betas[1], t));
  e.c = o.betas[1] * e.c + (1 - o.betas[1]) * g * g;
  const double weight = std::pow(t, o.r) * std::pow(rate, o.weight_lr_power);  // the rate grows
  e.d += weight;
  e.b -= rate * (g / (std::sqrt(e.c) + o.eps) + o.weight_decay * e.p);
  e.a += weight / e.d * (e.b - e.a);
  e.p = (1 - o.betas[0]) * e.b + o.betas[0] * e.a;
}

template <class Optimizer>
void follow(const std::vector<typename Optimizer::Options>& cases,
            Reference<typename Optimizer::Options> reference) {
  for (const auto& options : cases)
    for (const rg::ScalarType dtype : {rg::kFloat64, rg::kFloat32}) {
      const Tensor p = parameter(dtype), q = parameter(dtype);
      Optimizer eager(rg::Tensors{p}, options), recorded(rg::Tensors{q}, options);
      auto step = rg::compile_step([&](const Tensor& g) {
        q.set_grad(g);
        recorded.step();
      });
      std::vector<Element> elements;
      for (const double value : p.to_vector()) elements.push_back({value});
      for (int t = 1; t <= kSteps; ++t) {
        p.set_grad(gradient(t, dtype));
        eager.step();
        step(gradient(t, dtype));
        for (size_t i = 0; i < elements.size(); ++i)
          reference(elements[i], options, t, gradient_at(t, i) * (options.maximize ? -1 : 1));
      }
      INFO(typeid(Optimizer).name() << ", case " << &options - cases.data() << " " << rg::name(dtype));
      CHECK(step.stats().captures == 1);
      const Vector got = p.to_vector();
      CHECK(got == q.to_vector());
      for (size_t i = 0; i < got.size(); ++i)
        CHECK(got[i] == Approx(elements[i].p).epsilon(dtype == rg::kFloat64 ? 1e-11 : 3e-5).margin(2e-6));
    }
}

}  // namespace

TEST_CASE("Adam follows its algorithm") {
  follow<optim::Adam>({{},
                       {.lr = 0.05, .betas = {0.8, 0.95}, .weight_decay = 0.3},
                       {.lr = 0.05, .eps = 0.1, .amsgrad = true},
                       {.lr = 0.05, .weight_decay = 0.3, .maximize = true, .decoupled_weight_decay = true}},
                      adam);
}

TEST_CASE("Adamax follows its algorithm") {
  follow<optim::Adamax>({{}, {.lr = 0.05, .betas = {0.8, 0.95}, .weight_decay = 0.3}, {.maximize = true}},
                        adamax);
}

TEST_CASE("NAdam follows its algorithm") {
  follow<optim::NAdam>({{},
                        {.lr = 0.05, .betas = {0.8, 0.95}, .weight_decay = 0.3, .momentum_decay = 0.1},
                        {.weight_decay = 0.3, .decoupled_weight_decay = true, .maximize = true}},
                       nadam);
}

TEST_CASE("RAdam follows its algorithm") {
  follow<optim::RAdam>({{},  // rectified from step 6 on
                        {.lr = 0.05, .betas = {0.8, 0.95}, .weight_decay = 0.3},
                        {.weight_decay = 0.3, .decoupled_weight_decay = true, .maximize = true}},
                       radam);
}

TEST_CASE("Adagrad follows its algorithm") {
  follow<optim::Adagrad>(
      {{.eps = 1e-6},
       {.lr = 0.05, .lr_decay = 0.1, .weight_decay = 0.3, .initial_accumulator_value = 0.5},
       {.initial_accumulator_value = 0.1, .maximize = true}},
      adagrad);
}

TEST_CASE("Adadelta follows its algorithm") {
  follow<optim::Adadelta>({{}, {.lr = 0.5, .rho = 0.8, .eps = 1e-4, .weight_decay = 0.3}, {.maximize = true}},
                          adadelta);
}

TEST_CASE("RMSprop follows its algorithm") {
  follow<optim::RMSprop>({{},
                          {.lr = 0.05, .alpha = 0.9, .eps = 1e-4, .weight_decay = 0.3, .momentum = 0.9},
                          {.eps = 0.1, .centered = true},
                          {.eps = 0.1, .momentum = 0.5, .centered = true, .maximize = true}},
                         rmsprop);
}

TEST_CASE("Rprop follows its algorithm") {
  follow<optim::Rprop>({{}, {.lr = 0.1, .etas = {0.3, 2}, .step_sizes = {0.05, 0.3}}, {.maximize = true}},
                       rprop);
}

TEST_CASE("ASGD follows its algorithm") {
  follow<optim::ASGD>({{},
                       {.lr = 0.1, .lambd = 0.1, .alpha = 0.5, .t0 = 3, .weight_decay = 0.3},
                       {.t0 = 0, .maximize = true}},
                      asgd);
}

TEST_CASE("Lion follows its algorithm") {
  follow<optim::Lion>({{}, {.lr = 0.05, .betas = {0.8, 0.95}, .weight_decay = 0.3}, {.maximize = true}},
                      lion);
}

TEST_CASE("AdEMAMix follows its algorithm") {
  follow<optim::AdEMAMix>({{},
                           {.lr = 0.05,
                            .betas = {0.8, 0.95, 0.99},
                            .alpha = 5,
                            .beta3_warmup = 6,
                            .alpha_warmup = 4,
                            .weight_decay = 0.3},
                           {.maximize = true}},
                          ademamix);
}

TEST_CASE("schedule-free AdamW follows its algorithm") {
  follow<optim::AdamWScheduleFree>(
      {{},
       {.lr = 0.05, .betas = {0.8, 0.95}, .weight_decay = 0.3, .warmup_steps = 5, .r = 1},
       {.maximize = true}},
      schedule_free);
}

TEST_CASE("schedule-free AdamW evaluates with the average, and goes on where it was") {
  const optim::AdamWScheduleFreeOptions options{.lr = 0.05, .betas = {0.8, 0.95}};
  const Tensor p = parameter(rg::kFloat64);
  optim::AdamWScheduleFree optimizer({p}, options);
  auto step = rg::compile_step([&] { optimizer.step(); });
  std::vector<Element> elements;
  for (const double value : p.to_vector()) elements.push_back({value});
  optimizer.eval(), optimizer.train();  // before the first step all are equal
  for (int t = 1; t <= kSteps; ++t) {
    p.set_grad(gradient(t, rg::kFloat64));
    step();
    for (size_t i = 0; i < elements.size(); ++i) schedule_free(elements[i], options, t, gradient_at(t, i));
    const Vector training = p.to_vector();
    optimizer.eval();
    const Vector average = p.to_vector();
    CHECK_THROWS_AS(optimizer.step(), rg::Error);
    CHECK_THROWS_AS(step(), rg::Error);
    optimizer.train();
    for (size_t i = 0; i < elements.size(); ++i) {
      CHECK(average[i] == Approx(elements[i].a).epsilon(1e-10).margin(1e-12));
      CHECK(p.to_vector()[i] == Approx(training[i]).epsilon(1e-12).margin(1e-12));
    }
  }
}
