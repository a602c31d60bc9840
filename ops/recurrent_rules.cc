// Derivatives of ops/recurrent.h: the factors that linearise each cell, and products of whole sequences with them.
//
// Names: `before` the value of the step before, `after` of the step after, in the direction of the recurrence; delta
// the gradients of the states, from gated_recurrence_backward. A gate's factor is the derivative of the new state by
// the sum (projected input plus U h) in the gate.
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/recurrent.h"
#include "ops/reduce.h"
#include "ops/scan.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"

namespace retrograd::inline v0::ops {
namespace {

// Sequences of one call: their direction, sizes and lengths. All its calls report the place of the differentiated call.
class Sequence {
 public:
  Sequence(const SequenceAttrs& attrs, Dim hidden, const Tensor& lengths, SourceLocation where)
      : scope_(where), where_(where), reverse_(attrs.reverse), hidden_(hidden), lengths_(lengths) {}

  Tensor before(const Tensor& x, const Tensor& first) const {
    const Dim rest = x.sym_size(0) - 1;
    const Tensor one = unsqueeze(first, 0);
    return reverse_ ? cat({narrow(x, 0, 1, rest), one}) : cat({one, narrow(x, 0, 0, rest)});
  }
  /// Zeros after the last.
  Tensor after(const Tensor& x) const { return emit<Shift>({x.get()}, {0, !reverse_}, where_); }
  Tensor first(const Tensor& x) const { return select(x, 0, reverse_ ? x.sym_size(0) - 1 : Dim(0)); }

  Tensor block(const Tensor& x, int64_t i) const { return narrow(x, -1, i * hidden_, hidden_); }
  /// Zeros beyond the length of each sequence.
  Tensor within(const Tensor& x) const {
    if (!lengths_.defined() || !x.defined()) return x;
    if (!is_step_.defined()) is_step_ = unsqueeze(steps_within(x.sym_size(0), lengths_), 2);
    return where(is_step_, x, 0);
  }
  const Tensor& lengths() const { return lengths_; }
  Dim hidden() const { return hidden_; }
  SourceLocation place() const { return where_; }

 private:
  CallScope scope_;
  SourceLocation where_;
  bool reverse_;
  Dim hidden_;
  Tensor lengths_;
  mutable Tensor is_step_;  // made when first needed
};

Tensor joined(const Tensors& blocks) { return cat(blocks, -1); }
// 1 - x^2
Tensor one_minus_square(const Tensor& x) { return (1 - x) * (1 + x); }
Tensor sigmoid_slope(const Tensor& y) { return y * (1 - y); }
// (L, N, k) as a matrix
Tensor rows(const Tensor& x) { return flatten(x, 0, 1); }
// The sum over steps and sequences of g' x, the gradient of a weight.
Tensor weight_gradient(const Tensor& g, const Tensor& x) { return mm(t(rows(g)), rows(x)); }

// The linear map of a cell around the values of a forward pass: see ops/recurrent.h.
class Linearised {
 public:
  Linearised(const Sequence& sequence, const GatedRecurrenceAttrs& attrs, Tensor weight, Tensor factors,
             Tensor keep)
      : s_(sequence),
        attrs_(attrs),
        weight_(std::move(weight)),
        factors_(std::move(factors)),
        keep_(std::move(keep)) {}

  Tensor tangents(const Tensor& x, const Tensor& state) const {
    return emit<GatedRecurrence>(
        {weight_.get(), factors_.get(), keep_.get(), x.get(), state.get(), s_.lengths().get()}, attrs_,
        s_.place());
  }

  struct Gradients {
    Tensor states, before;  // delta, and the gradient of the state before the first step
  };
  Gradients gradients(const Tensor& g) const {
    TensorImpl* const operands[] = {weight_.get(), factors_.get(), keep_.get(), g.get(), s_.lengths().get()};
    GatedRecurrenceAttrs attrs = attrs_;
    Tensor results[2];
    Emitter::current().emit(
        {&info<GatedRecurrenceBackward>, operands, &attrs, effective_location(s_.place()), 2}, results);
    return {results[0], results[1]};
  }

