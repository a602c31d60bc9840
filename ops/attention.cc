// Type rules, derivatives and the public function of ops/attention.h.
//
// Formulas, with S = scale * q k', P = softmax(S), dP = g v', D the row sums of P * dP, dS = P * (dP - D):
//   dq = scale * dS k, dk = scale * dS' q, dv = P' g.
// J(W) = P * (W - rowsum(P * W)) is the Jacobian of softmax, which is symmetric; so dS = J(dP), and the
// tangent of P is J(tangent of S).
#include "ops/attention.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/dropout.h"
#include "ops/family_parts.h"
#include "ops/matmul.h"
#include "ops/rearrange.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/softmax.h"
#include "ops/ternary.h"

namespace retrograd::inline v0 {
namespace {
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
}

namespace ops {
namespace {

// (..., L, last) for query (..., L, E).
Shape with_last(const Shape& shape, Dim last) {
  Shape out = shape;
  out[shape.rank() - 1] = last;
  return out;
}

// Converts the order of the dims of operands, (..., H, L, V), to that of results, (..., L, H, V), or back.
Shape in_order(const AttentionAttrs& attrs, Shape shape) {
  if (attrs.interleaved) std::swap(shape[shape.rank() - 3], shape[shape.rank() - 2]);
  return shape;
}
Tensor in_order(const AttentionAttrs& attrs, const Tensor& x) {
  return attrs.interleaved && x.defined() ? transpose(x, -3, -2) : x;
}

// The dtype of log sum exp, and the dtype that 16-bit formats are computed in.
// Attention written with basic ops, for derivatives. All its calls report the place of the differentiated call. Its
// operands are first made wide(): a derivative is rounded to 16 bits once.
class Formula {
 public:
  Formula(SourceLocation where, const AttentionAttrs& attrs) : scope_(where), attrs_(attrs) {}

  static Tensor wide(const Tensor& x) { return to(x, wide_dtype(x.dtype())); }
  Tensor scaled(const Tensor& x) const { return mul(x, attrs_.scale); }
  Tensor scores(const Tensor& q, const Tensor& k) const { return scaled(matmul(q, turned(k))); }
  Tensor weights(const Tensor& q, const Tensor& k) const {
    Tensor s = scores(q, k);
    if (attrs_.is_causal) {
      const Shape& shape = s.impl().shape();
      s = where(tril(ones({shape[shape.rank() - 2], shape.back()}, {kBool, s.device()})), s, kMinusInfinity);
    }
    return softmax(s, -1);
  }

  static Tensor turned(const Tensor& x) { return transpose(x, -2, -1); }
  static Tensor row_sum(const Tensor& a, const Tensor& b) { return sum(a * b, -1, true); }
  static Tensor jacobian(const Tensor& p, const Tensor& w) { return p * (w - row_sum(p, w)); }

