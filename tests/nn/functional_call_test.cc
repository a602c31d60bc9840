// functional_call: what it replaces and restores, its errors, and what it is for (inner steps of MAML, Hessian products,
// gradients per sample, ensembles), eagerly and recorded.
#include "nn/functional_call.h"

#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
using rg::Tensor;
using rg::Tensors;
using rg::testing::same_bits;

namespace {

struct Net : nn::Module {
  nn::Linear first{this, "first", 3, 5};
  nn::Linear second{this, "second", 5, 1};
  Tensor forward(rg::Operand x) const { return second(rg::tanh(first(x))); }
};

struct Attention : nn::Module {
  nn::LayerNorm norm{this, "norm", {4}};
  nn::CausalSelfAttention attention{this, "attention", 4, 2};
  Tensor forward(const Tensor& x) const { return x + attention(norm(x)); }
};

Tensor loss(const Net& net, const nn::ParameterValues& values, const Tensor& x, const Tensor& y) {
  return rg::mse_loss(nn::functional_call(net, values, x), y);
}

// A gradient step of the inner loop, through which the outer one differentiates.
Tensors adapted(const Net& net, const Tensors& parameters, const Tensor& x, const Tensor& y) {
  const Tensors gradients = rg::autograd::grad({loss(net, parameters, x, y)}, parameters, {},
                                               /*retain_graph=*/{}, /*create_graph=*/true);
  Tensors next;
  for (size_t i = 0; i < parameters.size(); ++i) next.push_back(parameters[i] - 0.1 * gradients[i]);
  return next;
}

using Program = std::function<Tensors(const Tensors&)>;

// What `program` gives in each mode.
std::vector<Tensors> in_modes(const Program& program, const Tensors& arguments) {
  std::vector<Tensors> results{program(arguments)};
  rg::CompiledBackward compiled;
  for (int i = 0; i < 3; ++i) {
    const rg::CompiledBackwardScope scope(compiled);
    results.push_back(program(arguments));
  }
  auto function = rg::compile([&](const Tensor& x, const Tensor& y) { return program({x, y}); });
  auto step = rg::compile_step([&](const Tensor& x, const Tensor& y) { return program({x, y}); });
  for (int i = 0; i < 3; ++i) {
    results.push_back(function(arguments[0], arguments[1]));
    results.push_back(step(arguments[0], arguments[1]));
  }
  CHECK(function.stats().eager == 0);
  CHECK(step.stats().eager == 0);
  return results;
}

void check_modes(const Program& program, const Tensors& arguments) {
  const std::vector<Tensors> results = in_modes(program, arguments);
  for (size_t mode = 1; mode < results.size(); ++mode) {
    REQUIRE(results[mode].size() == results[0].size());
    for (size_t i = 0; i < results[0].size(); ++i) {
      INFO("mode " << mode << ", result " << i);
      CHECK(same_bits(results[mode][i], results[0][i]));
    }
  }
}

Tensors data(const rg::Shape& x, const rg::Shape& y) {
  rg::manual_seed(3);
  return {rg::randn(x, {rg::kFloat64}), rg::randn(y, {rg::kFloat64})};
}

template <class F>
std::string text_of(F&& f) {
  try {
    f();
  } catch (const rg::Error& e) {
    return e.what();
  }
  FAIL("no Error was thrown");
  return {};
}

}  // namespace

TEST_CASE("parameters are replaced by name or in order, and restored") {
  const Net net;
  const Tensors own = net.parameters();
  const Tensor x = rg::ones({2, 3});
  const Tensor plain = net.forward(x);
  const Tensor weight = rg::zeros({1, 5}), bias = rg::full({1}, 7.0);
  CHECK(nn::functional_call(net, {{"second.weight", weight}}, x).to_vector() ==
        std::vector<double>(2, own[3].item<double>()));
  CHECK(nn::functional_call(net, {{"second.weight", weight}, {"second.bias", bias}}, x).to_vector() ==
        std::vector<double>{7, 7});
  CHECK(nn::functional_call(net, Tensors{own[0], own[1], weight, bias}, x).to_vector() ==
        std::vector<double>{7, 7});
  CHECK(same_bits(nn::functional_call(net, {}, x), plain));
  for (size_t i = 0; i < own.size(); ++i) CHECK(net.parameters()[i].is_same(own[i]));
}