  Tensor h_of(const Tensor& states) const { return attrs_.has_cell ? s_.block(states, 0) : states; }
  Tensor c_of(const Tensor& states) const { return attrs_.has_cell ? s_.block(states, 1) : states; }

  /// For each block, the delta of the state that it is part of.
  Tensor spread(const Tensor& delta) const {
    Tensors blocks(static_cast<size_t>(attrs_.gates), c_of(delta));
    if (attrs_.has_cell) blocks.back() = h_of(delta);
    return blocks.size() == 1 ? blocks[0] : joined(blocks);
  }
  /// The transpose: blocks (L, N, G H) added up to states.
  Tensor gathered(const Tensor& blocks) const {
    const int64_t of_c = attrs_.gates - attrs_.has_cell;
    Tensor sum = s_.block(blocks, 0);
    for (int64_t i = 1; i < of_c; ++i) sum = sum + s_.block(blocks, i);
    return attrs_.has_cell ? joined({s_.block(blocks, of_c), sum}) : sum;
  }
  /// The part of the gradient of the sums in the gates that comes through the states.
  Tensor sums(const Tensor& delta) const { return s_.within(factors_ * spread(delta)); }

  /// The derivatives of the inner product of `delta` and the map applied to trajectories that begin with `state`.
  struct Coefficients {
    Tensor weight, factors, keep;
  };
  Coefficients by_coefficients(const Tensor& delta, const Tensor& states, const Tensor& state) const {
    const Tensor before = s_.before(states, state), h = h_of(before), each = spread(delta);
    Coefficients d{weight_gradient(s_.within(factors_ * each), h), s_.within(each * linear(h, weight_)), {}};
    if (keep_.defined()) d.keep = s_.within(kept(delta, states, before));
    return d;
  }
  /// What K multiplies, times x, for trajectories `states` and those one step before.
  Tensor kept(const Tensor& x, const Tensor& states, const Tensor& before) const {
    if (!attrs_.has_cell) return x * before;
    return joined({h_of(x) * c_of(states), c_of(x) * c_of(before)});
  }

  const Tensor& weight() const { return weight_; }
  const Tensor& factors() const { return factors_; }
  bool has_cell() const { return attrs_.has_cell; }

