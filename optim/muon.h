// Muon (Jordan et al. 2024), as torch.optim.Muon, for parameters of two or more dims: their momentum, as a matrix of the
// first dim by all others, is replaced by the orthogonal matrix that is nearest to it. With a, b, c = ns_coefficients:
//   buffer += (g - buffer) (1 - momentum);  u = nesterov: g + (buffer - g) momentum; else buffer
//   X = u / max(|u|, eps);  ns_steps times: A = X X^T;  X = a X + (b A + c A A) X         (Newton-Schulz)
//   p = p (1 - lr * weight_decay) - lr * ratio * X
// ratio by adjust_lr_fn, for A rows and B columns: original sqrt(max(1, A / B)), match_rms_adamw 0.2 sqrt(max(A, B)),
// spectral_unclamped sqrt(A / B).
//
// All other parameters, and those of groups with use_muon = false (embeddings and the last layer, by its authors), are
// updated by AdamW with the options adamw_*. Matrices of one shape are multiplied together: in bfloat16, as PyTorch does,
// where that is faster, else in float32. Long ones are multiplied once in three iterations: what the iterations make of X
// is a polynomial of A, and so is the next A.
#pragma once

#include "optim/rule_info.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

enum class MuonAdjustLR : uint8_t { original, match_rms_adamw, spectral_unclamped };

struct MuonRule : ops::OptimizerRule {
  static constexpr std::string_view name = "Muon", states = "momentum_buffer, exp_avg, exp_avg_sq";

  struct Options {
    double lr = 1e-3;
    double weight_decay = 0.1;
    double momentum = 0.95;
    bool nesterov = true;
    std::array<double, 3> ns_coefficients = {3.4445, -4.7750, 2.0315};
    double eps = 1e-7;
    int64_t ns_steps = 5;
    MuonAdjustLR adjust_lr_fn = MuonAdjustLR::original;
    bool use_muon = true;
    double adamw_lr = 3e-4;
    std::array<double, 2> adamw_betas = {0.9, 0.999};
    double adamw_eps = 1e-8;
    double adamw_weight_decay = 1e-2;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, ops::kNotNegative);
      f("weight_decay", weight_decay, ops::kNotNegative);
      f("momentum", momentum, ops::kNotNegative);
      f("nesterov", nesterov);
      f("ns_coefficients", ns_coefficients, ops::Domain{-ops::kUnlimited, ops::kUnlimited});
      f("eps", eps, ops::kNotNegative);
      f("ns_steps", ns_steps, ops::Domain{0, 99});
      f("adjust_lr_fn", adjust_lr_fn);
      f("use_muon", use_muon);
      f("adamw_lr", adamw_lr, ops::kNotNegative);
      f("adamw_betas", adamw_betas, ops::kBelowOne);
      f("adamw_eps", adamw_eps, ops::kNotNegative);
      f("adamw_weight_decay", adamw_weight_decay, ops::kNotNegative);
    }
  };

  static Tensor make_state(const Options& options, size_t state, const Tensor& param, ScalarType dtype);
  static constexpr size_t factors = 10;
  static void factors_of(const Options& options, double step, const Tensor& param, double* factors);
  static void update(std::span<const detail::ParamUpdate> updates, SourceLocation where);
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
