// Losses. Each gives one number per element or sample. The reduction "none" keeps these, "sum" adds them up and "mean"
// averages them.
//
// Losses over classes have class indices (int64) or class probabilities as targets; the classes are dim 1 of [N, C,
// ...], or dim 0 of [C].
//   nll(x, target)            -x[target], linear, with nll_backward as its transpose; 0 where the target is
//                             ignored
//   cross_entropy(x, target)  (log_sum + (max - x[target]), (max, log_sum)) with log_sum = log(sum(exp(x - max))): one
//                             node that reads the logits once in each direction. In addition to them it keeps two
//                             numbers per sample for the backward op, which counts as a function of x alone. Their sum
//                             would not be enough: for large logits it rounds away the digits that the gradient needs.
// Losses between tensors are made of the elementwise ops, including those below.
#pragma once

#include "ops/elementwise.h"
#ifndef RG_FORMULAS
#include "ops/loss_options.h"
#endif

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct ClassLossAttrs {
  int64_t dim = 0;  // of the classes
  int64_t ignore_index = -100;
  void visit(AttrVisitor& v) {
    v.field("dim", dim);
    v.field("ignore_index", ignore_index);
  }
};

struct ClassLoss {
  using Attrs = ClassLossAttrs;
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static void infer(const Call& call, TensorImpl* const* outputs);  // the target's shape
  static constexpr auto batch = batch_dims;
};

/// Operands (x, target).
struct Nll : ClassLoss {
  static constexpr std::string_view name = "nll", doc = "-x[target] along a dim, 0 for ignored targets";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view operands = "x, target";
  static constexpr std::string_view example = "f32[2,5], i64[2] {dim=1, ignore_index=-100} : f32[2]";
  static SaveSet saves_for(const Call&, uint64_t) { return {2, 0}; }
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
};

/// Operands (g, target).
struct NllBackward : ClassLoss {
  struct Attrs : ClassLossAttrs {
    Dim classes = 0;
    void visit(AttrVisitor& v) {
      ClassLossAttrs::visit(v);
      v.field("classes", classes);
    }
  };
  static constexpr std::string_view name = "nll_backward",
                                    doc = "-g at the target along a new dim, 0 elsewhere";
  static constexpr std::string_view operands = "g, target";
  static constexpr std::string_view example =
      "f32[2], i64[2] {dim=1, ignore_index=-100, classes=5} : f32[2,5]";
  static SaveSet saves_for(const Call&, uint64_t) { return {2, 0}; }
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
};

