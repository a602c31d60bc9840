// Steps of optimizers as ops: new values of a parameter and of the optimizer's state, from the old ones and a gradient.
//
// Result k is the new value of operand k, and a kernel may compute it into that operand's memory (Trait::updates): so optim/ steps in place,
// and the plan of a recorded step does, too. All numbers that may change from step to step are Scalars: inputs of a recorded step.
// Formulas and names as in PyTorch (torch.optim.AdamW, torch.optim.SGD); the options and their meaning are in optim/adamw.h and optim/sgd.h.
// Limits: float32 and float64; row-major.
#pragma once

#include "ops/op.h"

namespace retrograd::ops {

/// What steps have in common: all operands have the parameter's type.
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

using OptimizerOps = OpList<AdamWStep, SGDStep>;

/// What an UpdateList holds, apart from numbers.
class UpdateBatch {
 public:
  UpdateBatch(const OpInfo& op, SourceLocation where) : op_(op), where_(effective_location(where)) {}

  /// While a function is recorded: makes a node, writes its results to the operands. Else false.
  bool record(std::span<const Tensor> operands, void* attrs) const;
  /// Whether a step has what those in the batch have: dtype, device, and the same operands left out.
  bool fits(std::span<const Tensor> operands) const;
  void append(std::span<const Tensor> operands);
  void run(void* attrs);

 private:
  bool is_independent() const;
  void launch(std::span<const Tensor> operands, void* attrs) const;

  const OpInfo& op_;
  const SourceLocation where_;
  Tensors operands_;  // of all steps
};

/// Steps of optimizers: the values of the first tensors of each, those before the last that are defined, are replaced.
/// While a function is recorded each is a node at once. Otherwise those with the same numbers that follow each other are
/// computed in one pass over the memory of all of them, at the latest when the list is gone, with results as if they
/// were computed in order.
///
/// The kernel gets them as one call: the operands of each step one after the other, results alike, one set of attributes.
template <class Op>
class UpdateList {
 public:
  using Attrs = typename Op::Attrs;

  explicit UpdateList(SourceLocation where) : batch_(info<Op>, where) {}
  UpdateList(const UpdateList&) = delete;
  /// What was added is computed when an error ended the loop that adds, too: its steps are counted.
  ~UpdateList() {
    try {
      run();
    } catch (...) {  // while another error is on its way
    }
  }

  /// `operands` of the op, which are kept alive.
  void add(std::span<const Tensor> operands, Attrs attrs) {
    if (batch_.record(operands, &attrs)) return;
    if (!batch_.fits(operands) || !(attrs == attrs_)) run();
    attrs_ = attrs;
    batch_.append(operands);
  }
  /// Computes what was added.
  void run() { batch_.run(&attrs_); }

 private:
  UpdateBatch batch_;
  Attrs attrs_ = {};
};

}  // namespace retrograd::ops
