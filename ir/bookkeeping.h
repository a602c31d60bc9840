// The ops of automatic differentiation itself. They stand in the same table as all others and print, hash and run like them, but their
// operands are inputs of a captured graph (a slot, a hook, a leaf), so the Recorder treats each by name (tracer/recorder.cc), and the Taper
// and Dual never apply a rule to them, save for `accumulate`, which is an addition.
//
// Attributes point at the live objects; a graph node of one of these ops has an input of the matching kind as its first operand instead.
#pragma once

#include "engine/tape.h"
#include "ir/op.h"

namespace retrograd {

struct UnpackAttrs {
  Record* record;
  int slot;
};

/// One hook at one place. tensor: operands (g), results (g'). pre: grad_outputs both ways. post: grad_inputs then grad_outputs, results
/// grad_inputs. post_accumulate: no operands, no results, the leaf.
struct HookAttrs {
  Hook* hook;
  TensorImpl* leaf = nullptr;
  int grad_inputs = 0;  // post: how many of the operands are grad_inputs
};

struct AccumulateGradAttrs {
  TensorImpl* leaf;
};

struct RetainGradAttrs {
  GradBox* box;
};

/// Calls backward of the function that made the record (engine/function.h): operands the gradients of its results, then its saved tensors;
/// results the gradients of its arguments, undefined where there is none.
struct FunctionBackwardAttrs {
  Record* record;
};

/// Packs what the record that made the results saved, slot by slot, if there is such a record and it is not packed yet. Of a function that is
/// recorded: the operand is the value of one slot, and what unpack will be given goes to `payload`.
struct PackAttrs {
  SavedTensorHooks* pair;
  Record* owner = nullptr;
  const Slot* slot = nullptr;
  std::any* payload = nullptr;
};

namespace ops {
extern const OpInfo pack;               // (results of one call) -> ()
extern const OpInfo unpack;             // () -> value
extern const OpInfo hook;               // (gradients) -> gradients
extern const OpInfo accumulate;         // (a, b) -> a + b, into a's memory when nobody else sees it
extern const OpInfo accumulate_grad;    // (g) -> ()
extern const OpInfo retain_grad;        // (g) -> ()
extern const OpInfo function_backward;  // (gradients, saved) -> gradients
}  // namespace ops

/// Whether `grad` has the layout that leaf.grad shall have: the leaf's where it is dense, else row-major (PyTorch's gradient layout contract).
bool has_layout_of_grad(const TensorImpl& grad, const TensorImpl& leaf);

/// Adds `grad` to leaf.grad: takes it over when there is none yet and nobody else sees it, adds in place where that is allowed, else
/// makes a new tensor. `grad` may be held by the caller only.
void accumulate_into_leaf(TensorImpl& leaf, TensorImpl& grad);
/// What retain_grad does: adds to what the box has.
void retain_gradient(GradBox& box, const Tensor& grad);
/// Runs a hook and checks what it gives.
void run_hook(const HookAttrs& attrs, std::span<TensorImpl* const> operands, std::span<Tensor> results);

}  // namespace retrograd