 private:
  const Sequence& s_;
  GatedRecurrenceAttrs attrs_;
  Tensor weight_, factors_, keep_;
};

/// `weight`, `lengths`: their numbers among the operands.
template <class Context>
Sequence sequence_of(Context& c, int weight, int lengths) {
  return {c.template attrs<SequenceAttrs>(), c.type(weight).shape[1],
          c.has_operand(lengths) ? c.in(lengths).tensor() : Tensor(), c.where()};
}

/// The values of a state before each step: the saved result, and the operand that it begins with. They are asked for one
/// after the other, since unpacks have an order.
template <class Context>
Tensor before_of(Context& c, const Sequence& s, int result, int operand) {
  const Tensor states = c.out(result), first = c.in(operand).tensor();
  return s.before(states, first);
}

// Those of the operands that are not missing.
uint64_t present(const Call& call, uint64_t operands) {
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (!call.operands[i]) operands &= ~(uint64_t{1} << i);
  return operands;
}

constexpr uint64_t bits(std::initializer_list<int> numbers) {
  uint64_t all = 0;
  for (int i : numbers) all |= uint64_t{1} << i;
  return all;
}

// ---- LSTM -------------------------------------------------------------------------------------------------

Linearised lstm_map(const Sequence& s, const SequenceAttrs& attrs, const Tensor& weight, const Tensor& c,
                    const Tensor& c_before, const Tensor& gates) {
  const Tensor i = s.block(gates, 0), f = s.block(gates, 1), g = s.block(gates, 2), o = s.block(gates, 3),
               y = retrograd::tanh(c);
  return {s,
          {attrs, 4, true},
          weight,
          joined({g * sigmoid_slope(i), c_before * sigmoid_slope(f), i * one_minus_square(g),
                  y * sigmoid_slope(o)}),
          joined({o * one_minus_square(y), f})};
}

// d gates / d sums
Tensor lstm_slopes(const Sequence& s, const Tensor& gates) {
  return joined({sigmoid_slope(narrow(gates, -1, 0, 2 * s.hidden())), one_minus_square(s.block(gates, 2)),
                 sigmoid_slope(s.block(gates, 3))});
}

// ---- GRU --------------------------------------------------------------------------------------------------

struct GruGates {
  Tensor r, z, n, m;
  GruGates(const Sequence& s, const Tensor& gates)
      : r(s.block(gates, 0)), z(s.block(gates, 1)), n(s.block(gates, 2)), m(s.block(gates, 3)) {}
  // d h' / d (projected + r m), the sum in n
  Tensor slope_of_n() const { return (1 - z) * one_minus_square(n); }
};

Linearised gru_map(const Sequence& s, const SequenceAttrs& attrs, const Tensor& weight,
                   const Tensor& h_before, const GruGates& g) {
  const Tensor slope = g.slope_of_n();
  return {s,
          {attrs, 3, false},
          weight,
          joined({slope * g.m * sigmoid_slope(g.r), (h_before - g.n) * sigmoid_slope(g.z), slope * g.r}),
          g.z};
}

}  // namespace

SaveSet Lstm::saves_for(const Call& call, uint64_t wants) {
  const uint64_t h = wants >> 1 & 1;  // for the gradient of the weight
  return {present(call, bits({1, 3, 4}) | h << 2), bits({1, 2}) | h};
}

void Lstm::vjp(RuleContext& c) {
  const Sequence s = sequence_of(c, 1, 4);
  const Tensor weight = c.in(1).tensor(), c_0 = c.in(3).tensor(), cells = c.out(1), gates = c.out(2);
  const Linearised map = lstm_map(s, c.attrs<Attrs>(), weight, cells, s.before(cells, c_0), gates);
  // What comes to the gates directly goes on to the sums in them, and from there to the state before.
  Tensor direct, onward, of_h = c.grad_or_zeros(0);
  if (c.grad(2).defined()) {
    direct = s.within(c.grad(2) * lstm_slopes(s, gates));
    onward = linear(direct, t(weight));
    of_h = of_h + s.after(onward);
  }
  const Linearised::Gradients g = map.gradients(joined({of_h, c.grad_or_zeros(1)}));
  const Tensor sums = plus(direct, map.sums(g.states));
  c.give(0, sums);
  if (c.needs(1)) c.give(1, weight_gradient(sums, before_of(c, s, 0, 2)));
  if (c.needs(2)) c.give(2, onward.defined() ? map.h_of(g.before) + s.first(onward) : map.h_of(g.before));
  c.give(3, map.c_of(g.before));
}

void Lstm::jvp(TangentContext& c) {
  const Sequence s = sequence_of(c, 1, 4);
  const Tensor weight = c.in(1).tensor(), c_0 = c.in(3).tensor(), cells = c.out(1), gates = c.out(2),
               h_0 = c.tangent_or_zeros(2);
  const Linearised map = lstm_map(s, c.attrs<Attrs>(), weight, cells, s.before(cells, c_0), gates);
  Tensor sums = c.tangent_or_zeros(0);
  if (c.needs(1)) sums = sums + linear(before_of(c, s, 0, 2), c.tangent(1));
  const Tensor states =
      map.tangents(s.within(map.gathered(map.factors() * sums)), joined({h_0, c.tangent_or_zeros(3)}));
  c.give(0, map.h_of(states));
  c.give(1, map.c_of(states));
  sums = sums + linear(s.before(map.h_of(states), h_0), weight);
  c.give(2, s.within(lstm_slopes(s, gates) * sums));
}

SaveSet Gru::saves_for(const Call& call, uint64_t) { return {present(call, bits({1, 2, 4})), bits({0, 1})}; }

void Gru::vjp(RuleContext& c) {
  const Sequence s = sequence_of(c, 1, 4);
  const Tensor weight = c.in(1).tensor(), before = before_of(c, s, 0, 2);
  const GruGates gates(s, c.out(1));
  const Linearised map = gru_map(s, c.attrs<Attrs>(), weight, before, gates);
  Tensor direct, of_n, onward, of_h = c.grad_or_zeros(0);
  if (c.grad(1).defined()) {
    const GruGates g(s, s.within(c.grad(1)));
    of_n = g.n * one_minus_square(gates.n);
    direct = joined({(g.r + gates.m * of_n) * sigmoid_slope(gates.r), g.z * sigmoid_slope(gates.z),
                     g.m + gates.r * of_n});
    onward = linear(direct, t(weight));
    of_h = of_h + s.after(onward);
  }
  const Linearised::Gradients g = map.gradients(of_h);
  const Tensor sums = plus(direct, map.sums(g.states));  // in r, z and m
  if (c.needs(0))
    c.give(0, joined({narrow(sums, -1, 0, 2 * s.hidden()),
                      plus(of_n, s.within(gates.slope_of_n() * g.states))}));
  if (c.needs(1)) c.give(1, weight_gradient(sums, before));
  if (c.needs(2)) c.give(2, onward.defined() ? g.before + s.first(onward) : g.before);
  if (c.needs(3)) c.give(3, sum(s.block(sums, 2), {0, 1}));
}

void Gru::jvp(TangentContext& c) {
  const Sequence s = sequence_of(c, 1, 4);
  const Tensor weight = c.in(1).tensor(), before = before_of(c, s, 0, 2), h_0 = c.tangent_or_zeros(2),
               projected = c.tangent_or_zeros(0);
  const GruGates gates(s, c.out(1));
  const Linearised map = gru_map(s, c.attrs<Attrs>(), weight, before, gates);
  const Tensor of_n = s.block(projected, 2);
  Tensor m = c.needs(3) ? expand_to(Operand(c.tangent(3), c.where()), c.out_type().shape) : zeros_like(of_n);
  Tensor sums = joined({narrow(projected, -1, 0, 2 * s.hidden()), m});  // in r, z and m
  if (c.needs(1)) sums = sums + linear(before, c.tangent(1));
  const Tensor states =
      map.tangents(s.within(map.gathered(map.factors() * sums) + gates.slope_of_n() * of_n), h_0);
  c.give(0, states);
  sums = sums + linear(s.before(states, h_0), weight);
  const Tensor r = sigmoid_slope(gates.r) * s.block(sums, 0);
  m = s.block(sums, 2);
  c.give(1, s.within(joined({r, sigmoid_slope(gates.z) * s.block(sums, 1),
                             one_minus_square(gates.n) * (of_n + gates.r * m + gates.m * r), m})));
}

namespace {

Linearised rnn_map(const Sequence& s, const Rnn::Attrs& attrs, const Tensor& weight, const Tensor& h) {
  return {
      s, {attrs, 1, false}, weight, attrs.relu ? where(le(h, 0), 0, ones_like(h)) : one_minus_square(h), {}};
}

}  // namespace

SaveSet Rnn::saves_for(const Call& call, uint64_t wants) {
  return {present(call, bits({1, 3}) | (wants >> 1 & 1) << 2), bits({0})};
}

void Rnn::vjp(RuleContext& c) {
  const Sequence s = sequence_of(c, 1, 3);
  const Tensor weight = c.in(1).tensor();
  const Linearised map = rnn_map(s, c.attrs<Attrs>(), weight, c.out());
  const Linearised::Gradients g = map.gradients(c.grad());
  const Tensor sums = map.sums(g.states);
  c.give(0, sums);
  if (c.needs(1)) c.give(1, weight_gradient(sums, before_of(c, s, 0, 2)));
  c.give(2, g.before);
}

void Rnn::jvp(TangentContext& c) {
  const Sequence s = sequence_of(c, 1, 3);
  const Tensor weight = c.in(1).tensor();
  const Linearised map = rnn_map(s, c.attrs<Attrs>(), weight, c.out());
  Tensor sums = c.tangent_or_zeros(0);
  if (c.needs(1)) sums = sums + linear(before_of(c, s, 0, 2), c.tangent(1));
  c.give(0, map.tangents(s.within(map.factors() * sums), c.tangent_or_zeros(2)));
}

// ---- the linear maps --------------------------------------------------------------------------------------

namespace {

constexpr uint64_t kCoefficients = bits({0, 1, 2});

template <class Context>
Linearised map_of(const Sequence& s, Context& c) {
  return {s, c.template attrs<GatedRecurrenceAttrs>(), c.in(0).tensor(), c.in(1).tensor(),
          c.has_operand(2) ? c.in(2).tensor() : Tensor()};
}

bool needs_coefficients(RuleContext& c) {
  return c.needs(0) || c.needs(1) || (c.has_operand(2) && c.needs(2));
}

void give(RuleContext& c, const Linearised::Coefficients& d) {
  c.give(0, d.weight);
  c.give(1, d.factors);
  c.give(2, d.keep);
}

}  // namespace

SaveSet GatedRecurrence::saves_for(const Call& call, uint64_t wants) {
  const uint64_t trajectory = (wants & kCoefficients) != 0;
  return {present(call, kCoefficients | bits({5}) | trajectory << 4), trajectory};
}

void GatedRecurrence::vjp(RuleContext& c) {
  const Sequence s = sequence_of(c, 0, 5);
  const Linearised map = map_of(s, c);
  const Linearised::Gradients g = map.gradients(c.grad());
  c.give(3, g.states);
  c.give(4, g.before);
  if (!needs_coefficients(c)) return;
  const Tensor states = c.out(), state = c.in(4).tensor();
  give(c, map.by_coefficients(g.states, states, state));
}

void GatedRecurrence::jvp(TangentContext& c) {
  const Sequence s = sequence_of(c, 0, 5);
  const Linearised map = map_of(s, c);
  const Tensor before = before_of(c, s, 0, 4), h = map.h_of(before);
  Tensor blocks, x;
  if (c.needs(0)) blocks = map.factors() * linear(h, c.tangent(0));
  if (c.needs(1)) blocks = plus(blocks, c.tangent(1) * linear(h, map.weight()));
  if (blocks.defined()) x = map.gathered(blocks);
  if (c.needs(2)) x = plus(x, map.kept(c.tangent(2), c.out(), before));
  c.give(0, map.tangents(plus(s.within(x), c.tangent_or_zeros(3)), c.tangent_or_zeros(4)));
}

SaveSet GatedRecurrenceBackward::saves_for(const Call& call, uint64_t wants) {
  return {present(call, kCoefficients | bits({4})), (wants & kCoefficients) != 0};
}

void GatedRecurrenceBackward::vjp(RuleContext& c) {
  const Sequence s = sequence_of(c, 0, 4);
  const Linearised map = map_of(s, c);
  const Tensor state = c.grad_or_zeros(1), states = map.tangents(c.grad_or_zeros(0), state);
  c.give(3, states);
  if (needs_coefficients(c)) give(c, map.by_coefficients(c.out(), states, state));
}

// The gradient of the states before each step, by tangents of the coefficients, is added to g: what comes to h and c of
// the step before, and to c of the same step by way of h.
void GatedRecurrenceBackward::jvp(TangentContext& c) {
  const Sequence s = sequence_of(c, 0, 4);
  const Linearised map = map_of(s, c);
  const Tensor& delta = c.out();
  const Tensor none = zeros_like(map.h_of(delta));
  Tensor of_h, of_c, g = c.tangent(3);
  if (c.needs(0)) of_h = linear(map.sums(delta), t(c.tangent(0)));
  if (c.needs(1)) of_h = plus(of_h, linear(s.within(c.tangent(1) * map.spread(delta)), t(map.weight())));
  if (c.needs(2)) {
    const Tensor keep = s.within(c.tangent(2));
    of_c = map.c_of(keep) * map.c_of(delta);
    if (map.has_cell()) g = plus(g, joined({none, map.h_of(keep) * map.h_of(delta)}));
  }
  if (!of_h.defined()) of_h = none;
  if (!of_c.defined()) of_c = none;
  const Tensor before = map.has_cell() ? joined({of_h, of_c}) : of_h + of_c;
  const Linearised::Gradients d = map.gradients(plus(g, s.after(before)));
  c.give(0, d.states);
  c.give(1, d.before + s.first(before));
}

}  // namespace retrograd::inline v0::ops
