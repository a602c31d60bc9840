// Type rules and derivatives of ops/norms.h. The public functions are in ops/norm_functions.cc.
#include "ops/norms.h"

#include <algorithm>
#include <span>

#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/batching.h"
#include "ops/family_parts.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/unary.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

// The shape of weight and bias for x.
Shape affine_shape(const Shape& x, const IntList& affine_dim) {
  Shape out;
  for (int64_t d : affine_dim) out.push_back(x[static_cast<int>(d)]);
  return out;
}

// Weight or bias in the shape that broadcasts to x.
Tensor beside(const Tensor& v, const Shape& x, const IntList& affine_dim) {
  Shape shape;
  for (int d = 0; d < x.rank(); ++d) shape.push_back(1);
  for (int64_t d : affine_dim) shape[static_cast<int>(d)] = x[static_cast<int>(d)];
  return reshape_to(v, shape);
}

// The reverse for gradients: v, in the shape of x, summed over all other dims.
Tensor sum_to_affine(const Tensor& v, const IntList& affine_dim, SourceLocation where) {
  IntArray others;
  for (int d = 0; d < v.impl().shape().rank(); ++d)
    if (std::find(affine_dim.begin(), affine_dim.end(), d) == affine_dim.end()) others.push_back(d);
  return others.empty() ? v : sum(Operand(v, where), others);
}

TensorImpl* cell(const Tensor& t) { return t.get(); }

// The gradients: dx, and with `affine` dweight and dbias.
struct Gradients {
  Tensor dx, dweight, dbias;
};
Gradients normalize_backward(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                             const Tensor& weight, const NormalizeAttrs& a, bool affine,
                             SourceLocation where) {
  NormalizeBackward::Attrs attrs{a, affine};
  TensorImpl* operands[] = {cell(g), cell(x), cell(mean), cell(rstd), cell(weight)};
  Tensor results[3];
  Emitter::current().emit(
      {&info<NormalizeBackward>, operands, &attrs, effective_location(where), affine ? 3 : 1}, results);
  return {results[0], results[1], results[2]};
}

Tensor xhat_of(const Tensor& x, NormalizeAttrs attrs, SourceLocation where) {
  TensorImpl* operands[] = {cell(x), nullptr, nullptr};
  Tensor results[3];
  Emitter::current().emit({&info<Normalize>, operands, &attrs, effective_location(where), 3}, results);
  return results[0];
}

// A normalisation in basic ops, for second derivatives; x is in the wider dtype.
class NormPoint {
 public:
  NormPoint(const Tensor& x, const Tensor& kept_mean, const Tensor& kept_rstd, const NormalizeAttrs& attrs)
      : shape_(x.impl().shape()), attrs_(attrs) {
    const Tensor mean = attrs.constant_stats ? spread(detach(kept_mean)) : average(x);
    const Tensor centered = attrs.center ? sub(x, mean) : x;
    const Tensor kept = spread(detach(kept_rstd));
    rstd_ = attrs.constant_stats ? kept : inverse_deviation(centered, kept);
    xhat_ = mul(centered, rstd_);
  }

  /// A value per row in the shape of x, and a value of weight or bias.
  Tensor spread(const Tensor& v) const { return expand_to(v, shape_); }
  Tensor spread_affine(const Tensor& v) const { return spread(beside(v, shape_, attrs_.affine_dim)); }
  Tensor average(const Tensor& v) const { return spread(mean(v, attrs_.dim, true)); }
  /// rstd * (v - E[v] - xhat * E[v * xhat]): the derivative of xhat in the direction v, and its own
  /// transpose.
  Tensor project(const Tensor& v) const {
    const Tensor centered = attrs_.center ? sub(v, average(v)) : v;
    return mul(rstd_, sub(centered, mul(xhat_, average(mul(v, xhat_)))));
  }
  const Tensor& xhat() const { return xhat_; }
  const Tensor& rstd() const { return rstd_; }
  bool center() const { return attrs_.center; }

 private:
  // scale / sqrt(E[(scale * centered)^2] + scale^2 * eps): the same for any constant scale. With the value of the
  // result itself as scale, no square leaves the range.
  Tensor inverse_deviation(const Tensor& centered, const Tensor& scale) const {
    const Tensor scaled_eps = mul(mul(scale, attrs_.eps), scale);
    return mul(scale, rsqrt(add(average(square(mul(centered, scale))), scaled_eps)));
  }

  Shape shape_;
  NormalizeAttrs attrs_;
  Tensor rstd_, xhat_;
};

void check_affine(const Call& call, const TensorImpl* p, const Shape& shape) {
  if (!p) return;
  if (p->dtype() != call.operands[0]->dtype())
    fail_call(call, Category::dtype_mismatch, "input, weight and bias have different dtypes");
  if (!(p->shape() == shape))
    fail_call(call, Category::shape_mismatch, "weight and bias must have the sizes of their dims");
}

}  // namespace

