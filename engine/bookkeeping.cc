// Kernels of the bookkeeping ops: see engine/bookkeeping.h.
#include "engine/bookkeeping.h"

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/basic_ops.h"
#include "engine/function.h"
#include "engine/region.h"
#include "engine/runner.h"

namespace retrograd::inline v0 {
namespace {

Tensor handle(TensorImpl* impl) { return impl ? Tensor(RefPtr<TensorImpl>(impl)) : Tensor(); }

void check_result(const TensorImpl* before, const Tensor& after, std::string_view what,
                  SourceLocation registered) {
  if (after.defined() && before && after.impl().type() == before->type()) return;
  fail(
      Category::hook_bad_result, what,
      fmt::format("the hook registered here gave {} in place of a gradient of type {}. Hint: give one of the "
                  "same type, or an undefined tensor to keep it",
                  describe(after), before ? to_string(before->type()) : std::string("undefined")),
      registered);
}

void run_list_hook(const HookAttrs& attrs, std::span<TensorImpl* const> operands, std::span<Tensor> results) {
  Hook& hook = *attrs.hook;
  Tensors grads, grad_outputs;
  for (size_t i = 0; i < operands.size(); ++i)
    (static_cast<int>(i) < attrs.grad_inputs ? grads : grad_outputs).push_back(handle(operands[i]));
  Tensors given = hook.kind == Hook::Kind::pre ? hook.pre(grads) : hook.post(grads, grad_outputs);
  if (!given.empty() && given.size() != grads.size())
    fail(Category::hook_bad_result, "node hook",
         fmt::format("the hook registered here gave {} gradients in place of {}. Hint: give as many, or none "
                     "to keep them",
                     given.size(), grads.size()),
         hook.where);
  for (size_t i = 0; i < results.size(); ++i) {
    const bool replaced = !given.empty() && given[i].defined();
    if (replaced) check_result(grads[i].get(), given[i], "node hook", hook.where);
    results[i] = replaced ? given[i] : grads[i];
  }
}

// An operand that belongs to another record (an op may return what it was given) has nothing to pack here.
void emit_pack(const Call& call, Tensor*) {
  const RefPtr<SavedTensorHooks> pair(call.attrs_as<PackAttrs>().pair);
  for (TensorImpl* x : call.operands) {
    if (!x || !x->grad_fn || x->grad_fn->was_packed) continue;
    const RefPtr<Record> record = x->grad_fn;
    for (int i = 0; i < record->slots; ++i) pack_slot(*record, record->slot(i), pair);
  }
}

void emit_unpack(const Call& call, Tensor* results) {
  const UnpackAttrs& attrs = call.attrs_as<UnpackAttrs>();
  results[0] = attrs.region ? attrs.region->kept(static_cast<size_t>(attrs.slot))
                            : unpack(*attrs.record, attrs.record->slot(attrs.slot));
}

void emit_hook(const Call& call, Tensor* results) {
  run_hook(call.attrs_as<HookAttrs>(), call.operands, {results, static_cast<size_t>(call.outputs)});
}

void emit_accumulate_grad(const Call& call, Tensor*) {
  accumulate_into_leaf(*call.attrs_as<AccumulateGradAttrs>().leaf, *call.operands[0]);
}

void emit_retain_grad(const Call& call, Tensor*) {
  retain_gradient(*call.attrs_as<RetainGradAttrs>().box, handle(call.operands[0]));
}

void emit_function_backward(const Call& call, Tensor* results) {
  Record& record = *call.attrs_as<FunctionBackwardAttrs>().record;
  record.op->host_backward(record, call.operands, results);
}

void infer_accumulate(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &a = *call.operands[0], &b = *call.operands[1];
  if (!(a.type() == b.type()))
    fail_call(call, Category::cotangent_mismatch, "two gradients of one value have different types");
  outputs[0]->set_type(a.dtype(), a.device(), a.shape());
}

void accumulate_vjp(RuleContext& c) {
  for (int i = 0; i < 2; ++i)
    if (c.needs(i)) c.give(i, c.grad());
}

void accumulate_jvp(TangentContext& c) {
  if (!c.needs(0) || !c.needs(1))
    c.give(0, c.needs(0) ? c.tangent(0) : c.tangent(1));
  else
    c.give(0, basic::add(c.tangent(0), c.tangent(1)));
}

// Runs the code that the attributes name, in place of `live` if there is any.
template <void (*live)(const Call&, Tensor*)>
void run(const Call& call, Tensor* results) {
  const RefPtr<HostCode> code(call.attrs_as<HostAttrs>().code);
  if (code) return code->run(call.operands, results);
  if constexpr (live != nullptr)
    live(call, results);
  else
    RG_ASSERT(code);
}

template <void (*live)(const Call&, Tensor*)>
constexpr OpInfo host_op(std::string_view name, int8_t arity, int8_t outputs, std::string_view doc) {
  OpInfo info;
  info.name = name;
  info.traits = Trait::effect | Trait::host | Trait::bookkeeping;
  info.arity = arity;
  info.outputs = outputs;
  info.run_on_host = run<live>;
  info.doc = doc;
  return info;
}

constexpr OpInfo code_op(std::string_view name, std::string_view doc) {
  return host_op<nullptr>(name, -1, -1, doc);
}

constexpr OpInfo accumulate_info() {
  OpInfo info;
  info.name = "accumulate";
  info.traits = Trait::pure | Trait::elementwise;
  info.arity = 2;
  info.infer = infer_accumulate;
  info.vjp = accumulate_vjp;
  info.jvp = accumulate_jvp;
  info.batch = ops::batch_leading;
  info.doc = "sum of two gradients of one value";
  return info;
}

}  // namespace

namespace ops {
constinit const OpInfo unpack = host_op<emit_unpack>("unpack", -1, 1, "gives the value of a slot");
constinit const OpInfo hook = host_op<emit_hook>("hook", -1, -1, "calls a hook");
constinit const OpInfo accumulate_grad =
    host_op<emit_accumulate_grad>("accumulate_grad", 1, 0, "adds a gradient to a leaf's");
constinit const OpInfo pack =
    host_op<emit_pack>("pack", -1, -1, "gives what a record saves to a pair of saved-tensor hooks");
constinit const OpInfo retain_grad =
    host_op<emit_retain_grad>("retain_grad", 1, 0, "keeps the gradient of a non-leaf");
constinit const OpInfo function_backward =
    host_op<emit_function_backward>("function_backward", -1, -1, "calls backward of a user's function");
constinit const OpInfo function = code_op("function", "calls forward of a user's function");
constinit const OpInfo post_accumulate = code_op("post_accumulate", "calls a hook on a leaf");
constinit const OpInfo give_grad = code_op("give_grad", "puts a gradient where user code sees it");
constinit const OpInfo write_out = code_op("write_out", "writes a value where user code sees it");
constinit const OpInfo begin_backward =
    code_op("begin_backward", "makes visible to hooks what a backward reaches");
constinit const OpInfo end_backward =
    code_op("end_backward", "calls what was queued for the end of a backward");
constinit const OpInfo note_versions = code_op("note_versions", "notes the versions of saved inputs");
constinit const OpInfo check_version = code_op("check_version", "refuses a saved input that was written to");
constinit const OpInfo accumulate = accumulate_info();
}  // namespace ops

void run_hook(const HookAttrs& attrs, std::span<TensorImpl* const> operands, std::span<Tensor> results) {
  Hook& hook = *attrs.hook;
  const Hook::Call call(hook);
  if (!call) {  // another thread has removed it
    for (size_t i = 0; i < results.size(); ++i) results[i] = handle(operands[i]);
    return;
  }
  CallScope::Suspend users_own_lines;
  const detail::AutocastOff no_casts;
  const UnknownLayouts as_when_recorded(hook.traceable);
  if (hook.kind == Hook::Kind::post_accumulate) return hook.post_accumulate(handle(attrs.leaf));
  if (hook.kind != Hook::Kind::tensor) return run_list_hook(attrs, operands, results);
  Tensor before = handle(operands[0]);
  Tensor after = hook.tensor(before);
  if (!after.defined())
    after = std::move(before);
  else
    check_result(operands[0], after, "tensor hook", hook.where);
  results[0] = std::move(after);
}

void retain_gradient(GradBox& box, const Tensor& grad) {
  // The memory of `grad` is visible to others, too.
  box.grad = box.grad.defined() ? basic::add(box.grad, grad) : basic::clone(grad);
}

}  // namespace retrograd
