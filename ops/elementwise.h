// Elementwise ops: the bases of their structs, and Function, which makes the public function of a struct.
//
// A struct has a formula `fwd(V x..., const Attrs&)`, a template over the number type (ops/math.h) that serves all
// devices, and a derivative kind (ops/op.h). This is usually ChainRule: one formula `chain(point, i, t)`, t times the
// derivative by operand i, which is both the vjp and the jvp. Operands of a call have one dtype and device: the public
// function promotes by inserting the op `to`. Their shapes broadcast; the operand is saved as given, hence broadcasting
// is not an op. Formulas do not see it: kernels repeat elements, and ChainRule sums a gradient to the operand's shape.
// A number in place of one operand is the attribute `scalar`, if the struct has it, which is never saved and never a
// tensor; else it becomes a tensor.
//
// All parts of an op are in one file, the header of its family: a struct, a word in the family's list, a line `inline
// constexpr ops::Function<...> name`, and the body of `chain`. (Where <cmath> has a function of that name, the line is
// an inline function instead: a program with `using namespace retrograd` then calls either by its argument.) Bodies use
// functions of all families. Hence they are at the end of the header, in a section that only ops/derivatives.cc
// compiles (RG_DERIVATIVES): no other file needs to include those headers. A device's compiler reads only the formulas, without the engine:
// RG_FORMULAS, see ops/formulas.h.
#pragma once

#ifdef RG_FORMULAS
#include "ops/formulas.h"
#else
#include "ops/op.h"
#endif
#include "ops/math.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// How an elementwise op treats the dtypes of its operands.
enum class Promotion : uint8_t {
  same,      // computes in and gives the common dtype
  floating,  // integers become float32 first
  boolean,   // computes in the common dtype, gives bool
  number,    // as `same`; bool becomes int64 first
};

#ifndef RG_FORMULAS
/// The common dtype, the broadcast shape. Error(dtype_mismatch), Error(shape_mismatch).
void infer_elementwise(const Call& call, TensorImpl* const* outputs);
/// The same where operands before number `first` are of any dtype.
void infer_elementwise_from(int first, const Call& call, TensorImpl* const* outputs);
void infer_boolean(const Call& call, TensorImpl* const* outputs);
#endif

template <int Arity>
struct Elementwise {
  using Attrs = NoAttrs;
  static constexpr int arity = Arity;
  static constexpr uint32_t traits = Trait::pure | Trait::elementwise;
  static constexpr Promotion promotion = Promotion::same;
  static constexpr bool integers = false;  // has an integer kernel
  static constexpr bool booleans = true;   // which also serves bool
  static constexpr auto infer = infer_elementwise;
};

struct Unary : Elementwise<1> {
  static constexpr Promotion promotion = Promotion::floating;
};

#ifndef RG_FORMULAS
/// The point at which an elementwise derivative is taken: the common part of RuleContext and TangentContext.
class Point {
 public:
  explicit Point(RuleContext& c) : rule_(&c) {}
  explicit Point(TangentContext& c) : tangent_(&c) {}
  /// Operand i or the number that replaces it; in reverse mode it must be saved. The same holds for the result.
  Operand in(int i) const { return rule_ ? rule_->in(i) : tangent_->in(i); }
  const Tensor& out() const { return rule_ ? rule_->out() : tangent_->out(); }
  TensorType type(int i) const { return rule_ ? rule_->type(i) : tangent_->type(i); }
  SourceLocation where() const { return rule_ ? rule_->where() : tangent_->where(); }
  template <class A>
  const A& attrs() const {
    return rule_ ? rule_->attrs<A>() : tangent_->attrs<A>();
  }

 private:
  RuleContext* rule_ = nullptr;
  TangentContext* tangent_ = nullptr;
};

/// sum_to and expand_to of ops/shape_ops.h.
Tensor sum_over_repeats(Tensor gradient, const Shape& shape, SourceLocation where);
Tensor repeat_to(const Tensor& tangent, const Shape& shape, SourceLocation where);

/// The derivative of an elementwise op F with F::chain(point, i, t): t times the derivative of the result by operand i.
/// Except for broadcasting, which is undone here, the Jacobian is diagonal: hence this is the vjp of a gradient t as
/// well as the jvp of a tangent t.
template <class F>
struct ChainRule {
  static void vjp(RuleContext& c) {
    const Point point(c);
    for (int i = 0; i < c.operands(); ++i)
      if (c.needs(i)) c.give(i, reduced(F::chain(point, i, c.grad()), c, i));
  }
  static void jvp(TangentContext& c) {
    const Point point(c);
    Tensor sum;
    for (int i = 0; i < c.operands(); ++i)
      if (c.has_operand(i) && c.needs(i)) sum = plus(sum, F::chain(point, i, c.tangent(i)));
    if (F::arity > 1 && sum.defined()) sum = repeat_to(sum, c.out_type().shape, c.where());
    c.give(0, sum);
  }

