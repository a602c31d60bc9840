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

/// Replaces the values of the first tensors of `operands`, those before the last that are defined, by what the step gives: in their
/// memory, or as new values while a function is recorded. `attrs` is Op::Attrs.
void run_update(const OpInfo& op, std::span<TensorImpl* const> operands, void* attrs, SourceLocation where);

}  // namespace retrograd::ops
