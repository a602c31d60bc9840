// How an op is written: a struct, from which make_op_info() makes the OpInfo that generic code uses.
//
//   struct Tan : ops::Unary, ops::ChainRule<Tan> {     // arity and kind of the formula, kind of the derivative
//     static constexpr auto name = "tan";
//     static constexpr auto saves = Saves::result;     // or a function saves_for(call, wants)
//     template <class V> RG_HD static V fwd(V x, const Attrs&) { return math::tan(x); }   // one formula for every device
//     static Tensor chain(const Point& p, int i, const Tensor& t);                        // t * d result / d operand i
//     static constexpr auto doc = "...";
//   };
// A struct may have: `Attrs` (plain data, with visit(AttrVisitor&)), arity, outputs, traits, infer, layout, and a
// derivative of one of five kinds, distinguished by the members that exist:
//   Elementwise  chain(point, i, t)               vjp and jvp from the base ChainRule (ops/elementwise.h)
//   Linear       transpose(c, i, g)               jvp: the op itself on the tangent
//   Bilinear     transpose(c, i, g), bilinear     jvp: the op on (ta, b) plus on (a, tb)
//   Custom       vjp(c), jvp(c)
//   None         no_derivative = "reason"
// For documents and Node::saved_name: `operands`, the names of the operands ("input, weight"; default x, or a, b, c).
// For documents: `example`, a call as in the text of a graph ("f32[2,3], i64[4] {dim=0} : f32[4]"), from which
// docs/ops.md determines dtypes and derivatives. An elementwise op needs no example.
// `optional` gives the operands that may be missing (bit i: operand i). Default: for an op with the attribute `scalar`,
// the operands that a number may replace, else none.
// `cast_policy`: what autocast does to its operands (engine/op.h). Default: nothing.
// `batch(c)`: how the op runs on operands with a batch dim in front, usually one of ops/batch_rules.h. Default: the rule
// of elementwise ops for these, else vmap calls the op once for each sample.
#pragma once

#include <concepts>
#include <type_traits>

#include "engine/op.h"
#include "engine/rule.h"
#include "ops/batch_rules.h"
#include "ops/emit.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

/// The values that a record keeps when an operand wants a gradient.
enum class Saves : uint8_t {
  nothing,
  operands,  // all of them
  result,
  both,
  other,  // of two operands, the one whose partner wants a gradient (mul, matmul)
};

struct NoAttrs {
  void visit(AttrVisitor&) {}
};

template <class Op>
concept HasTranspose = requires(RuleContext& c, const Tensor& g) {
  Op::transpose(c, 0, g);
};
template <class Op>
concept HasVjp = requires(RuleContext& c) {
  Op::vjp(c);
};
template <class Op>
concept HasJvp = requires(TangentContext& c) {
  Op::jvp(c);
};

namespace op_detail {

template <class Op>
void visit(void* attrs, AttrVisitor& visitor) {
  static_cast<typename Op::Attrs*>(attrs)->visit(visitor);
}

template <class Op>
SaveSet saves(const Call& call, uint64_t wants) {
  const uint64_t all = (uint64_t{1} << call.operands.size()) - 1, results = (uint64_t{1} << call.outputs) - 1;
  switch (Op::saves) {
    case Saves::nothing: return {};
    case Saves::operands: return {all, 0};
    case Saves::result: return {0, results};
    case Saves::both: return {all, results};
    case Saves::other: return {(wants & 1) << 1 | (wants >> 1 & 1), 0};
  }
  return {};
}

template <class Op>
void transpose_vjp(RuleContext& c) {
  for (int i = 0; i < c.operands(); ++i)
    if (c.needs(i)) c.give(i, Op::transpose(c, i, c.grad()));
}

/// The op applied to tangents in place of the operands: linear in all of them together.
void linear_jvp(TangentContext& c);
/// The sum over operands of the op with that operand replaced by its tangent: linear in each.
void bilinear_jvp(TangentContext& c);

template <class Op>
constexpr void set_derivative(OpInfo& info) {
  if constexpr (HasVjp<Op>) {
    info.vjp = [](RuleContext& c) { Op::vjp(c); };
    if constexpr (HasJvp<Op>) info.jvp = [](TangentContext& c) { Op::jvp(c); };
  } else if constexpr (HasTranspose<Op>) {
    info.vjp = transpose_vjp<Op>;
    if constexpr (HasJvp<Op>)
      info.jvp = [](TangentContext& c) { Op::jvp(c); };
    else if constexpr (requires { Op::bilinear; })
      info.jvp = bilinear_jvp;
    else
      info.jvp = linear_jvp;
  } else {
    info.no_derivative = Op::no_derivative;
  }
}

}  // namespace op_detail

template <class Op>
constexpr OpInfo make_op_info() {
  OpInfo info;
  info.name = Op::name;
  info.traits = Op::traits;
  info.arity = Op::arity;
  if constexpr (requires { Op::outputs; }) info.outputs = Op::outputs;
  using Attrs = typename Op::Attrs;
  static_assert(std::is_trivially_destructible_v<Attrs>,
                "attributes are copied as bytes and never destroyed");
  static_assert(alignof(Attrs) <= 8, "a tape record keeps them at a multiple of 8");
  if constexpr (!std::is_same_v<Attrs, NoAttrs>) {
    info.attrs_size = sizeof(Attrs);
    info.visit_attrs = op_detail::visit<Op>;
  }
  if constexpr (requires(Attrs a) { a.scalar; }) info.has_scalar_operand = true;
  if constexpr (requires { Op::optional; })
    info.optional = Op::optional;
  else if (info.has_scalar_operand)
    info.optional = static_cast<uint8_t>(~(~0u << (Op::arity & 7)));
  if constexpr (requires { Op::cast_policy; }) info.cast_policy = Op::cast_policy;
  info.infer = Op::infer;
  if constexpr (requires { Op::layout; }) info.layout = Op::layout;
  if constexpr (requires { Op::run_on_host; }) info.run_on_host = Op::run_on_host;
  if constexpr (requires { Op::saves_for; })
    info.saves = Op::saves_for;
  else if constexpr (requires { Op::saves; })
    info.saves = op_detail::saves<Op>;
  op_detail::set_derivative<Op>(info);
  if constexpr (requires { Op::batch; })
    info.batch = Op::batch;
  else if constexpr (Op::traits & static_cast<uint32_t>(Trait::elementwise))
    info.batch = batch_elementwise;
  if constexpr (requires { Op::doc; }) info.doc = Op::doc;
  if constexpr (requires { Op::operands; }) info.operands = Op::operands;
  return info;
}

/// The OpInfo of an op struct. Its address is the op's identity.
template <class Op>
inline constexpr OpInfo info = make_op_info<Op>();

/// Emits `Op` on the operands (null: none, or a number in the attributes) into the current emitter.
/// The attributes are not copied: copying data that has just been written field by field stalls until all stores have
/// reached the cache.
template <class Op>
Tensor emit(std::initializer_list<TensorImpl*> operands, const typename Op::Attrs& attrs,
            SourceLocation where) {
  Tensor result;
  Emitter::current().emit({&info<Op>,
                           {operands.begin(), operands.size()},
                           const_cast<typename Op::Attrs*>(&attrs),
                           effective_location(where),
                           1},
                          &result);
  return result;
}

/// A list of op structs: the op table of a family.
template <class... Ops>
struct OpList {
  static constexpr int size = sizeof...(Ops);
  template <class F>
  static constexpr void for_each(F&& f) {
    (f.template operator()<Ops>(), ...);
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