void Normalize::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  const TensorImpl& x = *call.operands[0];
  const Attrs& a = call.attrs_as<Attrs>();
  check_dims(call, a.dim);
  check_dims(call, a.affine_dim);
  const Shape sizes = affine_shape(x.shape(), a.affine_dim);
  check_affine(call, call.operands[1], sizes);
  check_affine(call, call.operands[2], sizes);
  outputs[0]->set_type(x.dtype(), x.device(), x.shape());
  const Shape kept = reduced_shape(x.shape(), a.dim, true);
  for (int i = 1; i < 3; ++i) outputs[i]->set_type(wide_dtype(x.dtype()), x.device(), kept);
}

SaveSet Normalize::saves_for(const Call& call, uint64_t) { return {call.operands[1] ? 3u : 1u, 6}; }

void Normalize::vjp(RuleContext& c) {
  if (!c.grad(0).defined()) return;
  const bool affine = c.has_operand(1) || c.has_operand(2);
  const Tensor weight = c.has_operand(1) ? c.in(1).tensor() : Tensor();
  const Gradients d = normalize_backward(c.grad(0), c.in(0).tensor(), c.out(1), c.out(2), weight,
                                         c.attrs<Attrs>(), affine, c.where());
  if (c.needs(0)) c.give(0, d.dx);
  if (c.has_operand(1) && c.needs(1)) c.give(1, d.dweight);
  if (c.has_operand(2) && c.needs(2)) c.give(2, d.dbias);
}

void Normalize::jvp(TangentContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Tensor x = c.in(0).tensor();
  const auto spread = [&a, shape = c.out_type().shape](const Tensor& v) {
    return expand_to(beside(v, shape, a.affine_dim), shape);
  };
  Tensor t;
  if (c.needs(0)) {
    t = normalize_backward(c.tangent(0), x, c.out(1), c.out(2), {}, a, false, c.where()).dx;
    if (c.has_operand(1)) t = mul(t, spread(c.in(1).tensor()));
  }
  if (c.has_operand(1) && c.needs(1)) t = plus(t, mul(xhat_of(x, a, c.where()), spread(c.tangent(1))));
  if (c.has_operand(2) && c.needs(2)) t = plus(t, spread(c.tangent(2)));
  c.give(0, t);
}

void NormalizeBackward::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  const TensorImpl &g = *call.operands[0], &x = *call.operands[1];
  if (!(g.type() == x.type()))
    fail_call(call, Category::shape_mismatch, "gradient and input have different types");
  const Attrs& a = call.attrs_as<Attrs>();
  check_dims(call, a.dim);
  check_dims(call, a.affine_dim);
  if (call.outputs != (a.affine ? 3 : 1))
    fail_call(call, Category::bad_argument, "it gives three gradients if affine, else one");
  const TensorType stats{wide_dtype(x.dtype()), x.device(), reduced_shape(x.shape(), a.dim, true)};
  if (!(call.operands[2]->type() == stats && call.operands[3]->type() == stats))
    fail_call(call, Category::dtype_mismatch, "mean and rstd have other types than normalize gives");
  outputs[0]->set_type(x.dtype(), x.device(), x.shape());
  const Shape sizes = affine_shape(x.shape(), a.affine_dim);
  check_affine(call, call.operands[4], sizes);
  for (int i = 1; i < call.outputs; ++i) outputs[i]->set_type(x.dtype(), x.device(), sizes);
}

SaveSet NormalizeBackward::saves_for(const Call& call, uint64_t) { return {call.operands[4] ? 31u : 15u, 0}; }

