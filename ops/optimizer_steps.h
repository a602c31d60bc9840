// Steps of optimizers as ops: new values of a parameter and of the optimizer's state, from the old ones and a gradient.
//
// Result k is the new value of operand k, and a kernel may compute it in that operand's memory (Trait::updates): so
// optim/ steps in place, and the plan of a recorded step does, too. All numbers that may change from step to step are
// Scalars: inputs of a recorded step. Formulas and names as in PyTorch (torch.optim.AdamW, torch.optim.SGD);
// optim/adamw.h and optim/sgd.h explain the options. In 16 bits an update is computed in float32 and each new value
// rounded once, as in PyTorch's fused optimizers.
//
// A step is an op here with its numbers_of(), a formula in ops/optimizer_formulas.h, and an entry in the list of each.
// Limits: float32, float64, bfloat16 and float16; row-major.
#pragma once

#include <type_traits>
#include <utility>

#include "ops/op.h"
#include "ops/optimizer_formulas.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

/// The dtypes that a parameter may have.
inline bool may_be_updated(ScalarType dtype) {
  return dtype == kFloat32 || dtype == kFloat64 || dtype == kBFloat16 || dtype == kFloat16;
}

/// Common properties of steps: all operands have the parameter's type.
struct UpdateOp {
  static constexpr uint32_t traits = Trait::pure | Trait::updates;
  static constexpr int8_t outputs = -1;
  static constexpr std::string_view no_derivative = "a step of an optimizer is not differentiated";
  static void infer(const Call& call, TensorImpl* const* outputs);
};

/// (p, m, v, largest, g): p, m, v, and largest with amsgrad. With t the step, counted from 1:
///   m += (g - m) (1 - beta1);  v = beta2 v + (1 - beta2) g^2;  largest = max(largest, v)
///   p = p (1 - lr * weight_decay) - lr / (1 - beta1^t) * m / (sqrt(v or largest) / sqrt(1 - beta2^t) + eps)
struct AdamWStep : UpdateOp {
  struct Attrs {
    Scalar lr, beta1, beta2, eps, weight_decay, step;
    bool maximize = false;
    bool operator==(const Attrs&) const = default;
    void visit(AttrVisitor& v) {
      v.field("lr", lr);
      v.field("beta1", beta1);
      v.field("beta2", beta2);
      v.field("eps", eps);
      v.field("weight_decay", weight_decay);
      v.field("step", step);
      v.field("maximize", maximize);
    }
  };
  static constexpr std::string_view name = "adamw_step", doc = "a step of AdamW";
  static constexpr std::string_view operands = "param, exp_avg, exp_avg_sq, max_exp_avg_sq, grad";
  static constexpr std::string_view example =
      "f32[3], f32[3], f32[3], f32[3], f32[3] {lr=0.1, beta1=0.9, beta2=0.999, eps=1e-08, weight_decay=0.01, "
      "step=1, "
      "maximize=false} : f32[3], f32[3], f32[3], f32[3]";
  static constexpr int8_t arity = 5;
  static constexpr uint8_t optional = 8;
};
/// What the formula of a step needs of its attributes.
AdamWNumbers numbers_of(const AdamWStep::Attrs& a);

/// (p, buffer, g): p, and buffer with momentum.
///   g = g + weight_decay * p;  buffer = keep * buffer + fresh * g
///   p -= lr * (nesterov: g + momentum * buffer; else buffer, or g without one)
/// keep and fresh are momentum and 1 - dampening; 0 and 1 at the first step.
struct SGDStep : UpdateOp {
  struct Attrs {
    Scalar lr, weight_decay, momentum, keep, fresh;
    bool nesterov = false, maximize = false;
    bool operator==(const Attrs&) const = default;
    void visit(AttrVisitor& v) {
      v.field("lr", lr);
      v.field("weight_decay", weight_decay);
      v.field("momentum", momentum);
      v.field("keep", keep);
      v.field("fresh", fresh);
      v.field("nesterov", nesterov);
      v.field("maximize", maximize);
    }
  };
  static constexpr std::string_view name = "sgd_step", doc = "a step of stochastic gradient descent";
  static constexpr std::string_view operands = "param, momentum_buffer, grad";
  static constexpr std::string_view example =
      "f32[3], f32[3], f32[3] {lr=0.1, weight_decay=0, momentum=0.9, keep=0.9, fresh=1, nesterov=false, "
      "maximize=false} : f32[3], f32[3]";
  static constexpr int8_t arity = 3;
  static constexpr uint8_t optional = 2;
};
SGDNumbers numbers_of(const SGDStep::Attrs& a);

