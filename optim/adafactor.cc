// See optim/adafactor.h.
#include "optim/adafactor.h"

#include <cmath>

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/copy.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0::optim {
namespace {

enum : size_t { kRow, kColumn, kVariance };
struct Factor {
  enum : size_t { fresh, rate, keep, least, least_square, least_size, of_size };
};

double epsilon(ScalarType dtype) {
  switch (dtype) {
    case kFloat64: return 0x1p-52;
    case kFloat16: return 0x1p-10;
    case kBFloat16: return 0x1p-7;
    default: return 0x1p-23;
  }
}

double root_of_count(const Tensor& param) {
  return std::sqrt(static_cast<double>(std::max<int64_t>(1, param.numel())));
}

// In 16 bits everything is computed in float32.
Tensor wide(const Tensor& x) { return element_size(x.dtype()) < 4 ? x.to(kFloat32) : x; }

Tensor moved(const Tensor& from, const Tensor& to, const Scalar& share) { return from + (to - from) * share; }

void step_factored(const detail::ParamUpdate& u) {
  const auto& f = u.factors;
  const bool maximizes = u.structure[0];
  const Tensor param = wide(u.param), g = maximizes ? -wide(u.grad) : wide(u.grad),
               square = retrograd::square(g);
  Tensor row, column, variance, v;
  if (u.param.dim() > 1) {
    row = moved(wide(u.states[kRow]), mean(square, {-1}, true), f[Factor::fresh]);
    column = moved(wide(u.states[kColumn]), mean(square, {-2}, true), f[Factor::fresh]);
    v = matmul(row, column) / maximum(mean(row, {-2}, true), f[Factor::least]);
  } else {
    v = variance = moved(wide(u.states[kVariance]), square, f[Factor::fresh]);
  }
  const Tensor direction = g * rsqrt(maximum(v, f[Factor::least_square]));
  const Tensor size = maximum(norm(param) / root_of_count(u.param), f[Factor::least_size]) * f[Factor::rate];
  const Tensor change = direction * (size / maximum(norm(direction) * f[Factor::of_size], 1));
  const Tensor next = param * f[Factor::keep] - change;
  if (row.defined()) u.set(u.states[kRow], row), u.set(u.states[kColumn], column);
  if (variance.defined()) u.set(u.states[kVariance], variance);
  u.set(u.param, next);
  u.done();
}

}  // namespace

Tensor AdafactorRule::make_state(const Options&, size_t state, const Tensor& param, ScalarType dtype) {
  const bool is_matrix = param.dim() > 1;
  if ((state == kVariance) == is_matrix) return {};
  IntArray sizes = param.sizes();
  if (state == kRow) sizes[sizes.size() - 1] = 1;
  if (state == kColumn) sizes[sizes.size() - 2] = 1;
  return zeros(sizes, {dtype, param.device()});
}

void AdafactorRule::factors_of(const Options& o, double step, const Tensor& param, double* f) {
  const double least = o.eps[0] > 0 ? o.eps[0] : epsilon(param.dtype());
  f[Factor::fresh] = std::pow(step, o.beta2_decay);
  f[Factor::rate] = std::min(o.lr, 1 / std::sqrt(step));
  f[Factor::keep] = 1 - o.lr * o.weight_decay;
  f[Factor::least] = least;
  f[Factor::least_square] = least * least;
  f[Factor::least_size] = o.eps[1];
  f[Factor::of_size] = 1 / (root_of_count(param) * o.d);
}

void AdafactorRule::update(std::span<const detail::ParamUpdate> updates, SourceLocation) {
  for (const detail::ParamUpdate& u : updates) step_factored(u);
}

}  // namespace retrograd::optim
