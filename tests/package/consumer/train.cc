// A program of a user of the package: trains a classifier of two interleaved rings, eagerly and as a compiled step.
#include <retrograd/retrograd.h>

#include <cmath>
#include <cstdio>
#include <string_view>

namespace rg = retrograd;

namespace {

struct Net : rg::nn::Module {
  rg::nn::Linear hidden{this, "hidden", 2, 32};
  rg::nn::Linear out{this, "out", 32, 1};
  rg::Tensor forward(const rg::Tensor& x) const { return out(rg::tanh(hidden(x))); }
};

// The mean loss after some steps.
double trained(bool compiled) {
  rg::manual_seed(1);
  const rg::Tensor angle = rg::rand({256, 1}) * (2 * M_PI);
  const rg::Tensor outer = rg::gt(rg::rand({256, 1}), 0.5).to(rg::kFloat32);
  const rg::Tensor points = rg::cat({rg::cos(angle), rg::sin(angle)}, 1) * (1 + outer);

  Net net;
  rg::optim::AdamW optimizer(net.parameters(), {.lr = 0.02});
  const auto body = [&] {
    const rg::Tensor loss = rg::binary_cross_entropy_with_logits(net.forward(points), outer);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  };
  auto step = rg::compile_step(body);
  rg::Tensor loss;
  for (int i = 0; i < 200; ++i) loss = compiled ? step() : body();
  return loss.item<double>();
}

// Whether an error of the library arrives here as what it is.
bool catches_error() {
  try {
    rg::matmul(rg::ones({2, 3}), rg::ones({2, 3}));
  } catch (const rg::Error& e) {
    return std::string_view(e.what()).find("train.cc") != std::string_view::npos;
  }
  return false;
}

}  // namespace

int main() {
  const double eager = trained(false), compiled = trained(true);
  std::printf("retrograd %s: loss %.4f eagerly, %.4f compiled\n", RETROGRAD_VERSION, eager, compiled);
  return eager < 0.1 && eager == compiled && catches_error() ? 0 : 1;
}