using OptimizerOps = OpList<AdamWStep, SGDStep>;

/// Whether a formula is that of a step: of its operands, with its numbers.
template <class Op, template <class> class Formula>
constexpr bool is_formula_of() {
  using F = Formula<AnyNumber>;
  using Numbers = decltype(numbers_of(std::declval<const typename Op::Attrs&>()));
  return std::is_same_v<typename F::Numbers, Numbers> && F::inputs == Op::arity &&
         F::outputs == Op::arity - 1 && Op::optional == (F::optional < 0 ? 0 : 1 << F::optional);
}
template <class... Op, template <class> class... Formula>
constexpr bool are_formulas_of(OpList<Op...>, FormulaList<Formula...>) {
  if constexpr (sizeof...(Op) != sizeof...(Formula))
    return false;
  else
    return (is_formula_of<Op, Formula>() && ...);
}
static_assert(are_formulas_of(OptimizerOps(), OptimizerFormulas()),
              "the lists of steps and of formulas differ");

/// The non-numeric part of an UpdateList. Updates are numbered from 0, in the order in which they were added.
class UpdateBatch {
 public:
  UpdateBatch(const OpInfo& op, SourceLocation where);

  void add(std::span<const Tensor> operands, int64_t* steps);
  /// Whether two updates agree in dtype, device, and the operands that are omitted. Never while a function is recorded.
  bool may_join(size_t a, size_t b) const;
  /// Runs the updates from `begin` to `end`, which may be joined.
  void run(size_t begin, size_t end, void* attrs) const;

 private:
  std::span<const Tensor> operands(size_t begin, size_t end) const {
    return {operands_.data() + begin * arity_, (end - begin) * arity_};
  }
  bool is_independent(std::span<const Tensor> operands) const;
  void record(std::span<const Tensor> operands, void* attrs) const;
  void launch(size_t begin, size_t end, void* attrs) const;

  const OpInfo& op_;
  const size_t arity_ = static_cast<size_t>(op_.arity);
  const SourceLocation where_;
  const bool is_recorded_;
  Tensors operands_;             // of all updates
  std::vector<int64_t*> steps_;  // of each; null: no step count
};

/// Steps of optimizers: the values of the first tensors of each are replaced, namely of those before its last defined
/// tensor, the gradient. While a function is recorded each is a node. Otherwise consecutive updates with the same
/// numbers are computed in one pass over the memory of all of them, with results as if they were computed in order.
///
/// The kernel gets them as one call: the operands of all steps, concatenated, the results likewise, and one set of
/// attributes.
template <class Op>
class UpdateList {
 public:
  using Attrs = typename Op::Attrs;

  explicit UpdateList(SourceLocation where) : batch_(info<Op>, where) {}
  UpdateList(const UpdateList&) = delete;

  /// `operands` of the op, which are kept alive. `steps` is incremented when they have been computed.
  void add(std::span<const Tensor> operands, const Attrs& attrs, int64_t* steps = nullptr) {
    batch_.add(operands, steps);
    attrs_.push_back(attrs);
  }
  /// Computes the added updates, once. An error says how many were done before it.
  void run() {
    for (size_t begin = 0, end = 0; begin < attrs_.size(); begin = end) {
      ++end;
      while (end < attrs_.size() && batch_.may_join(begin, end) && attrs_[end] == attrs_[begin]) ++end;
      batch_.run(begin, end, &attrs_[begin]);
    }
  }

 private:
  UpdateBatch batch_;
  std::vector<Attrs> attrs_;
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