 private:
  static Tensor reduced(Tensor gradient, RuleContext& c, int i) {
    if (F::arity == 1 || !c.is_repeated(i)) return gradient;
    return sum_over_repeats(std::move(gradient), c.type(i).shape, c.where());
  }
};

#endif  // RG_FORMULAS

/// A differentiable op of one operand, which saves it unless S says otherwise.
template <class F, Saves S = Saves::operands>
struct Smooth : Unary, ChainRule<F> {
  static constexpr Saves saves = S;
};

/// A gradient of zeros for operand i: that of a step function.
Tensor zero_chain(const Point& point, int i);

/// Attributes of an op that accepts a number for one operand.
struct ScalarOperand {
  Scalar scalar;
  void visit(AttrVisitor& v) { v.field("scalar", scalar); }
};

struct Binary : Elementwise<2> {
  using Attrs = ScalarOperand;
};

struct Comparison : Binary {
  static constexpr Promotion promotion = Promotion::boolean;
  static constexpr bool integers = true;
  static constexpr auto infer = infer_boolean;
  static constexpr std::string_view no_derivative = "it gives bool";
};

#ifndef RG_FORMULAS
/// Operands prepared for an elementwise call: promoted, and on one device; at most one is a number.
struct Prepared {
  static constexpr int kMax = 3;
  Tensor tensors[kMax];
  TensorImpl* operands[kMax] = {};
  Scalar scalar;
};
/// The properties of an op that prepare() needs.
struct Typing {
  const OpInfo& op;
  Promotion promotion;
  bool integers, booleans;
  int first = 0;  // the operands before it keep their dtype
};
template <class Op>
inline constexpr Typing typing{info<Op>, Op::promotion, Op::integers, Op::booleans};
/// The dtype that an op computes in. Error(dtype_mismatch) for operands that do not promote or that the op is not
/// defined for.
ScalarType compute_dtype(const Typing& typing, std::span<const Operand> operands, SourceLocation where);
/// Promotes, and moves 0-dim tensors on the CPU to the device of the other operands. Error(dtype_mismatch) as above.
void prepare(Prepared& out, const Typing& typing, std::span<const Operand> operands, SourceLocation where);

/// True when two tensors can go into a call as they are.
inline bool is_ready(const TensorImpl& a, const TensorImpl& b) {
  return a.dtype() == b.dtype() && a.device() == b.device() && is_floating(a.dtype()) &&
         !is_float8(a.dtype());
}

/// The public function of an elementwise op: rg::tanh(x), rg::mul(a, b), rg::leaky_relu(x, 0.2).
template <class Op>
struct Function {
  template <class... Args>
  requires(Op::arity == 1) Tensor operator()(const Operand& x, Args... attrs) const {
    const Tensor& input = x.defined_tensor(Op::name);
    if (is_floating(input.dtype()) && !is_float8(input.dtype()))
      return emit<Op>({input.get()}, typename Op::Attrs{attrs...}, x.where());
    Prepared p;
    prepare(p, typing<Op>, {&x, 1}, x.where());
    return emit<Op>({p.operands[0]}, typename Op::Attrs{attrs...}, x.where());
  }

  Tensor operator()(const Operand& a, const Operand& b) const requires(Op::arity == 2) {
    check(a), check(b);
    if (!a.is_scalar() && !b.is_scalar() && is_ready(a.tensor().impl(), b.tensor().impl()))
      return emit<Op>({a.tensor().get(), b.tensor().get()}, {}, a.where());
    const Operand both[] = {a, b};
    Prepared p;
    prepare(p, typing<Op>, both, a.where());
    return emit<Op>({p.operands[0], p.operands[1]}, with_scalar(p, {}), a.where());
  }

  Tensor operator()(Operand a, Operand b, Operand c, typename Op::Attrs attrs = {}) const
      requires(Op::arity == 3) {
    check(a);  // the other operands may be missing
    const Operand all[] = {a, b, c};
    Prepared p;
    prepare(p, typing<Op>, all, a.where());
    return emit<Op>({p.operands[0], p.operands[1], p.operands[2]}, with_scalar(p, attrs), a.where());
  }

 private:
  // A tensor must be defined if it is given.
  static void check(const Operand& x) {
    if (!x.is_scalar()) x.defined_tensor(Op::name);
  }
  static typename Op::Attrs with_scalar(const Prepared& p, typename Op::Attrs attrs) {
    if constexpr (requires { attrs.scalar; }) attrs.scalar = p.scalar;
    return attrs;
  }
};

#endif  // RG_FORMULAS

}  // namespace ops
}  // namespace retrograd
#pragma GCC visibility pop
