// Curves fitted to points: by L-BFGS with a line search, by an optimizer with groups and schedules of their own, and by
// linear least squares.
#include <torch/torch.h>

#include <cstdio>
#include <functional>
#include <memory>

#include "weights.h"

namespace optim = torch::optim;

// a exp(-b x) sin(c x + d), a and b positive.
struct Damped : torch::nn::Module {
  Damped() {
    log_scale = register_parameter("log_scale", torch::zeros({2}));
    wave = register_parameter("wave", torch::tensor({1.8f, 0.1f}));
    shift = register_buffer("shift", torch::zeros(1));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto s = log_scale.exp();
    return s[0] * torch::exp(-s[1] * x) * torch::sin(wave[0] * x + wave[1]) + shift;
  }
  torch::Tensor log_scale, wave, shift;
};

// A rate that falls linearly to zero.
class LinearDecay : public optim::LRScheduler {
 public:
  LinearDecay(optim::Optimizer& optimizer, unsigned steps) : LRScheduler(optimizer), steps_(steps) {}

 private:
  std::vector<double> get_lrs() override {
    auto lrs = get_current_lrs();
    if (step_count_ > 0 && step_count_ < steps_)
      for (double& lr : lrs) lr *= double(steps_ - step_count_) / double(steps_ - step_count_ + 1);
    return lrs;
  }
  const unsigned steps_;
};

int main() {
  const auto x = torch::linspace(0, 4, 40, torch::kFloat32);
  const auto y = 1.5 * torch::exp(-0.4 * x) * torch::sin(2.2 * x + 0.3) + 0.02 * waves({40}, 3.1);

  auto curve = std::make_shared<Damped>();
  optim::LBFGS lbfgs(
      curve->parameters(),
      optim::LBFGSOptions(1).max_iter(8).max_eval(20).tolerance_grad(1e-9).history_size(6).line_search_fn(
          "strong_wolfe"));
  int evaluations = 0;
  std::function<torch::Tensor()> closure = [&] {
    ++evaluations;
    lbfgs.zero_grad();
    auto loss = torch::mse_loss(curve->forward(x), y, at::Reduction::Sum);
    loss.backward();
    return loss;
  };
  for (int round = 1; round <= 3; ++round) {
    const auto loss = lbfgs.step(closure);
    std::printf("L-BFGS %d loss %.5f\n", round, loss.item<float>());
  }
  TORCH_CHECK(evaluations > 3);
  const auto scale = curve->log_scale.detach().exp();
  std::printf("a %.4f b %.4f c %.4f d %.4f\n", scale[0].item<float>(), scale[1].item<float>(),
              curve->wave[0].item<float>(), curve->wave[1].item<float>());

  // The same from the start, each parameter with a rate of its own.
  auto other = std::make_shared<Damped>();
  std::vector<optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{other->log_scale});
  groups.emplace_back(std::vector<torch::Tensor>{other->wave},
                      std::make_unique<optim::AdamOptions>(optim::AdamOptions(0.02).eps(1e-7)));
  optim::Adam adam(groups, optim::AdamOptions(0.1));
  LinearDecay decay(adam, 60);
  for (int step = 1; step <= 60; ++step) {
    adam.zero_grad();
    const auto loss = torch::nn::functional::smooth_l1_loss(
        other->forward(x), y, torch::nn::functional::SmoothL1LossFuncOptions().beta(0.5));
    loss.backward();
    adam.step();
    decay.step();
    if (step % 15 == 0)
      std::printf("step %d loss %.5f rates %.4f %.4f\n", step, loss.item<float>(),
                  adam.param_groups()[0].options().get_lr(),
                  static_cast<optim::AdamOptions&>(adam.param_groups()[1].options()).lr());
  }
  std::printf("%zu tensors have a state\n", adam.state().size());
  for (const auto& [key, state] : adam.state()) {
    auto& of_adam = static_cast<optim::AdamParamState&>(*state);
    TORCH_CHECK(of_adam.step() == 60 && of_adam.exp_avg().numel() == 2);
  }
  const auto& first =
      static_cast<optim::AdamParamState&>(*adam.state().at(other->wave.unsafeGetTensorImpl()));
  std::printf("average %.6f %.6f\n", first.exp_avg()[0].item<float>(), first.exp_avg_sq()[1].item<float>());

  // A polynomial, by the normal equations, by QR, and by least squares.
  const auto powers = torch::vander(x.to(torch::kDouble) / 4, 5, /*increasing=*/true);
  const auto wanted = y.to(torch::kDouble).unsqueeze(1);
  const auto [q, r] = torch::linalg_qr(powers);
  const auto by_qr = torch::linalg_solve_triangular(r, q.t().mm(wanted), /*upper=*/true);
  const auto normal = torch::linalg_solve(powers.t().mm(powers), powers.t().mm(wanted));
  const auto [solution, residuals, rank, singular] = torch::linalg_lstsq(powers, wanted);
  const auto [old_solution, copy] = torch::triangular_solve(q.t().mm(wanted), r, true);
  std::printf("differences %.6f %.6f %.6f rank %ld\n", (by_qr - solution).abs().max().item<double>(),
              (normal - solution).abs().max().item<double>(),
              (old_solution - solution).abs().max().item<double>(), long(rank.item<int64_t>()));
  std::printf("error %.5f, largest coefficient %.4f\n",
              torch::nn::functional::l1_loss(powers.mm(solution), wanted).item<double>(),
              solution.abs().max().item<double>());
}