// With v the gradient of dx, a = E[v xhat], b = E[h xhat] and q = E[v h] - E[v] E[h] - a b:
//   by h: project(v);   by x: -project(rstd * (v b + h a)) - rstd^2 * xhat * q.
// The gradients of dweight and dbias, spread over the rows, add xhat * vweight + vbias by g and project(g *
// vweight) by x.
void NormalizeBackward::vjp(RuleContext& c) {
  const Widened wide(c.in(1).tensor());
  const Tensor g = wide(c.in(0).tensor()), x = wide(c.in(1).tensor()),
               weight = c.has_operand(4) ? wide(c.in(4).tensor()) : Tensor();
  const NormPoint point(x, c.in(2).tensor(), c.in(3).tensor(), c.attrs<Attrs>());
  const auto spread = [&](const Tensor& v) { return point.spread_affine(v); };
  const bool affine = c.attrs<Attrs>().affine;
  const Tensor vweight = affine && c.grad(1).defined() ? spread(wide(c.grad(1))) : Tensor();
  const Tensor &xhat = point.xhat(), &rstd = point.rstd();
  Tensor dg, dx, dweight;
  if (c.grad(0).defined()) {
    const Tensor v = wide(c.grad(0)), h = weight.defined() ? mul(g, spread(weight)) : g;
    const Tensor dh = point.project(v);
    dg = weight.defined() ? mul(dh, spread(weight)) : dh;
    if (weight.defined()) dweight = sum_to_affine(mul(dh, g), c.attrs<Attrs>().affine_dim, c.where());
    const Tensor a = point.average(mul(v, xhat)), b = point.average(mul(h, xhat));
    Tensor q = sub(point.average(mul(v, h)), mul(a, b));
    if (point.center()) q = sub(q, mul(point.average(v), point.average(h)));
    const Tensor bend = point.project(mul(rstd, add(mul(v, b), mul(h, a))));
    dx = neg(add(bend, mul(rstd, mul(rstd, mul(xhat, q)))));
  }
  if (vweight.defined()) {
    dg = plus(dg, mul(xhat, vweight));
    dx = plus(dx, point.project(mul(g, vweight)));
  }
  if (affine && c.grad(2).defined()) dg = plus(dg, spread(wide(c.grad(2))));
  if (c.needs(0)) c.give(0, wide.back(dg));
  if (c.needs(1)) c.give(1, wide.back(dx));
  if (c.has_operand(4) && c.needs(4)) c.give(4, wide.back(dweight));
}

// With t the tangent of x, p = project(t) and b as above:
//   project(th) - rstd * (E[xhat t] * project(h) + p b + xhat * E[p h]).
void NormalizeBackward::jvp(TangentContext& c) {
  const Widened wide(c.in(1).tensor());
  const Tensor g = wide(c.in(0).tensor()), x = wide(c.in(1).tensor()),
               weight = c.has_operand(4) ? wide(c.in(4).tensor()) : Tensor();
  const NormPoint point(x, c.in(2).tensor(), c.in(3).tensor(), c.attrs<Attrs>());
  const auto scaled = [&](const Tensor& v, const Tensor& w) {
    return w.defined() ? mul(v, point.spread_affine(w)) : v;
  };
  const bool affine = c.attrs<Attrs>().affine;
  const Tensor& xhat = point.xhat();
  const Tensor tg = c.needs(0) ? wide(c.tangent(0)) : Tensor();
  Tensor th = tg.defined() ? scaled(tg, weight) : Tensor();
  if (c.has_operand(4) && c.needs(4)) th = plus(th, scaled(g, wide(c.tangent(4))));
  Tensor tdx = th.defined() ? point.project(th) : Tensor(), tweight = tg.defined() ? mul(tg, xhat) : Tensor();
  if (c.needs(1)) {
    const Tensor t = wide(c.tangent(1)), h = scaled(g, weight), p = point.project(t);
    const Tensor turn = mul(point.average(mul(xhat, t)), point.project(h));
    const Tensor bend = add(mul(p, point.average(mul(h, xhat))), mul(xhat, point.average(mul(p, h))));
    tdx = plus(tdx, neg(mul(point.rstd(), add(turn, bend))));
    tweight = plus(tweight, mul(g, p));
  }
  c.give(0, wide.back(tdx));
  if (!affine) return;
  const IntList& affine_dim = c.attrs<Attrs>().affine_dim;
  if (tweight.defined()) c.give(1, wide.back(sum_to_affine(tweight, affine_dim, c.where())));
  if (tg.defined()) c.give(2, wide.back(sum_to_affine(tg, affine_dim, c.where())));
}

// ---- batches of vmap ------------------------------------------------------------------------------------------------

namespace {

// Weight and bias of each sample: the batch dim is one of theirs.
template <class Attrs>
Attrs with_batch_dim(const BatchContext& c, bool is_affine) {
  Attrs attrs = c.attrs<Attrs>();
  for (IntList* dims : {&attrs.dim, &attrs.affine_dim})
    for (int64_t& d : std::span(dims->values, static_cast<size_t>(dims->count))) ++d;
  if (!is_affine) return attrs;
  IntList affine{0};
  for (int64_t d : attrs.affine_dim) affine.push_back(d);
  attrs.affine_dim = affine;
  return attrs;
}

}  // namespace

// One weight for all samples has the dims of one sample, which are the next ones of the batch.
void Normalize::batch(BatchContext& c) {
  const bool has_own = c.is_batched(1) || c.is_batched(2);
  Attrs attrs = with_batch_dim<Attrs>(c, has_own);
  Tensors operands = all_operands(c);
  for (int i : {1, 2})
    if (!has_own && c.has_operand(i)) operands[static_cast<size_t>(i)] = c.value(i);
  c.give(c.run(operands, &attrs));
}

void NormalizeBackward::batch(BatchContext& c) {
  Attrs attrs = with_batch_dim<Attrs>(c, c.attrs<Attrs>().affine || c.has_operand(4));
  c.give(c.run(all_operands(c), &attrs));
}

}  // namespace ops
}  // namespace retrograd
