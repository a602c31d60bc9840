// See ops/dropout.h.
#include "ops/dropout.h"

#include <cmath>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/reduce.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace ops {

void Dropout::infer(const Call& call, TensorImpl* const* outputs) {
  Bernoulli::infer(call, outputs);
  check_probability(name, call.attrs_as<Attrs>().p.number().as_double(), call.where);
}

// The same draw applied to the gradient: the op is diagonal.
Tensor Dropout::transpose(RuleContext& c, int, const Tensor& g) {
  return emit<Dropout>({g.get()}, c.attrs<Attrs>(), c.where());
}

}  // namespace ops

namespace {

void check_dropout(std::string_view op, Operand x, double p) {
  ops::check_probability(op, p, x.where());
  if (!ops::is_drawn_floating(x.tensor().dtype()))
    fail(Category::dtype_mismatch, op, fmt::format("it is not defined for {}", describe(x.tensor())),
         x.where());
}

// The type of a mask for the channels of x.
TensorType channels(std::string_view op, Operand x) {
  TensorType type = x.tensor().impl().type();
  if (type.shape.rank() < 2)
    fail(Category::bad_dim, op, fmt::format("{} has no dim of channels", describe(x.tensor())), x.where());
  for (int i = 2; i < type.shape.rank(); ++i) type.shape[i] = 1;
  return type;
}

// scale * (x where it is kept, else -kAlpha) + shift, written as x * mask + (a constant for each case).
Tensor alpha_dropped(Operand x, const TensorType& type, double p) {
  constexpr double kAlpha = 1.7580993408473766;  // selu's limit at -inf is -kAlpha
  const CallScope scope(x.where());
  if (p == 1) return mul(x, zeros_of(type, x.where()));
  const double scale = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  const Tensor kept = bernoulli(ones_of(type, x.where()), 1 - p);
  return add(mul(x, mul(kept, scale)), mul(sub(kept, 1 - p), kAlpha * scale));
}

Tensor with_batch(Operand x, int64_t rank, std::string_view op, double p, bool training) {
  const int64_t dims = x.tensor().dim();
  if (dims != rank && dims != rank - 1)
    fail(Category::bad_dim, op,
         fmt::format("{} does not have {} or {} dims", describe(x.tensor()), rank - 1, rank), x.where());
  if (dims == rank) return feature_dropout(x, p, training);
  const Tensor one = unsqueeze(x, 0);
  return squeeze(Operand(feature_dropout(Operand(one, x.where()), p, training), x.where()), {0});
}

using Form = Tensor (*)(Operand, double, bool);

// A call that changes nothing does not touch x and its history.
const Tensor& in_place(const Tensor& x, Form form, double p, bool training, std::string_view op,
                       SourceLocation where) {
  const NamedCall call(op, where);
  if (!training || p == 0) {
    form(Operand(x, where), p, training);  // for its checks
    return x;
  }
  return apply_inplace(
      x, [&](const Tensor& old) { return form(Operand(old, where), p, training); }, op, where);
}

}  // namespace

Tensor dropout(Operand x, double p, bool training) {
  const NamedCall call("dropout", x.where());
  check_dropout("dropout", x, p);
  if (!training || p == 0) return x.tensor();
  return ops::emit<ops::Dropout>({x.tensor().get()}, {p, ops::reserve_draw("dropout", x.where())}, x.where());
}

Tensor feature_dropout(Operand x, double p, bool training) {
  const NamedCall call("feature_dropout", x.where());
  check_dropout("feature_dropout", x, p);
  const TensorType type = channels("feature_dropout", x);
  if (!training || p == 0) return x.tensor();
  const Tensor mask = dropout(Operand(ones_of(type, x.where()), x.where()), p);
  return mul(x, Operand(mask, x.where()));
}

Tensor dropout1d(Operand x, double p, bool training) {
  const NamedCall call("dropout1d", x.where());
  return with_batch(x, 3, "dropout1d", p, training);
}

Tensor dropout2d(Operand x, double p, bool training) {
  const NamedCall call("dropout2d", x.where());
  return feature_dropout(x, p, training);
}

Tensor dropout3d(Operand x, double p, bool training) {
  const NamedCall call("dropout3d", x.where());
  return with_batch(x, 5, "dropout3d", p, training);
}

Tensor alpha_dropout(Operand x, double p, bool training) {
  const NamedCall call("alpha_dropout", x.where());
  check_dropout("alpha_dropout", x, p);
  return training && p > 0 ? alpha_dropped(x, x.tensor().impl().type(), p) : x.tensor();
}

Tensor feature_alpha_dropout(Operand x, double p, bool training) {
  const NamedCall call("feature_alpha_dropout", x.where());
  check_dropout("feature_alpha_dropout", x, p);
  const TensorType type = channels("feature_alpha_dropout", x);
  return training && p > 0 ? alpha_dropped(x, type, p) : x.tensor();
}

const Tensor& dropout_(const Tensor& x, double p, bool training, SourceLocation where) {
  return in_place(x, dropout, p, training, "dropout_", where);
}
const Tensor& feature_dropout_(const Tensor& x, double p, bool training, SourceLocation where) {
  return in_place(x, feature_dropout, p, training, "feature_dropout_", where);
}
const Tensor& alpha_dropout_(const Tensor& x, double p, bool training, SourceLocation where) {
  return in_place(x, alpha_dropout, p, training, "alpha_dropout_", where);
}
const Tensor& feature_alpha_dropout_(const Tensor& x, double p, bool training, SourceLocation where) {
  return in_place(x, feature_alpha_dropout, p, training, "feature_alpha_dropout_", where);
}

}  // namespace retrograd
