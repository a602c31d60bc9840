// See optim/sgd.h. The update itself is an op: ops/optimizer_steps.h.
#include "optim/sgd.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/shape_ops.h"

namespace retrograd::inline v0::optim {

void SGDAlgorithm::check(const Options& o, SourceLocation where) {
  const auto refuse = [&](std::string_view what, double value) {
    fail(Category::bad_argument, name, fmt::format("{} must be at least 0, it is {}", what, value), where);
  };
  if (!(o.lr >= 0)) refuse("lr", o.lr);
  if (!(o.momentum >= 0)) refuse("momentum", o.momentum);
  if (!(o.weight_decay >= 0)) refuse("weight_decay", o.weight_decay);
  if (o.nesterov && !(o.momentum > 0 && o.dampening == 0))
    fail(Category::bad_argument, name, "nesterov needs a momentum and no dampening", where);
}

void SGDAlgorithm::make(const Options& options, State& state, const Tensor& param) {
  if (options.momentum != 0) detail::need_state(state.momentum_buffer, param);
}

std::array<Tensor, 3> SGDAlgorithm::operands(const Options& options, const State& state,
                                             const Tensor& param) {
  return {param, options.momentum != 0 ? state.momentum_buffer : Tensor(), contiguous(param.grad())};
}

// A step may fail and be repeated, so the state noted here must give the same numbers for the same step.
void SGDAlgorithm::numbers(const Options& options, State& state, int64_t step, std::span<Scalar> out) {
  const bool first = step <= state.first;  // the buffer becomes the gradient
  if (first) state.first = options.momentum != 0 ? step : step + 1;
  const double now[] = {options.lr, options.weight_decay, options.momentum, first ? 0.0 : options.momentum,
                        first ? 1.0 : 1 - options.dampening};
  std::ranges::copy(now, out.begin());
}

ops::SGDStep::Attrs SGDAlgorithm::attrs(const Options& options, std::span<const Scalar> n) {
  return {n[0], n[1], n[2], n[3], n[4], options.nesterov, options.maximize};
}

}  // namespace retrograd::optim