/// Operands (x, target), results (loss, stats). Row 0 of stats has the largest logit of each sample, row 1
/// log(sum(exp(x - max))).
struct CrossEntropy : ClassLoss {
  static constexpr std::string_view name = "cross_entropy",
                                    doc = "log(sum(exp(x))) - x[target] along a dim, 0 for ignored targets";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view operands = "x, target";
  static constexpr std::string_view example =
      "f32[2,5], i64[2] {dim=1, ignore_index=-100} : f32[2], f32[2,2]";
  static constexpr int8_t outputs = 2;
  static SaveSet saves_for(const Call&, uint64_t) { return {3, 2}; }
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// Operands (g, x, target, stats).
struct CrossEntropyBackward : ClassLoss {
  static constexpr std::string_view name = "cross_entropy_backward",
                                    doc = "g * (softmax(x) - onehot(target)) along a dim";
  static constexpr std::string_view operands = "g, x, target, stats";
  static constexpr std::string_view example =
      "f32[2], f32[2,5], i64[2], f32[2,2] {dim=1, ignore_index=-100} : f32[2,5]";
  static constexpr int8_t arity = 4;
  static SaveSet saves_for(const Call&, uint64_t) { return {15, 0}; }
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

using ClassLossOps = OpList<Nll, NllBackward, CrossEntropy, CrossEntropyBackward>;

/// For a difference d: d^2 / 2 within delta, delta * (|d| - delta / 2) beyond. The derivative is d clamped to [-delta,
/// delta].
struct Huber : Smooth<Huber> {
  struct Attrs {
    Scalar delta = 1.0;
    void visit(AttrVisitor& v) { v.field("delta", delta); }
  };
  static void infer(const Call& call, TensorImpl* const* outputs);
  static constexpr std::string_view name = "huber", doc = "x^2 / 2 within delta, linear beyond";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    const V size = math::abs(x), delta = math::number<V>(a.delta);
    return math::select(size < delta, x * 0.5 * x, delta * (size - delta * 0.5));
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// The same divided by its bound: for a difference d, d^2 / (2 beta) within beta, |d| - beta / 2 beyond.
struct SmoothL1 : Smooth<SmoothL1> {
  struct Attrs {
    Scalar beta = 1.0;
    void visit(AttrVisitor& v) { v.field("beta", beta); }
  };
  static void infer(const Call& call, TensorImpl* const* outputs);
  static constexpr std::string_view name = "smooth_l1", doc = "x^2 / (2 beta) within beta, linear beyond";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    const V size = math::abs(x), beta = math::number<V>(a.beta);
    return math::select(size < beta, x * 0.5 * (x / beta), size - beta * 0.5);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// Functions of a logit, a target and the weight of positive targets, which may be a number.
struct OfLogits : Elementwise<3> {
  using Attrs = ScalarOperand;
  static constexpr std::string_view operands = "x, target, pos_weight";
  static constexpr uint8_t optional = 4;
  static SaveSet saves_for(const Call& call, uint64_t) { return {call.operands[2] ? uint64_t{7} : 3, 0}; }
};

/// For a logit x, a target t in [0, 1] and the weight w of positive targets: (1 - t) log(1 + e^x) + w t log(1 + e^-x),
/// where 0 times infinity is 0.
struct BceWithLogits : OfLogits, ChainRule<BceWithLogits> {
  static constexpr std::string_view name = "bce_with_logits",
                                    doc = "(1 - t) log(1 + e^x) + w t log(1 + e^-x)";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, V t, V w, const Attrs&) {
    const V rest = math::log1p(math::exp(-math::abs(x)));
    const V negative = math::maximum(x, V(0)) + rest, positive = math::maximum(-x, V(0)) + rest;
    return math::select(t == 1, 0, (1 - t) * negative) + math::select(t == 0, 0, w * t * positive);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// Its derivative by x: (1 - t) sigmoid(x) - w t sigmoid(-x).
struct BceWithLogitsDerivative : OfLogits, ChainRule<BceWithLogitsDerivative> {
  static constexpr std::string_view name = "bce_with_logits_derivative",
                                    doc = "(1 - t) sigmoid(x) - w t sigmoid(-x)";
  template <class V>
  RG_HD static V fwd(V x, V t, V w, const Attrs&) {
    // Both sigmoids, each with full precision, from one exponential.
    const V e = math::exp(-math::abs(x)), above = 1 / (1 + e), below = e * above;
    const auto is_positive = x > 0;
    return (1 - t) * math::select(is_positive, above, below) -
           w * t * math::select(is_positive, below, above);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// -(t log(x) + (1 - t) log(1 - x)), the logarithms no less than -100.
struct BinaryCrossEntropy : Elementwise<2>, ChainRule<BinaryCrossEntropy> {
  static constexpr std::string_view name = "binary_cross_entropy", doc = "-(t log(x) + (1 - t) log(1 - x))";
  static constexpr auto cast_policy = CastPolicy::banned;
  static constexpr std::string_view operands = "x, target";
  static constexpr Saves saves = Saves::operands;
  template <class V>
  RG_HD static V fwd(V x, V t, const Attrs&) {
    const V least = -100;
    return (t - 1) * math::maximum(math::log1p(-x), least) - t * math::maximum(math::log(x), least);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// (a - b)^2, and its derivative by a in the direction of t.
struct SquaredDifference : Elementwise<2>, ChainRule<SquaredDifference> {
  static constexpr std::string_view name = "squared_difference", doc = "(a - b)^2";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr bool integers = true, booleans = false;
  static constexpr Saves saves = Saves::operands;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    const V d = a - b;
    return d * d;
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};
struct SquaredDifferenceBackward : Elementwise<3>, ChainRule<SquaredDifferenceBackward> {
  static constexpr std::string_view name = "squared_difference_backward", doc = "2 t (a - b)";
  static constexpr std::string_view operands = "t, a, b";
  static constexpr bool integers = true, booleans = false;
  static constexpr Saves saves = Saves::operands;
  template <class V>
  RG_HD static V fwd(V t, V a, V b, const Attrs&) {
    return t * (a - b) * 2;
  }
  static Tensor chain(const Point& p, int i, const Tensor& s);
};

using LossOps = OpList<Huber, SmoothL1, BinaryCrossEntropy, BceWithLogits, BceWithLogitsDerivative,
                       SquaredDifference, SquaredDifferenceBackward>;

}  // namespace ops

// `reduction` is "none", "sum" or "mean" (kl_div: or "batchmean"): Error(bad_argument) otherwise. Shapes
// broadcast or give Error(shape_mismatch).

/// Class indices: int64, of the input's shape without the class dim; class probabilities: floating, of the input's
/// shape. weight: [C], one factor per class; "mean" then divides by the sum of the targets' factors. Indices equal to
/// ignore_index are ignored. label_smoothing in [0, 1] mixes the target with the uniform distribution. Errors:
/// dtype_mismatch, shape_mismatch, index_out_of_range, bad_argument.
Tensor cross_entropy(Operand input, const Tensor& target, const Tensor& weight = {},
                     LossReduction reduction = "mean", int64_t ignore_index = -100,
                     Scalar label_smoothing = 0.0);
/// The same for log-probabilities, with class indices.
Tensor nll_loss(Operand input, const Tensor& target, const Tensor& weight = {},
                LossReduction reduction = "mean", int64_t ignore_index = -100);
/// (input - target)^2 and |input - target|.
Tensor mse_loss(Operand input, const Tensor& target, LossReduction reduction = "mean");
Tensor l1_loss(Operand input, const Tensor& target, LossReduction reduction = "mean");
/// d^2 / (2 beta) for |d| < beta, else |d| - beta / 2. Error(bad_argument) for beta < 0.
Tensor smooth_l1_loss(Operand input, const Tensor& target, LossReduction reduction = "mean",
                      Scalar beta = 1.0);
/// d^2 / 2 for |d| < delta, else delta (|d| - delta / 2). Error(bad_argument) unless delta > 0.
Tensor huber_loss(Operand input, const Tensor& target, LossReduction reduction = "mean", Scalar delta = 1.0);
/// For probabilities, and for logits; `weight` multiplies the elements, `pos_weight` the part of the positive targets.
/// Target and input have one shape: Error(shape_mismatch). Probabilities and their targets have one dtype, and are in
/// [0, 1]: Error(dtype_mismatch), Error(bad_argument).
Tensor binary_cross_entropy(Operand input, const Tensor& target, const Tensor& weight = {},
                            LossReduction reduction = "mean");
Tensor binary_cross_entropy_with_logits(Operand input, const Tensor& target, const Tensor& weight = {},
                                        const Tensor& pos_weight = {}, LossReduction reduction = "mean");
/// target * (log(target) - input), or exp(target) * (target - input) with log_target. "batchmean": the sum
/// over the first size.
Tensor kl_div(Operand input, const Tensor& target, LossReduction reduction = "mean", bool log_target = false);
/// <x1, x2> / (max(|x1|, eps) max(|x2|, eps)) along `dim`.
Tensor cosine_similarity(Operand x1, const Tensor& x2, int64_t dim = 1, Scalar eps = 1e-8);

}  // namespace retrograd
#pragma GCC visibility pop

// ---- derivatives: compiled in ops/derivatives.cc alone, as they use functions of other families ----
#ifdef RG_DERIVATIVES

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/widened.h"

namespace retrograd::inline v0::ops {

Tensor Huber::chain(const Point& p, int, const Tensor& t) {
  const Scalar delta = p.attrs<Attrs>().delta;
  return t * clamp(p.in(0), -delta, delta);
}

Tensor SmoothL1::chain(const Point& p, int, const Tensor& t) {
  return t * clamp(p.in(0) / p.attrs<Attrs>().beta, -1.0, 1.0);
}

namespace {

// The weight of positive targets, a number or in the wider dtype.
Operand weight_at(const Point& p, const Widened& wide, Tensor& keep) {
  if (p.in(2).is_scalar()) return p.in(2);
  keep = wide(p.in(2).tensor());
  return keep;
}

}  // namespace

// By x: the derivative op. By t: w log(sigmoid(x)) - log(sigmoid(-x)) with the sign changed. By w: -t log(sigmoid(x)).
Tensor BceWithLogits::chain(const Point& p, int i, const Tensor& g) {
  if (i == 0) return g * Function<BceWithLogitsDerivative>()(p.in(0), p.in(1), p.in(2));
  const Widened wide(g);
  Tensor keep;
  const Tensor x = wide(p.in(0).tensor());
  if (i == 2) return wide.back(-(wide(g) * (wide(p.in(1).tensor()) * logsigmoid(x))));
  return wide.back(wide(g) * (logsigmoid(-x) - logsigmoid(x) * weight_at(p, wide, keep)));
}

// By x: (1 - t + w t) s q for s = sigmoid(x), q = sigmoid(-x). By t: -s - w q. By w: -t q.
Tensor BceWithLogitsDerivative::chain(const Point& p, int i, const Tensor& g) {
  const Widened wide(g);
  Tensor keep;
  const Tensor x = wide(p.in(0).tensor()), target = wide(p.in(1).tensor()), q = sigmoid(-x);
  const Operand weight = weight_at(p, wide, keep);
  if (i == 0) return wide.back(wide(g) * (sigmoid(x) * q * (1 - target + target * weight)));
  if (i == 1) return wide.back(-(wide(g) * (sigmoid(x) + q * weight)));
  return wide.back(-(wide(g) * (target * q)));
}

Tensor SquaredDifference::chain(const Point& p, int i, const Tensor& t) {
  const Tensor by_a = emit<SquaredDifferenceBackward>(
      {t.get(), p.in(0).tensor().get(), p.in(1).tensor().get()}, {}, p.where());
  return i == 0 ? by_a : -by_a;
}

Tensor SquaredDifferenceBackward::chain(const Point& p, int i, const Tensor& s) {
  if (i == 0)
    return emit<SquaredDifferenceBackward>({s.get(), p.in(1).tensor().get(), p.in(2).tensor().get()}, {},
                                           p.where());
  return s * (p.in(0) * (i == 1 ? 2 : -2));
}

// By x: (x - t) / (x (1 - x)), the denominator no less than 1e-12. By t: log(1 - x) - log(x), as in the
// formula.
Tensor BinaryCrossEntropy::chain(const Point& p, int i, const Tensor& t) {
  const Widened wide(t);
  const Tensor x = wide(p.in(0).tensor()), target = wide(p.in(1).tensor());
  if (i == 0) return wide.back(wide(t) * (x - target) / clamp(x * (1 - x), static_cast<double>(1e-12f)));
  return wide.back(wide(t) * (clamp(log1p(-x), -100.0) - clamp(log(x), -100.0)));
}

}  // namespace retrograd::ops

#endif  // RG_DERIVATIVES
