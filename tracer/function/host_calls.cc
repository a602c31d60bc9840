// See tracer/function/host_calls.h.
#include "tracer/function/host_calls.h"

#include "engine/runner.h"
#include "ops/shape_ops.h"
#include "tracer/function/function_recorder.h"
#include "tracer/function/opaque_value.h"

namespace retrograd::inline v0 {
namespace {

// Writes a value to an input.
class WriteOutCode final : public HostCode {
 public:
  WriteOutCode(const TensorType& type, bool all_memory) : all_memory_(all_memory) { types = {type}; }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    results[0] = all_memory_ ? row_of(*operands[0]) : seen(*operands[0]);
    if (operands[1]->storage() == operands[0]->storage())
      operands[0]->storage()->bump_version();
    else
      run_into({&ops::info<ops::Clone>, {&operands[1], 1}, nullptr, {}, 1}, results[0]);
  }
  void replay(std::span<TensorImpl* const> operands, Tensor* results) override {
    results[0] = Tensor(RefPtr<TensorImpl>(operands[1]));
  }

 private:
  const bool all_memory_;
};

}  // namespace

ir::ValueId HostCalls::emit(const OpInfo& op, std::span<const ir::ValueId> operands, RefPtr<HostCode> code,
                            SourceLocation where) {
  ir::Node& node = of_.graph().append(op, operands, nullptr, code->types);
  node.where = where;
  node.origin = of_.position().origin;
  const ir::ValueId first = node.first_result;
  node.handle = of_.inputs().add_code(std::move(code));
  of_.note_effect();
  of_.note_node(GradMode::is_enabled());
  return first;
}

void HostCalls::note_code() { (of_.forward() ? of_.forward()->host() : *this).calls_code_ = true; }

void HostCalls::before_pair(const SavedTensorHooks& pair) {
  if (!pair.is_pure) return before_code();
  note_code();
  publish();
}

void HostCalls::before_code() {
  note_code();
  backwards_.begin();
  versions_.code_follows();
  if (of_.forward()) return;
  publish();
  versions_.note_read();
}

// Includes .grad of leaves. The backward of a function writes nothing.
void HostCalls::publish() {
  if (of_.forward()) return;
  const std::vector<Root*>& roots = of_.memory().roots();
  for (size_t i = 0; i < roots.size(); ++i) publish(*roots[i]);
  of_.grads().publish();
}

void HostCalls::publish(Root& root) {
  if (!root.is_written || root.input < 0 || root.is_outside) return;
  of_.memory().check_alone(root);
  of_.memory().copy_present_values(root);
  const ir::ValueId operands[] = {of_.memory().input_value(root), root.value};
  root.value = emit(ops::write_out, operands,
                    RefPtr<HostCode>::adopt(new WriteOutCode(of_.graph().type(root.value), root.is_flat)));
  root.is_outside = root.was_outside = true;
  root.views.clear();
}

void HostCalls::emit_hook(const Call& call, Tensor* results) {
  const HookAttrs& attrs = call.attrs_as<HookAttrs>();
  const auto operand = [&](int i) { return call.operands[static_cast<size_t>(i)]; };
  // Leaves are outside: their hooks run where the gradients are delivered.
  if (of_.forward() && of_.position().at_leaf) {
    for (int i = 0; i < call.outputs; ++i) results[i] = Tensor(RefPtr<TensorImpl>(operand(i)));
    return;
  }
  if (attrs.hook->traceable || of_.is_nested())
    return run_hook(attrs, call.operands, {results, static_cast<size_t>(call.outputs)});
  if (GradMode::is_enabled())
    of_.cannot_record("hook", "an opaque hook in a backward with create_graph", attrs.hook->where);
  if (attrs.hook->kind == Hook::Kind::post_accumulate)
    return of_.grads().emit_post_accumulate(attrs, call.where);
  before_code();
  std::vector<TensorType> types;
  for (int i = 0; i < call.outputs; ++i) types.push_back(operand(i) ? operand(i)->type() : TensorType{});
  Call plain = call;
  plain.attrs = nullptr;
  ir::Node& node = of_.append(plain, types);
  const ir::ValueId first = node.first_result;
  of_.note_effect();
  node.handle = of_.inputs().add_hook(attrs.hook, attrs.leaf);
  for (int i = 0; i < call.outputs; ++i)
    if (operand(i)) results[i] = of_.make(operand(i)->type(), first + i);
}

}  // namespace retrograd
