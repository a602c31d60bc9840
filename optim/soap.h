// SOAP (Vyas et al. 2024, arXiv 2409.11321), as its authors' code: Adam in the eigenbasis of Shampoo's preconditioner.
// Each dim i of at most max_precond_dim entries has a matrix L_i ("gg_i") and an orthonormal basis Q_i ("q_i"). R
// rotates a tensor into the bases, R' back; G_i is the gradient G as a matrix of dim i by all others. With t the step:
//   t = 1:  L_i = (1 - shampoo_beta) G_i G_i';  Q_i = eigenvectors of L_i, by falling eigenvalue; nothing else changes
//   t > 1:  g = R(G);  m += (g - m) (1 - beta1);  v = beta2 v + (1 - beta2) g^2
//           u = R'(m / (sqrt(v) + eps));  normalize_grads: u /= sqrt(mean(u^2))
//           p = (p - size u) (1 - lr * weight_decay)
//           L_i += (G_i G_i' - L_i) (1 - shampoo_beta)
//   if precondition_frequency divides t - 1, then also:  columns of Q_i, and v along dim i, by falling Q_i' L_i Q_i;
//           m = R'(m);  Q_i = the Q of the QR factors of L_i Q_i;  m = R(m)
// size = lr, with correct_bias lr sqrt(1 - beta2^(t-1)) / (1 - beta1^(t-1)).
//
// The bases are those of each dim of a parameter, up to four: a fifth and later ones are merged with the fourth. A
// vector has one only with precondition_1d, and without it is updated by Adam, though its first step changes nothing
// either. With merge_dims neighbouring dims are merged as long as their product is at most max_precond_dim: a
// convolution's. Unlike the authors' code, "step" counts the first step. Parameters of 16 bits have float32 state, and
// so do the bases. Bases are found by linalg::eigh and linalg::qr, by one thread. A recorded step has three
// recordings: the first step, a plain one, and one that renews the bases.
#pragma once

#include "optim/rule_info.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

struct SOAPRule : ops::OptimizerRule {
  static constexpr std::string_view name = "SOAP",
                                    states =
                                        "exp_avg, exp_avg_sq, gg_0, gg_1, gg_2, gg_3, q_0, q_1, q_2, q_3";

  struct Options {
    double lr = 3e-3;
    std::array<double, 2> betas = {0.95, 0.95};
    double shampoo_beta = -1;  ///< below 0: betas[1]
    double eps = 1e-8;
    double weight_decay = 0.01;
    int64_t precondition_frequency = 10;
    int64_t max_precond_dim = 10000;  ///< it and the two below: before the first step of a parameter
    bool merge_dims = false;
    bool precondition_1d = false;
    bool normalize_grads = false;
    bool correct_bias = true;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, ops::kNotNegative);
      f("betas", betas, ops::kBelowOne);
      f("shampoo_beta", shampoo_beta, ops::Domain{-ops::kUnlimited, 1, false, true});
      f("eps", eps, ops::kNotNegative);
      f("weight_decay", weight_decay, ops::kNotNegative);
      f("precondition_frequency", precondition_frequency, ops::Domain{1, ops::kUnlimited});
      f("max_precond_dim", max_precond_dim, ops::kNotNegative);
      f("merge_dims", merge_dims);
      f("precondition_1d", precondition_1d);
      f("normalize_grads", normalize_grads);
      f("correct_bias", correct_bias);
    }
  };

  static ScalarType state_dtype(size_t state, const Tensor& param, ScalarType dtype);
  static Tensor make_state(const Options& options, size_t state, const Tensor& param, ScalarType dtype);
  static int64_t variant(const Options& options, double step);
  static constexpr size_t factors = 7;
  static void factors_of(const Options& options, double step, const Tensor& param, double* factors);
  static void update(std::span<const detail::ParamUpdate> updates, SourceLocation where);
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
