// See optim/sgd.h. One loop per case that PyTorch tells apart, each of them plain enough for the compiler to vectorise.
#include "optim/sgd.h"

#include <cmath>

#include <fmt/format.h>

#include "ops/creation.h"
#include "ops/shape_ops.h"

namespace retrograd::optim {

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

SGDAlgorithm::Pass SGDAlgorithm::prepare(const Options& options, State& state, const Tensor& param) {
  ++state.step;
  const bool first = options.momentum != 0 && !state.momentum_buffer.defined();
  if (first) state.momentum_buffer = empty(param.sizes(), {param.dtype()});
  return {param, contiguous(param.grad()), options.momentum != 0 ? state.momentum_buffer : Tensor(), options,
          first};
}

template <class T>
void SGDAlgorithm::Pass::run(int64_t begin, int64_t end) const {
  T* __restrict p = memory<T>(param);
  const T* __restrict g = memory<T>(grad);
  T* __restrict buf = memory<T>(buffer);
  const T sign = options.maximize ? T{-1} : T{1}, decay = static_cast<T>(options.weight_decay),
          lr = static_cast<T>(options.lr);
  const T momentum = static_cast<T>(options.momentum), fresh = static_cast<T>(1 - options.dampening);
  if (!buf) {
    for (int64_t i = begin; i < end; ++i) p[i] -= lr * (sign * g[i] + decay * p[i]);
    return;
  }
  if (first)
    for (int64_t i = begin; i < end; ++i) buf[i] = sign * g[i] + decay * p[i];
  else
    for (int64_t i = begin; i < end; ++i) buf[i] = momentum * buf[i] + fresh * (sign * g[i] + decay * p[i]);
  if (options.nesterov)
    for (int64_t i = begin; i < end; ++i) p[i] -= lr * (sign * g[i] + decay * p[i] + momentum * buf[i]);
  else
    for (int64_t i = begin; i < end; ++i) p[i] -= lr * buf[i];
}

template void SGDAlgorithm::Pass::run<float>(int64_t, int64_t) const;
template void SGDAlgorithm::Pass::run<double>(int64_t, int64_t) const;

}  // namespace retrograd::optim
