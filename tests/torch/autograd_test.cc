// torch::autograd as programs of libtorch spell it: gradients, user-defined functions, hooks, anomaly mode.
#include <retrograd/torch.h>
#include <catch2/catch.hpp>

#include "tests/errors.h"

namespace libtorch {
namespace {

using namespace torch::autograd;
using Values = std::vector<double>;

// As in libtorch's documentation.
class LinearFunction : public Function<LinearFunction> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor input, torch::Tensor weight,
                               torch::Tensor bias = torch::Tensor()) {
    ctx->save_for_backward({input, weight, bias});
    auto output = input.mm(weight.t());
    if (bias.defined()) output += bias.unsqueeze(0).expand_as(output);
    return output;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    auto saved = ctx->get_saved_variables();
    auto input = saved[0], weight = saved[1], bias = saved[2];
    auto grad_output = grad_outputs[0];
    auto grad_input = grad_output.mm(weight);
    auto grad_weight = grad_output.t().mm(input);
    auto grad_bias = torch::Tensor();
    if (bias.defined()) grad_bias = grad_output.sum(0);
    return {grad_input, grad_weight, grad_bias};
  }
};

class MulConstant : public Function<MulConstant> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor tensor, double constant) {
    ctx->saved_data["constant"] = constant;
    return tensor * constant;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    return {grad_outputs[0] * ctx->saved_data["constant"], torch::Tensor()};
  }
};

// Keeps a text and a list beside numbers.
struct Padded : Function<Padded> {
  static constexpr bool is_traceable = true;
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x, std::string mode,
                               std::vector<int64_t> sizes) {
    ctx->saved_data["mode"] = mode;
    ctx->saved_data["sizes"] = torch::IntArrayRef(sizes);
    ctx->saved_data["factor"] = 2.0;
    return x * 1;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    const double sum =
        ctx->saved_data["sizes"].toIntVector()[0] + (ctx->saved_data["mode"].toStringRef() == "ten" ? 10 : 0);
    return {grads[0] * ctx->saved_data["factor"] * sum, {}, {}};
  }
};
struct Misread : Function<Misread> {
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x) {
    ctx->saved_data["number"] = int64_t{3};
    ctx->saved_data["on"] = true;
    return x * 1;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    CHECK(ctx->saved_data["number"].toInt() == 3);
    CHECK(ctx->saved_data["on"].toBool());
    return {grads[0] * ctx->saved_data["number"].toStringRef().size()};
  }
};

TEST_CASE("saved_data keeps numbers, texts and lists, also where the backward is recorded") {
  retrograd::CompiledBackward compiled = retrograd::compile_backward();
  const auto gradient = [&](const std::string& mode, int64_t size, bool is_recorded) {
    const torch::Tensor x = torch::ones({2}, torch::requires_grad());
    const torch::Tensor loss = Padded::apply(x, mode, std::vector<int64_t>{size}).sum();
    if (is_recorded)
      compiled.backward({loss});
    else
      loss.backward();
    return x.grad()[0].item<double>();
  };
  for (const bool is_recorded : {false, true}) {
    CHECK(gradient("ten", 1, is_recorded) == 22);
    CHECK(gradient("one", 1, is_recorded) == 2);
    CHECK(gradient("one", 5, is_recorded) == 10);
    CHECK(gradient("ten", 1, is_recorded) == 22);
  }
  const torch::Tensor x = torch::ones({2}, torch::requires_grad());
  CHECK(retrograd::category_of([&] { Misread::apply(x).sum().backward(); }) ==
        retrograd::Category::bad_argument);
  static_assert(!std::is_constructible_v<retrograd::SavedValue, torch::Tensor>);  // save_for_backward()
}

