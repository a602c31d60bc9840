// Activation functions: values against their definitions in double, derivatives to second order, kinks,
// integers, saved sets, errors. Not tested here: layouts and small dtypes (tests/ops/elementwise_test.cc, the
// same code), results against PyTorch (tests/conformance).
#include "ops/activations.h"

#include <cstring>

#include "ops/join.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double normal(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

struct Activation {
  const char* name;
  Tensor (*f)(const Tensor&);
  double (*reference)(double);
};

const Activation kActivations[] = {
    {"sigmoid", [](const Tensor& x) { return sigmoid(x); }, logistic},
    {"tanh", [](const Tensor& x) { return tanh(x); }, [](double x) { return std::tanh(x); }},
    {"relu", [](const Tensor& x) { return relu(x); }, [](double x) { return x > 0 ? x : 0; }},
    {"relu6", [](const Tensor& x) { return relu6(x * 4); },
     [](double x) { return std::min(std::max(4 * x, 0.0), 6.0); }},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.2); },
     [](double x) { return x > 0 ? x : 0.2 * x; }},
    {"threshold", [](const Tensor& x) { return threshold(x, 0.11, 3); },
     [](double x) { return x > 0.11 ? x : 3; }},
    {"hardtanh", [](const Tensor& x) { return hardtanh(x, -0.7, 0.6); },
     [](double x) { return std::min(std::max(x, -0.7), 0.6); }},
    {"hardsigmoid", [](const Tensor& x) { return hardsigmoid(x * 3); },
     [](double x) { return std::min(std::max(x / 2 + 0.5, 0.0), 1.0); }},
    {"hardswish", [](const Tensor& x) { return hardswish(x * 3); },
     [](double x) { return 3 * x * std::min(std::max(x / 2 + 0.5, 0.0), 1.0); }},
    {"softsign", [](const Tensor& x) { return softsign(x); }, [](double x) { return x / (1 + std::abs(x)); }},
    {"logsigmoid", [](const Tensor& x) { return logsigmoid(x); },
     [](double x) { return std::log(logistic(x)); }},
    {"silu", [](const Tensor& x) { return silu(x); }, [](double x) { return x * logistic(x); }},
    {"mish", [](const Tensor& x) { return mish(x); },
     [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
    {"gelu", [](const Tensor& x) { return gelu(x); }, [](double x) { return x * normal(x); }},
    {"gelu by tanh", [](const Tensor& x) { return gelu(x, "tanh"); },
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
    {"elu", [](const Tensor& x) { return elu(x, 1.5); },
     [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }},
    {"celu", [](const Tensor& x) { return celu(x, 1.5); },
     [](double x) { return x > 0 ? x : 1.5 * std::expm1(x / 1.5); }},
    {"selu", [](const Tensor& x) { return selu(x); },
     [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); }},
    {"softplus", [](const Tensor& x) { return softplus(x, 2.0, 1.7); },
     [](double x) { return 2 * x > 1.7 ? x : std::log1p(std::exp(2 * x)) / 2; }},
};

TEST_CASE("values by definition") {
  for (const Activation& a : kActivations) {
    const Tensor x = input({67}, -3, 3).detach();
    const std::vector<double> in = x.to_vector(), out = a.f(x).to_vector();
    const std::vector<double> single_in = x.to(kFloat32).to_vector(),
                              single = a.f(x.to(kFloat32)).to_vector();
    for (size_t i = 0; i < in.size(); ++i) {
      INFO(a.name << " of " << in[i]);
      CHECK(out[i] == Approx(a.reference(in[i])).epsilon(1e-13).margin(1e-14));
      CHECK(single[i] == Approx(a.reference(single_in[i])).epsilon(2e-6).margin(1e-6));
    }
  }
}

TEST_CASE("derivatives to second order") {
  for (const Activation& a : kActivations) {
    INFO(a.name);
    gradcheck([&](const Tensors& x) { return a.f(x[0]); }, {input({9}, -1.6, 1.6)});
  }
}

TEST_CASE("far from zero nothing overflows") {
  const Tensor x = tensor({-1000, -100, 100, 1000}, {kFloat64, kCPU, true});
  for (const Activation& a : kActivations) {
    const Tensor y = a.f(x);
    const Tensor g = autograd::grad({sum(y)}, {x}, {}, true, true)[0];
    INFO(a.name);
    for (double v : y.to_vector()) CHECK(std::isfinite(v));
    for (double v : g.to_vector()) CHECK(std::isfinite(v));
  }
}

std::vector<double> gradient(const std::function<Tensor(const Tensor&)>& f,
                             std::initializer_list<double> at) {
  const Tensor x = tensor(at, {kFloat64, kCPU, true});
  return autograd::grad({sum(f(x))}, {x})[0].to_vector();
}

// 41 elements: pairs of registers, one register, and a rest, at each level. Of a nan only that it is one: its
// sign is that of whichever operand a compiler put first.
TEST_CASE("the bits of an element and of its gradient do not depend on the elements next to it") {
  std::vector<double> values;
  for (double x :
       {0.0, -0.0, 0.3, -0.7, 3.0, -9.5, 50.0, -60.0, 87.0, -88.5, 130.0, -200.0, 1e30, -1e30, 1e-40})
    values.push_back(x);
  for (double x : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                   std::numeric_limits<double>::quiet_NaN()})
    values.push_back(x);
  while (values.size() < 41) values.push_back(-2 + 0.1 * static_cast<double>(values.size()));
  for (const Activation& a : kActivations) {
    const auto both = [&](const Tensor& numbers) {
      const Tensor x = numbers.detach().requires_grad_();
      const Tensor y = a.f(x);
      return stack({y.detach(), autograd::grad({y}, {x}, {full(y.sizes(), 1.5, kFloat32)})[0]});
    };
    const Tensor x = to(tensor(values, {41}), kFloat32), together = both(x);
    for (int64_t i = 0; i < 41; ++i) {
      INFO(a.name << " of " << values[static_cast<size_t>(i)]);
      const Tensor beside = narrow(together, 1, i, 1).contiguous(), alone = both(narrow(x, 0, i, 1));
      const float *a_bits = beside.data_ptr<float>(), *b_bits = alone.data_ptr<float>();
      for (int k = 0; k < 2; ++k)
        CHECK((std::memcmp(a_bits + k, b_bits + k, sizeof(float)) == 0 ||
               (std::isnan(a_bits[k]) && std::isnan(b_bits[k]))));
    }
  }
}

