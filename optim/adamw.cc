// See optim/adamw.h. The update itself is an op: ops/optimizer_steps.h.
#include "optim/adamw.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/shape_ops.h"

namespace retrograd::inline v0::optim {

void AdamWAlgorithm::check(const Options& o, SourceLocation where) {
  const auto refuse = [&](std::string_view what, std::string_view domain, double value) {
    fail(Category::bad_argument, name, fmt::format("{} must be {}, it is {}", what, domain, value), where);
  };
  if (!(o.lr >= 0)) refuse("lr", "at least 0", o.lr);
  if (!(o.eps >= 0)) refuse("eps", "at least 0", o.eps);
  if (!(o.weight_decay >= 0)) refuse("weight_decay", "at least 0", o.weight_decay);
  for (double beta : o.betas)
    if (!(beta >= 0 && beta < 1)) refuse("a beta", "in [0, 1)", beta);
}

void AdamWAlgorithm::make(const Options& options, State& state, const Tensor& param) {
  detail::need_state(state.exp_avg, param);
  detail::need_state(state.exp_avg_sq, param);
  if (options.amsgrad) detail::need_state(state.max_exp_avg_sq, param);
}

std::array<Tensor, 5> AdamWAlgorithm::operands(const Options& options, const State& state,
                                               const Tensor& param) {
  return {param, state.exp_avg, state.exp_avg_sq, options.amsgrad ? state.max_exp_avg_sq : Tensor(),
          contiguous(param.grad())};
}

void AdamWAlgorithm::numbers(const Options& options, State&, int64_t step, std::span<Scalar> out) {
  const double now[] = {options.lr,  options.betas[0],     options.betas[1],
                        options.eps, options.weight_decay, static_cast<double>(step)};
  std::ranges::copy(now, out.begin());
}

ops::AdamWStep::Attrs AdamWAlgorithm::attrs(const Options& options, std::span<const Scalar> n) {
  return {n[0], n[1], n[2], n[3], n[4], n[5], options.maximize};
}

}  // namespace retrograd::optim