TEST_CASE("backward and grad") {
  const auto x = torch::tensor({{1.0, 2.0}, {3.0, 4.0}}, torch::requires_grad());
  auto y = x + 2;
  auto z = y * y * 3;
  auto out = z.mean();
  out.backward();
  CHECK(x.grad().to_vector() == Values{4.5, 6, 7.5, 9});

  // A penalty on the norm of a gradient.
  const auto w = torch::tensor({2.0}, torch::requires_grad());
  auto output = w * w * w;
  auto gradient = torch::autograd::grad({output}, {w}, /*grad_outputs=*/{torch::ones_like(output)},
                                        /*retain_graph=*/true, /*create_graph=*/true)[0];
  CHECK(gradient.item<double>() == 12);
  gradient.backward(/*gradient=*/{}, /*retain_graph=*/true);
  CHECK(w.grad().item<double>() == 12);
  const variable_list none =
      grad({output}, {torch::ones({1}, torch::requires_grad())}, {}, true, false, /*allow_unused=*/true);
  CHECK_FALSE(none[0].defined());
  torch::autograd::backward({output}, {torch::ones({1})}, /*retain_graph=*/true);
  CHECK(w.grad().item<double>() == 24);
  const torch::autograd::Variable v = x.detach();
  CHECK_FALSE(v.requires_grad());
}

TEST_CASE("a backward into given tensors") {
  const auto x = torch::ones({2}, torch::requires_grad()), y = torch::ones({2}, torch::requires_grad());
  const auto z = x * x, w = z * y;
  w.backward(torch::ones({2}), /*retain_graph=*/true, /*create_graph=*/false, {x});
  CHECK(x.grad().to_vector() == std::vector<double>{2, 2});
  CHECK_FALSE(y.grad().defined());
  torch::autograd::backward({w}, {torch::ones({2})}, {}, false, {y});
  CHECK(y.grad().to_vector() == std::vector<double>{1, 1});
  CHECK_THROWS_AS(w.backward(torch::ones({2}), {}, false, std::vector<torch::Tensor>{}), c10::Error);
  const auto leaf = torch::autograd::make_variable(x, true);
  CHECK(leaf.is_leaf());
  CHECK(leaf.requires_grad());
  CHECK_FALSE(torch::autograd::make_variable(x).requires_grad());
  const std::string name = z.grad_fn()->name();
  CHECK(name + "()" == "mul()");
}

TEST_CASE("functions that a user has written") {
  const auto x = torch::tensor({{1.0, 2.0}}, torch::requires_grad());
  const auto weight = torch::tensor({{3.0, 4.0}, {5.0, 6.0}}, torch::requires_grad());
  const auto bias = torch::tensor({0.5, 1.5}, torch::requires_grad());
  auto y = LinearFunction::apply(x, weight, bias);
  CHECK(y.to_vector() == Values{11.5, 18.5});
  y.sum().backward();
  CHECK(x.grad().to_vector() == Values{8, 10});
  CHECK(weight.grad().to_vector() == Values{1, 2, 1, 2});
  CHECK(bias.grad().to_vector() == Values{1, 1});
  CHECK(LinearFunction::apply(x, weight).to_vector() == Values{11, 17});

  const auto z = torch::ones({2}, torch::requires_grad());
  MulConstant::apply(z, 5.5).sum().backward();
  CHECK(z.grad().to_vector() == Values{5.5, 5.5});
}

TEST_CASE("hooks, anomaly mode, forward mode") {
  const auto x = torch::ones({2}, torch::requires_grad());
  auto handle = x.register_hook([](torch::Tensor grad) { return grad * 2; });
  (x * 3).sum().backward();
  CHECK(x.grad().to_vector() == Values{6, 6});
  {
    DetectAnomalyGuard guard;
    const auto zero = torch::zeros({1}, torch::requires_grad());
    CHECK_THROWS_AS(torch::sqrt(zero * 0).backward(), c10::Error);
  }
  AnomalyMode::set_enabled(true);
  CHECK(AnomalyMode::is_enabled());
  AnomalyMode::set_enabled(false);
  const auto y = x * 2;
  CHECK(y.grad_fn()->name() == "mul");
  CHECK(x.grad_fn() == nullptr);
  forward_ad::DualLevel level;
  const auto dual = level.make_dual(torch::tensor({2.0}), torch::tensor({1.0}));
  CHECK(level.tangent(dual * dual).item<double>() == 4);
}

}  // namespace
}  // namespace libtorch