TEST_CASE("a call that throws restores the parameters and names the caller's line") {
  const nn::Linear layer(nullptr, "", 3, 2);
  const Tensors own = layer.parameters();
  const Tensor wrong = rg::ones({2, 4});
  const int line = __LINE__ + 2;
  const std::string text = text_of([&] {
    nn::functional_call(layer, {{"weight", wrong}}, rg::ones({1, 3}));
  });
  INFO(text);
  CHECK(text.find("functional_call_test.cc:" + std::to_string(line)) != std::string::npos);
  CHECK(layer.weight.is_same(own[0]));
}

TEST_CASE("what the module does not have is refused, with the caller's line") {
  const Net net;
  const Tensor x = rg::ones({2, 3}), w = rg::ones({1});
  const Tensors own = net.parameters();
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
    CHECK(text.find("functional_call_test.cc:") != std::string::npos);
  };
  has(text_of([&] {
        nn::functional_call(net, {{"third.bias", w}}, x);
      }),
      "no parameter or buffer \"third.bias\"");
  has(text_of([&] { nn::functional_call(net, Tensors{w}, x); }), "1 tensors for 4 parameters");
  has(text_of([&] {
        nn::functional_call(net, {{"first.bias", Tensor()}}, x);
      }),
      "undefined tensor for \"first.bias\"");
  for (size_t i = 0; i < own.size(); ++i) CHECK(net.parameters()[i].is_same(own[i]));
}

TEST_CASE("recurrent layers read the tensors that they are given") {
  rg::manual_seed(1);
  const nn::LSTM a(nullptr, "", 3, 4), b(nullptr, "", 3, 4);
  const Tensor x = rg::rand({5, 2, 3});
  CHECK(same_bits(nn::functional_call(a, b.parameters(), x).output, b(x).output));
  CHECK_FALSE(same_bits(a(x).output, b(x).output));
}

TEST_CASE("a module in another dtype keeps its leaves and its gradients") {
  Net net;
  const Tensor weight = net.first.weight, x = rg::ones({2, 3});
  rg::sum(net.forward(x)).backward();
  const std::vector<double> gradient = weight.grad().to_vector();
  net.to(rg::kFloat64);
  CHECK(weight.dtype() == rg::kFloat64);
  CHECK(weight.is_same(net.parameters()[0]));
  CHECK(weight.grad().dtype() == rg::kFloat64);
  CHECK(weight.grad().to_vector() == gradient);
  const Tensor y = net.forward(x.to(rg::kFloat64));
  CHECK(y.dtype() == rg::kFloat64);
  net.zero_grad();
  rg::sum(y).backward();
  CHECK(weight.grad().dtype() == rg::kFloat64);
  CHECK(text_of([&] { net.to(rg::kInt64); }).find("int64 is not a floating dtype") != std::string::npos);
}

TEST_CASE("a compiled function inside of a functional_call uses the given tensors") {
  struct Compiled : nn::Module {
    nn::Linear layer{this, "layer", 3, 2};
    rg::Compiled<std::function<Tensor(const Tensor&)>> recorded{
        rg::compile(std::function([this](const Tensor& x) { return rg::tanh(layer(x)); }))};
    Tensor forward(const Tensor& x) const { return recorded(x); }
  } net;
  const Tensor x = rg::ones({2, 3});
  const Tensor before = net.forward(x);
  Tensors given;
  for (const Tensor& p : net.parameters()) given.push_back((p * 2.0).detach());
  CHECK(same_bits(nn::functional_call(net, given, x), rg::tanh(rg::linear(x, given[0], given[1]))));
  CHECK(net.recorded.stats().eager == 1);
  CHECK(net.recorded.last_eager_reason().find("functional_call") != std::string::npos);
  CHECK(same_bits(net.forward(x), before));
  CHECK(net.recorded.stats().hits == 1);
}

// ---- what it is for ----------------------------------------------------------------------------------------------------

