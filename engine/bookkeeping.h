// The bookkeeping ops: those of automatic differentiation itself, and those of a recorded function that run code of the
// user. They are in the same table as all other ops and print, hash and run like them. But each acts on an object: a
// slot, a leaf, a hook, HostCode. A node names it as an input of the matching kind (its handle); in a call the
// attributes point at it. So the Recorders treat these ops by name, and the Taper and Dual never apply a rule to them,
// except for `accumulate`, which is an addition.
//
// pack, unpack and function_backward act either on the object of a live tape or on HostCode. A recorded function hands
// what is no tensor (what a pack hook made, the context of a function) from one node to another as an **opaque value**:
// a tensor without elements that owns the object (tracer/function/opaque_value.h).
#pragma once

#include "engine/host_code.h"
#include "engine/tape.h"

namespace retrograd::inline v0 {

/// Of slot `slot` of the record or, if there is a region, of the tensor `slot` that it keeps.
struct UnpackAttrs : HostAttrs {
  Record* record;
  int slot;
  Region* region = nullptr;
};

/// A call of one hook. tensor: operands (g), results (g'). pre: operands and results are grad_outputs. post: operands
/// are grad_inputs, then grad_outputs; results are grad_inputs. post_accumulate: no operands and no results; it acts on
/// the leaf.
struct HookAttrs : HostAttrs {
  Hook* hook;
  TensorImpl* leaf = nullptr;
  int grad_inputs = 0;  // post: the number of operands that are grad_inputs
};

struct AccumulateGradAttrs : HostAttrs {
  TensorImpl* leaf;
};

struct RetainGradAttrs : HostAttrs {
  GradBox* box;
};

/// Calls backward of the function that made the record (engine/function.h). Operands: the gradients of its results,
/// then its saved tensors. Results: the gradients of its arguments, undefined where there is none.
struct FunctionBackwardAttrs : HostAttrs {
  Record* record;
};

/// Packs what the record of the results has saved, slot by slot, if there is such a record and it is not packed yet.
/// While a function is recorded: the operand is the value of one slot, and `payload` receives what unpack will be
/// given; nothing: the slot keeps the value.
struct PackAttrs : HostAttrs {
  SavedTensorHooks* pair;
  Record* owner = nullptr;
  const Slot* slot = nullptr;
  std::any* payload = nullptr;
};

namespace ops {
extern const OpInfo pack;             // pair: (results of one call) -> (); code: (value) -> opaque value
extern const OpInfo unpack;           // slot: () -> value; code: (opaque value) -> value
extern const OpInfo hook;             // (gradients) -> gradients
extern const OpInfo accumulate;       // (a, b) -> a + b, in a's memory when nobody else can see it
extern const OpInfo accumulate_grad;  // (g) -> ()
extern const OpInfo retain_grad;      // (g) -> ()
// Function: (gradients, saved) -> gradients; code: opaque value before these.
extern const OpInfo function_backward;

// These act on code only.
extern const OpInfo function;  // (arguments) -> opaque value, results, other saved tensors: its forward
extern const OpInfo post_accumulate;  // (gradient) -> gradient: a hook on a leaf that has its new .grad
// (gradient) -> gradient: .grad of a leaf becomes it, before user code is called.
extern const OpInfo give_grad;
extern const OpInfo write_out;  // (input, value) -> input: the same for memory that was written to
// (any, arguments) -> opaque value: hooks can ask what the backward reaches from here.
extern const OpInfo begin_backward;
extern const OpInfo end_backward;  // (opaque value) -> opaque value: to here; the queued callbacks are called
// (inputs) -> opaque value: versions as they are before user code is called.
extern const OpInfo note_versions;
extern const OpInfo check_version;  // (opaque value) -> opaque value: and must be where a saved value is used

/// Whether a node of `op` puts its operand where others hold it, and gives it on.
inline bool puts_outside(const OpInfo& op) { return &op == &give_grad || &op == &write_out; }
}  // namespace ops

/// What a call runs; null for a call that acts on another object.
inline HostCode* code_of(const Call& call) {
  return call.op->is(Trait::bookkeeping) && call.attrs ? call.attrs_as<HostAttrs>().code : nullptr;
}

/// Whether `grad` has the layout that leaf.grad must have: the leaf's if it is dense, else row-major (PyTorch's
/// gradient layout contract).
bool has_layout_of_grad(const TensorImpl& grad, const TensorImpl& leaf);

/// Adds `grad` to leaf.grad. Takes it over when leaf.grad is undefined and nobody else can see `grad`, adds in place
/// where that is allowed, and otherwise makes a new tensor. Nobody but the caller may hold `grad`.
void accumulate_into_leaf(TensorImpl& leaf, TensorImpl& grad);
/// The kernel of retain_grad: adds to the content of the box.
void retain_gradient(GradBox& box, const Tensor& grad);
/// Runs a hook and checks its results.
void run_hook(const HookAttrs& attrs, std::span<TensorImpl* const> operands, std::span<Tensor> results);

}  // namespace retrograd
