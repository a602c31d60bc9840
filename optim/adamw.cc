// See optim/adamw.h. All of an element's update is one turn of one loop, which the compiler vectorises: each number is read and written once.
#include "optim/adamw.h"

#include <cmath>

#include <fmt/format.h>

#include "ops/creation.h"
#include "ops/shape_ops.h"

namespace retrograd::optim {

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

AdamWAlgorithm::Pass AdamWAlgorithm::prepare(const Options& options, State& state, const Tensor& param) {
  ++state.step;
  const auto need = [&](Tensor& t) {
    if (!t.defined()) t = zeros(param.sizes(), {param.dtype()});
  };
  need(state.exp_avg);
  need(state.exp_avg_sq);
  if (options.amsgrad) need(state.max_exp_avg_sq);
  return {param,
          contiguous(param.grad()),
          state.exp_avg,
          state.exp_avg_sq,
          options.amsgrad ? state.max_exp_avg_sq : Tensor(),
          options,
          state.step};
}

template <class T>
void AdamWAlgorithm::Pass::run(int64_t begin, int64_t end) const {
  T* __restrict p = memory<T>(param);
  const T* __restrict grads = memory<T>(grad);
  T* __restrict m = memory<T>(exp_avg);
  T* __restrict v = memory<T>(exp_avg_sq);
  T* __restrict largest = memory<T>(max_exp_avg_sq);
  const auto t = static_cast<double>(step);
  const double correction1 = 1 - std::pow(options.betas[0], t),
               correction2 = 1 - std::pow(options.betas[1], t);
  const T sign = options.maximize ? T{-1} : T{1},
          keep = static_cast<T>(1 - options.lr * options.weight_decay);
  const T fresh1 = static_cast<T>(1 - options.betas[0]);
  const T beta2 = static_cast<T>(options.betas[1]), fresh2 = static_cast<T>(1 - options.betas[1]);
  const T size = static_cast<T>(options.lr / correction1), root2 = static_cast<T>(std::sqrt(correction2));
  const T eps = static_cast<T>(options.eps);
  if (!largest) {
    for (int64_t i = begin; i < end; ++i) {
      const T g = sign * grads[i];
      m[i] += (g - m[i]) * fresh1;
      v[i] = beta2 * v[i] + fresh2 * g * g;
      p[i] = p[i] * keep - size * (m[i] / (std::sqrt(v[i]) / root2 + eps));
    }
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    const T g = sign * grads[i];
    m[i] += (g - m[i]) * fresh1;
    v[i] = beta2 * v[i] + fresh2 * g * g;
    largest[i] = v[i] > largest[i] ? v[i] : largest[i];
    p[i] = p[i] * keep - size * (m[i] / (std::sqrt(largest[i]) / root2 + eps));
  }
}

template void AdamWAlgorithm::Pass::run<float>(int64_t, int64_t) const;
template void AdamWAlgorithm::Pass::run<double>(int64_t, int64_t) const;

}  // namespace retrograd::optim
