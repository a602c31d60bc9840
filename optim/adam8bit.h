// Adam and AdamW with moments of one byte an element (Dettmers et al. 2022, arXiv 2110.02861), as bitsandbytes'
// Adam8bit and AdamW8bit. In blocks of 256 elements a moment is a code times the block's largest absolute value
// ("..._absmax", float32). A step decodes both moments, computes in float32, and codes the new moments; the parameter
// gets what was computed before coding. The formula is that of ops/optimizers/adam.h.
//
// The values of codes are those of bitsandbytes' dynamic map: 0, 1, and in each decade (10^(k-1), 10^k), k = -6 to 0,
// the middles of 2^(k+6) equal parts, with both signs (-1 excepted); twice as many parts for exp_avg_sq, which has no
// sign. So small values have relative precision, large ones absolute. Codes are their places by size; exp_avg adds 127.
// An element gets the nearest value. Coding is arithmetic, no search in a table, so that a recorded step is a few
// elementwise groups.
//
// State is (blocks, 256) codes, padded in the last block, and (blocks, 1) largest values. Parameters of fewer than 4096
// elements have plain moments. float64 parameters compute in float64.
#pragma once

#include "optim/rule_info.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

struct Adam8bitFormula : ops::OptimizerRule {
  static constexpr std::string_view states = "exp_avg, exp_avg_sq, exp_avg_absmax, exp_avg_sq_absmax";
  static ScalarType state_dtype(size_t state, const Tensor& param, ScalarType dtype);
  static Tensor make_state(size_t state, const Tensor& param, ScalarType dtype);
  static constexpr size_t factors = 8;
  static void factors_of(double lr, const std::array<double, 2>& betas, double eps, double decay, double keep,
                         double step, double* factors);
  static void update(std::span<const detail::ParamUpdate> updates, SourceLocation where);
};

template <bool is_decoupled>
struct Adam8bitRule : Adam8bitFormula {
  static constexpr std::string_view name = is_decoupled ? "AdamW8bit" : "Adam8bit";

  struct Options {
    double lr = 1e-3;
    std::array<double, 2> betas = {0.9, 0.999};
    double eps = 1e-8;
    double weight_decay = is_decoupled ? 1e-2 : 0;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, ops::kNotNegative);
      f("betas", betas, ops::kBelowOne);
      f("eps", eps, ops::kNotNegative);
      f("weight_decay", weight_decay, ops::kNotNegative);
    }
  };

  static Tensor make_state(const Options&, size_t state, const Tensor& param, ScalarType dtype) {
    return Adam8bitFormula::make_state(state, param, dtype);
  }
  /// Whether the gradient has a part that decays: 0 times an infinite parameter would be nan.
  static int64_t variant(const Options& o, double) { return !is_decoupled && o.weight_decay != 0; }
  static void factors_of(const Options& o, double step, const Tensor&, double* factors) {
    Adam8bitFormula::factors_of(o.lr, o.betas, o.eps, o.weight_decay,
                                is_decoupled ? 1 - o.lr * o.weight_decay : 1, step, factors);
  }
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
