// What the tutorial "Autograd in C++ Frontend" shows: histories, hooks, custom functions, higher-order gradients.
#include <torch/torch.h>

#include <iostream>

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

// x weight' + bias, with its derivative written by hand.
class LinearFunction : public Function<LinearFunction> {
 public:
  static Tensor forward(AutogradContext* ctx, Tensor input, Tensor weight, Tensor bias = Tensor()) {
    ctx->save_for_backward({input, weight, bias});
    auto output = input.mm(weight.t());
    if (bias.defined()) output += bias.unsqueeze(0).expand_as(output);
    return output;
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    auto saved = ctx->get_saved_variables();
    auto input = saved[0];
    auto weight = saved[1];
    auto bias = saved[2];
    auto grad_output = grad_outputs[0];
    auto grad_input = grad_output.mm(weight);
    auto grad_weight = grad_output.t().mm(input);
    auto grad_bias = Tensor();
    if (bias.defined()) grad_bias = grad_output.sum(0);
    return {grad_input, grad_weight, grad_bias};
  }
};

class MulConstant : public Function<MulConstant> {
 public:
  static Tensor forward(AutogradContext* ctx, Tensor tensor, double constant) {
    ctx->saved_data["constant"] = constant;
    return tensor * constant;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    return {grad_outputs[0] * ctx->saved_data["constant"].toDouble(), Tensor()};
  }
};

void histories() {
  auto x = torch::ones({2, 2}, torch::requires_grad());
  auto y = x + 2;
  std::cout << "y made by " << y.grad_fn()->name() << std::endl;
  auto z = y * y * 3;
  auto out = z.mean();
  std::cout << "z made by " << z.grad_fn()->name() << ", out by " << out.grad_fn()->name() << std::endl;
  out.backward();
  std::cout << "x.grad\n" << x.grad() << std::endl;

  auto a = torch::full({2, 2}, 1.5);
  a = ((a * 3) / (a - 1));
  std::cout << "requires_grad " << a.requires_grad();
  a.requires_grad_(true);
  std::cout << ", then " << a.requires_grad() << std::endl;
  auto b = (a * a).sum();
  std::cout << "b made by " << b.grad_fn()->name() << std::endl;

  {
    torch::NoGradGuard no_grad;
    std::cout << "without gradients: " << (x * 2).requires_grad() << std::endl;
  }
  std::cout << "detached: " << z.detach().requires_grad() << std::endl;
}

void vector_product() {
  auto x = torch::tensor({1.0, -2.0, 3.0}, torch::dtype(torch::kFloat).requires_grad(true));
  auto y = x * 2;
  int64_t doublings = 1;
  while (y.norm().item<double>() < 1000) {
    y = y * 2;
    ++doublings;
  }
  auto v = torch::tensor({0.1, 1.0, 0.0001}, torch::kFloat);
  y.backward(v);
  std::cout << "doublings " << doublings << "\n" << x.grad() << std::endl;
}

void penalty() {
  auto model = torch::nn::Linear(4, 3);
  {
    torch::NoGradGuard no_grad;
    model->weight.copy_(torch::arange(12, torch::kFloat).view({3, 4}) / 10);
    model->bias.fill_(0.5);
  }
  auto input = torch::linspace(-1, 1, 12).view({3, 4}).requires_grad_(true);
  auto output = model(input);
  auto loss = torch::nn::MSELoss()(output, torch::ones({3, 3}));

  auto grad_output = torch::ones_like(loss);
  auto gradient = torch::autograd::grad({loss}, {input}, {grad_output}, /*retain_graph=*/true,
                                        /*create_graph=*/true)[0];
  auto gradient_penalty = torch::pow((gradient.norm(2, /*dim=*/1) - 1), 2).mean();
  auto combined = loss + gradient_penalty;
  combined.backward();
  std::cout << "penalty " << gradient_penalty.item<float>() << " loss " << combined.item<float>() << "\n"
            << input.grad() << std::endl;
}

void custom_functions() {
  auto x = torch::linspace(-1, 1, 6).view({2, 3}).requires_grad_();
  auto weight = torch::linspace(0, 1, 12).view({4, 3}).requires_grad_();
  auto bias = torch::linspace(1, 2, 4).requires_grad_();
  auto y = LinearFunction::apply(x, weight, bias);
  y.sum().backward();
  std::cout << "x.grad\n"
            << x.grad() << "\nweight.grad\n"
            << weight.grad() << "\nbias.grad\n"
            << bias.grad() << std::endl;

  auto z = MulConstant::apply(torch::linspace(0, 1, 4).requires_grad_(), 5.5);
  std::cout << "z " << z.sum().item<double>() << std::endl;
}

void hooks() {
  auto v = torch::tensor({0., 0., 0.}, torch::requires_grad());
  auto h = v.register_hook([](Tensor grad) { return grad * 2; });
  v.backward(torch::tensor({1., 2., 3.}));
  std::cout << "hooked\n" << v.grad() << std::endl;
  v.remove_hook(h);
  v.backward(torch::tensor({1., 2., 3.}));
  std::cout << "and without\n" << v.grad() << std::endl;
}

int main() {
  histories();
  vector_product();
  penalty();
  custom_functions();
  hooks();
  return 0;
}