 private:
  CallScope scope_;
  const AttentionAttrs& attrs_;
};

void check_batch(const Call& call, size_t other) {
  const TensorImpl &q = *call.operands[0], &x = *call.operands[other];
  if (x.dtype() != q.dtype()) fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
  if (x.rank() != q.rank()) fail_call(call, Category::bad_dim, "operands have different numbers of dims");
  for (int i = 0; i < q.rank() - 2; ++i)
    if (!(x.shape()[i] == q.shape()[i])) fail_call(call, Category::shape_mismatch, "batch sizes differ");
}

void check_inputs(const Call& call) {
  const TensorImpl &q = *call.operands[0], &k = *call.operands[1], &v = *call.operands[2];
  if (!is_floating(q.dtype()) || is_float8(q.dtype()))
    fail_call(call, Category::dtype_mismatch, "it needs a floating dtype of 16 bits at least");
  if (q.rank() < (call.attrs_as<AttentionAttrs>().interleaved ? 4 : 3))
    fail_call(call, Category::bad_dim, "operands must be batches of matrices");
  for (size_t i : {1, 2}) check_batch(call, i);
  const int rank = q.rank();
  if (!(q.shape().back() == k.shape().back()))
    fail_call(call, Category::shape_mismatch, "query and key have different widths");
  if (!(k.shape()[rank - 2] == v.shape()[rank - 2]))
    fail_call(call, Category::shape_mismatch, "there are not as many keys as values");
}

void check_backward(const Call& call) {
  check_inputs(call);
  const TensorImpl& q = *call.operands[0];
  const Shape result =
      in_order(call.attrs_as<AttentionAttrs>(), with_last(q.shape(), call.operands[2]->shape().back()));
  for (size_t i : {3, 5})
    if (!(call.operands[i]->shape() == result))
      fail_call(call, Category::shape_mismatch, "the result or its gradient has another shape");
  if (!(call.operands[4]->shape() == without_last(q.shape())))
    fail_call(call, Category::shape_mismatch, "log sum exp has another shape");
  for (size_t i : {3, 4, 5})
    if (call.operands[i]->dtype() != (i == 4 ? wide_dtype(q.dtype()) : q.dtype()))
      fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
}

}  // namespace

void Attention::infer(const Call& call, TensorImpl* const* outputs) {
  check_inputs(call);
  const TensorImpl& q = *call.operands[0];
  outputs[0]->set_type(
      q.dtype(), q.device(),
      in_order(call.attrs_as<Attrs>(), with_last(q.shape(), call.operands[2]->shape().back())));
  outputs[1]->set_type(wide_dtype(q.dtype()), q.device(), without_last(q.shape()));
}

void Attention::vjp(RuleContext& c) {
  const Tensor q = c.in(0).tensor(), k = c.in(1).tensor(), v = c.in(2).tensor(), out = c.out(0),
               lse = c.out(1);
  Attrs attrs = c.attrs<Attrs>();
  if (c.grad(0).defined()) {
    TensorImpl* const operands[] = {q.get(), k.get(), v.get(), out.get(), lse.get(), c.grad(0).get()};
    Tensor grads[3];
    Emitter::current().emit({&info<AttentionBackward>, operands, &attrs, c.where(), 3}, grads);
    for (int i = 0; i < 3; ++i)
      if (c.needs(i)) c.give(i, in_order(attrs, grads[i]));
  }
  if (!c.grad(1).defined()) return;
  // The derivative of log sum exp with respect to the scores is P.
  const Formula f(c.where(), attrs);
  const Shape column = with_last(c.type(0).shape, 1);
  const Tensor wide_q = f.wide(q), wide_k = f.wide(k);
  const Tensor gs = f.scaled(f.weights(wide_q, wide_k) * reshape_to(c.grad(1), column));
  if (c.needs(0)) c.give(0, plus(c.given()[0], to(matmul(gs, wide_k), q.dtype())));
  if (c.needs(1)) c.give(1, plus(c.given()[1], to(matmul(f.turned(gs), wide_q), q.dtype())));
}

void Attention::jvp(TangentContext& c) {
  const Formula f(c.where(), c.attrs<Attrs>());
  const Tensor q = f.wide(c.in(0).tensor()), k = f.wide(c.in(1).tensor()), v = f.wide(c.in(2).tensor());
  const Tensor p = f.weights(q, k);
  Tensor ts, out;
  if (c.needs(0)) ts = f.scores(f.wide(c.tangent(0)), k);
  if (c.needs(1)) ts = plus(ts, f.scores(q, f.wide(c.tangent(1))));
  if (ts.defined()) {
    out = matmul(f.jacobian(p, ts), v);
    c.give(1, reshape_to(f.row_sum(p, ts), c.out_type(1).shape));
  }
  if (c.needs(2)) out = plus(out, matmul(p, f.wide(c.tangent(2))));
  c.give(0, in_order(c.attrs<Attrs>(), to(out, c.out_type(0).dtype)));
}

void AttentionBackward::infer(const Call& call, TensorImpl* const* outputs) {
  check_backward(call);
  for (int i = 0; i < 3; ++i) {
    const TensorImpl& x = *call.operands[static_cast<size_t>(i)];
    outputs[i]->set_type(x.dtype(), x.device(), in_order(call.attrs_as<Attrs>(), x.shape()));
  }
}

void AttentionBackwardJoined::infer(const Call& call, TensorImpl* const* outputs) {
  check_backward(call);
  const TensorImpl& q = *call.operands[0];
  if (!call.attrs_as<Attrs>().interleaved)
    fail_call(call, Category::bad_argument, "gradients can only be joined when they are interleaved");
  for (size_t i : {1, 2})
    if (!(call.operands[i]->shape() == q.shape()))
      fail_call(call, Category::shape_mismatch, "query, key and value have different shapes");
  const Shape each = in_order(call.attrs_as<Attrs>(), q.shape());
  const int heads = each.rank() - 2;
  Shape all(std::span(each.begin(), static_cast<size_t>(heads)));
  all.push_back(3);
  for (int d = heads; d < each.rank(); ++d) all.push_back(each[d]);
  outputs[0]->set_type(q.dtype(), q.device(), all);
}

// With cotangents a, b, e of dq, dk, dv and M = scale * (a k' + q b'), the inner product of cotangents and gradients is
//   <J(dP), M> + <P, g e'>;  hence  W = dP * (M - m) - D * M + g e'  is its derivative with respect to P,
//   where m is the row sum of P * M.
// Result and log sum exp are functions of query, key and value: their contribution is contained in W, so they get no
// gradient of their own.
void AttentionBackward::vjp(RuleContext& c) {
  const auto& attrs = c.attrs<Attrs>();
  const Formula f(c.where(), attrs);
  const auto wide = [&](const Tensor& x) { return f.wide(in_order(attrs, x)); };
  const Tensor q = f.wide(c.in(0).tensor()), k = f.wide(c.in(1).tensor()), v = f.wide(c.in(2).tensor()),
               g = wide(c.in(5).tensor());
  const Tensor a = wide(c.grad_or_zeros(0)), b = wide(c.grad_or_zeros(1)), e = wide(c.grad_or_zeros(2));
  const auto give = [&](int i, const Tensor& x) { c.give(i, to(x, c.type(i).dtype)); };
  const Tensor p = f.weights(q, k), dp = matmul(g, f.turned(v)), ds = f.jacobian(p, dp);
  const Tensor m = f.scores(a, k) + f.scores(q, b);
  const Tensor through_dp = f.jacobian(p, m);
  const Tensor w = dp * (m - f.row_sum(p, m)) - f.row_sum(p, dp) * m + matmul(g, f.turned(e));
  const Tensor through_s = f.scaled(f.jacobian(p, w));
  if (c.needs(0)) give(0, matmul(through_s, k) + f.scaled(matmul(ds, b)));
  if (c.needs(1)) give(1, matmul(f.turned(through_s), q) + f.scaled(matmul(f.turned(ds), a)));
  if (c.needs(2)) give(2, matmul(f.turned(through_dp), g));
  if (c.needs(5)) give(5, in_order(attrs, matmul(through_dp, v) + matmul(p, e)));
}

void AttentionBackward::jvp(TangentContext& c) {
  const auto& attrs = c.attrs<Attrs>();
  const Formula f(c.where(), attrs);
  const Tensor q = f.wide(c.in(0).tensor()), k = f.wide(c.in(1).tensor()), v = f.wide(c.in(2).tensor()),
               g = f.wide(in_order(attrs, c.in(5).tensor()));
  const Tensor tq = f.wide(c.tangent_or_zeros(0)), tk = f.wide(c.tangent_or_zeros(1)),
               tv = f.wide(c.tangent_or_zeros(2)), tg = f.wide(in_order(attrs, c.tangent_or_zeros(5)));
  const auto give = [&](int i, const Tensor& x) { c.give(i, in_order(attrs, to(x, c.out_type(i).dtype))); };
  const Tensor p = f.weights(q, k), dp = matmul(g, f.turned(v)), ds = f.jacobian(p, dp);
  const Tensor tp = f.jacobian(p, f.scores(tq, k) + f.scores(q, tk));
  const Tensor tdp = matmul(tg, f.turned(v)) + matmul(g, f.turned(tv));
  const Tensor tds = tp * (dp - f.row_sum(p, dp)) + p * (tdp - f.row_sum(tp, dp) - f.row_sum(p, tdp));
  give(0, f.scaled(matmul(tds, k) + matmul(ds, tk)));
  give(1, f.scaled(matmul(f.turned(tds), q) + matmul(f.turned(ds), tq)));
  give(2, matmul(f.turned(tp), g) + matmul(f.turned(p), tg));
}

}  // namespace ops

namespace {

constexpr std::string_view kName = "scaled_dot_product_attention";

void check(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool is_causal) {
  if (mask.defined() && is_causal)
    fail(Category::bad_argument, kName, "attn_mask and is_causal exclude each other");
  for (const Tensor* x : {&q, &k, &v})
    if (x->dim() < 2) fail(Category::bad_dim, kName, fmt::format("{} needs at least two dims", describe(*x)));
  if (!is_floating(q.dtype()) || is_float8(q.dtype()) || k.dtype() != q.dtype() || v.dtype() != q.dtype())
    fail(Category::dtype_mismatch, kName,
         fmt::format("{}, {}, {} are not of one floating dtype", describe(q), describe(k), describe(v)));
  if (!(q.impl().shape().back() == k.impl().shape().back()))
    fail(Category::shape_mismatch, kName,
         fmt::format("{} and {} have different widths", describe(q), describe(k)));
  const Shape &ks = k.impl().shape(), &vs = v.impl().shape();
  if (!(ks[ks.rank() - 2] == vs[vs.rank() - 2]))
    fail(Category::shape_mismatch, kName,
         fmt::format("{} and {}: not as many keys as values", describe(k), describe(v)));
  if (mask.defined() && mask.dtype() != kBool && mask.dtype() != q.dtype())
    fail(Category::dtype_mismatch, kName,
         fmt::format("the mask {} is neither bool nor of the query's dtype", describe(mask)));
}

Shape batch_of(const Tensor& x) {
  const Shape& shape = x.impl().shape();
  return Shape(std::span(shape.begin(), static_cast<size_t>(shape.rank() - 2)));
}

// Queries, keys or values with `batch` before their last two dims, or one dim of size 1 when there is no batch.
Tensor expanded(const Tensor& x, const Shape& batch) {
  Shape shape = batch;
  if (batch.empty()) shape.push_back(1);
  const Shape& from = x.impl().shape();
  for (int i = from.rank() - 2; i < from.rank(); ++i) shape.push_back(from[i]);
  return expand_to(x, shape);
}

Tensor fused(const Tensor& q, const Tensor& k, const Tensor& v, ops::AttentionAttrs attrs) {
  const Shape batch = broadcast_shapes(broadcast_shapes(batch_of(q), batch_of(k), kName), batch_of(v), kName);
  const Tensor in[] = {expanded(q, batch), expanded(k, batch), expanded(v, batch)};
  TensorImpl* const operands[] = {in[0].get(), in[1].get(), in[2].get()};
  attrs.interleaved = batch.rank() > 1 && q.device() == Device{};
  Tensor results[2];
  Emitter::current().emit({&ops::info<ops::Attention>, operands, &attrs, effective_location({}), 2}, results);
  const Shape& full = results[0].impl().shape();
  Tensor out = batch.empty() ? reshape_to(results[0], {full[1], full[2]}) : ops::in_order(attrs, results[0]);
  out.impl().forget_base();  // nobody else can see it
  return out;
}

// The mask that is_causal stands for; without it none.
Tensor mask_of(const Tensor& q, const Tensor& k, bool is_causal) {
  if (!is_causal) return {};
  const Shape &rows = q.impl().shape(), &columns = k.impl().shape();
  return tril(ones({rows[rows.rank() - 2], columns[columns.rank() - 2]}, {kBool, q.device()}));
}

// A row with all keys masked gives zeros, and no gradient: its scores are replaced by 0, and its weights too (PyTorch:
// _safe_softmax).
Tensor masked_softmax(const Tensor& products, const Tensor& mask) {
  const Tensor scores = mask.dtype() == kBool ? where(mask, products, kMinusInfinity) : products + mask;
  const Tensor empty_rows = all(eq(scores, kMinusInfinity), -1, true);
  return where(empty_rows, 0.0, softmax(where(empty_rows, 0.0, scores), -1));
}

}  // namespace

AttentionOutput ops::attention_and_weights(const Tensor& q, const Tensor& k, const Tensor& v,
                                           const Tensor& mask, double dropout_p, Scalar scale) {
  const Tensor products = mul(matmul(q, transpose(k, -2, -1)), scale);
  Tensor weights = mask.defined() ? masked_softmax(products, mask) : softmax(products, -1);
  if (dropout_p != 0) weights = dropout(weights, dropout_p);
  return {matmul(weights, v), weights};
}

Tensor scaled_dot_product_attention(Operand query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<Scalar> scale) {
  const NamedCall call("scaled_dot_product_attention", query.where());
  const ops::AutocastFunction cast(CastPolicy::lower_precision, {&query.tensor(), &key, &value, &attn_mask});
  const Tensor q = cast(query), k = cast(key), v = cast(value), mask = cast(attn_mask);
  check(q, k, v, mask, is_causal);
  const double width = static_cast<double>(q.impl().shape().back().value());
  const Scalar factor = scale ? *scale : Scalar(1 / std::sqrt(width));
  if (mask.defined() || dropout_p != 0)
    return ops::attention_and_weights(q, k, v, mask.defined() ? mask : mask_of(q, k, is_causal), dropout_p,
                                      factor)
        .output;
  return fused(q, k, v, {is_causal, factor});
}

}  // namespace retrograd