namespace {

Program maml(const Net& net) {
  return [&net](const Tensors& in) -> Tensors {
    const Tensors own = net.parameters();
    const Tensors fast = adapted(net, adapted(net, own, in[0], in[1]), in[0], in[1]);
    return rg::autograd::grad({loss(net, fast, in[0], in[1])}, own);
  };
}

// The Hessian's product with the cosines of the parameters.
Program hessian_product(const Attention& block) {
  return [&block](const Tensors& in) -> Tensors {
    const auto value = [&](const Tensors& p) {
      return rg::sum(nn::functional_call(block, p, in[0]) * in[1]);
    };
    Tensors v;
    for (const Tensor& p : block.parameters()) v.push_back(rg::cos(p.detach()));
    return rg::autograd::vhp(value, block.parameters(), v).product;
  };
}

// Gradients of each of three samples; then the sum of two members of an ensemble.
Program samples_and_ensemble(const Net& net, const Net& other) {
  return [&](const Tensors& in) -> Tensors {
    Tensors all;
    for (int64_t i = 0; i < 3; ++i)
      for (const Tensor& g : rg::autograd::grad(
               {loss(net, net.parameters(), in[0].select(0, i), in[1].select(0, i))}, net.parameters()))
        all.push_back(g);
    all.push_back(
        (nn::functional_call(net, {}, in[0]) + nn::functional_call(net, other.parameters(), in[0])).detach());
    return all;
  };
}

// Number n of parameter k, and of the arguments, counted from 10, is 0.4 sin(1.3 k + 0.7 n).
void fill(const Tensor& x, size_t k) {
  const rg::NoGradGuard guard;
  const Tensor n = rg::arange(0, x.numel(), 1, {rg::kFloat64});
  x.copy_(rg::reshape(0.4 * rg::sin(0.7 * n + 1.3 * static_cast<double>(k)), x.sizes()));
}
void fill(nn::Module& module, size_t first = 0) {
  module.to(rg::kFloat64);
  for (const Tensor& p : module.parameters()) fill(p, first++);
}

// Each result, element n times cos(n), summed, is the number that PyTorch 2.15 gives (torch.func.functional_call).
void check_numbers(const Program& program, const rg::Shape& x, const rg::Shape& y,
                   const std::vector<double>& expected) {
  const Tensors in{rg::zeros(x, {rg::kFloat64}), rg::zeros(y, {rg::kFloat64})};
  for (size_t i = 0; i < in.size(); ++i) fill(in[i], 10 + i);
  const Tensors found = program(in);
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    INFO("result " << i);
    const Tensor weights = rg::cos(rg::arange(0, found[i].numel(), 1, {rg::kFloat64}));
    CHECK(rg::dot(rg::reshape(found[i].detach(), {-1}), weights).item<double>() ==
          Approx(expected[i]).epsilon(1e-10).margin(1e-12));
  }
}

}  // namespace

TEST_CASE("numbers are PyTorch's") {
  Net net, other;
  fill(net), fill(other, 5);
  Attention block;
  fill(block);
  check_numbers(
      maml(net), {6, 3}, {6, 1},
      {-0.00025052719342926431, -0.026406171507363414, -0.036565021827752502, -0.028563836608010013});
  check_numbers(hessian_product(block), {2, 3, 4}, {2, 3, 4},
                {-0.80078422095826374, -0.11802330233391525, -1.2211851454805118, 0.62168042866606754,
                 0.25801618452112357, 0});
  check_numbers(samples_and_ensemble(net, other), {3, 3}, {3, 1},
                {0.040846427647365152, -0.83566811146531406, -0.88406892803305315, -1.0298056460721479,
                 -0.033937574885312724, -0.70477423777816883, -0.63986058174472982, -0.82202017465248334,
                 0.019288187175592861, -0.21985004363347432, -0.19334246210228898, -0.2753894795766873,
                 -0.35552130543207583});
}

TEST_CASE("MAML: the outer gradient goes through two inner steps, in every mode") {
  rg::manual_seed(5);
  Net net;
  net.to(rg::kFloat64);
  check_modes(maml(net), data({6, 3}, {6, 1}));
}

TEST_CASE("the outer gradient of MAML is the derivative of the loss after an inner step") {
  rg::manual_seed(5);
  Net net;
  net.to(rg::kFloat64);
  const Tensors in = data({6, 3}, {6, 1});
  Tensors own;
  for (const Tensor& p : net.parameters()) own.push_back(p.detach().requires_grad_());
  CHECK(rg::autograd::gradcheck(
      [&](const Tensors& given) -> Tensors {
        const rg::EnableGradGuard on;  // the inner step has a gradient where the numerical check wants none
        Tensors p;
        for (const Tensor& t : given) p.push_back(t.requires_grad() ? t : t.detach().requires_grad_());
        return {loss(net, adapted(net, p, in[0], in[1]), in[0], in[1])};
      },
      own));
}

TEST_CASE("Hessian products of a transformer's block, in every mode") {
  rg::manual_seed(6);
  Attention block;
  block.to(rg::kFloat64);
  check_modes(hessian_product(block), data({2, 3, 4}, {2, 3, 4}));
}

TEST_CASE("gradients per sample, and an ensemble, in every mode") {
  rg::manual_seed(7);
  Net net, other;
  net.to(rg::kFloat64);
  other.to(rg::kFloat64);
  check_modes(samples_and_ensemble(net, other), data({3, 3}, {3, 1}));
}