TEST_CASE("derivatives at kinks") {
  using Values = std::vector<double>;
  CHECK(gradient([](const Tensor& x) { return relu(x); }, {-1, 0, 1}) == Values{0, 0, 1});
  CHECK(gradient([](const Tensor& x) { return leaky_relu(x, 0.25); }, {-1, 0, 1}) == Values{0.25, 0.25, 1});
  CHECK(gradient([](const Tensor& x) { return threshold(x, 1, 5); }, {0, 1, 2}) == Values{0, 0, 1});
  CHECK(gradient([](const Tensor& x) { return hardtanh(x); }, {-1, 0, 1}) == Values{0, 1, 0});
  CHECK(gradient([](const Tensor& x) { return hardsigmoid(x); }, {-3, 0, 3}) == Values{0, 1.0f / 6.0f, 0});
  CHECK(gradient([](const Tensor& x) { return hardswish(x); }, {-3, 0, 3}) == Values{0, 0.5, 1});
  CHECK(gradient([](const Tensor& x) { return elu(x, 0.5); }, {0, 1}) == Values{0.5, 1});
  CHECK(gradient([](const Tensor& x) { return softsign(x); }, {0}) == Values{1});
}

TEST_CASE("a gradient is one node, and an infinite one stays on its side of a kink") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = tensor({-1, 1}, {kFloat64, kCPU, true});
  const Tensor g = autograd::grad({relu(x)}, {x}, {full({2}, inf, kFloat64)})[0];
  CHECK(g.to_vector() == std::vector<double>{0, inf});
  CHECK(std::string(ops::info<ops::Backward<ops::Gelu>>.name) == "gelu_backward");
}

TEST_CASE("third derivatives") {
  const Tensor x = tensor({0.3, -0.8}, {kFloat64, kCPU, true});
  Tensor d = tanh(x);
  for (int i = 0; i < 3; ++i) d = autograd::grad({sum(d)}, {x}, {}, true, true)[0];
  for (int i = 0; i < 2; ++i) {
    const double t = std::tanh(x.to_vector()[static_cast<size_t>(i)]);
    CHECK(d.to_vector()[static_cast<size_t>(i)] == Approx((1 - t * t) * (6 * t * t - 2)).epsilon(1e-12));
  }
}

TEST_CASE("integers") {
  const Tensor i = tensor({-3, 0, 9}, {kInt32});
  CHECK(relu(i).dtype() == kInt32);
  CHECK(relu(i).to_vector() == std::vector<double>{0, 0, 9});
  CHECK(hardtanh(i, -1, 4).to_vector() == std::vector<double>{-1, 0, 4});
  CHECK(sigmoid(i).dtype() == kFloat32);
  CHECK_THROWS_AS(relu(ones({2}, kBool)), Error);
  CHECK_THROWS_AS(gelu(ones({2}), "erf"), Error);
}

}  // namespace
}  // namespace retrograd
