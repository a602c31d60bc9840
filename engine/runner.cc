// See engine/runner.h.
#include "engine/runner.h"

#include <fmt/format.h>

#include "engine/basic_ops.h"
#include "engine/bookkeeping.h"
#include "engine/device.h"

namespace retrograd::inline v0 {

void note_base(TensorImpl& operand, TensorImpl& view) {
  view.base = operand.base ? operand.base : RefPtr<TensorImpl>(&operand);
  view.is_no_grad_view = operand.is_no_grad_view;
  view.is_multi_output_view = operand.is_multi_output_view;
  view.is_function_view = operand.is_function_view;
  view.set_made_at_version(operand.storage()->version());
  if (const AutogradMeta* meta = view.base->meta.get(); meta && meta->epoch)
    view.need_meta().base_epoch = meta->epoch;
}

void make_view(const Call& call, TensorImpl& operand, TensorImpl& output) {
  call.op->layout(call, output);
  output.set_storage(operand.storage());
  // detach has none: not part of the history of the memory that it shares
  if (call.op->vjp) note_base(operand, output);
}

Device device_of(const Call& call, const TensorImpl* const* outputs) {
  const Device device = call.outputs > 0 ? outputs[0]->device() : Device();
  if (device.type() != DeviceType::CPU || call.operands.empty() || !call.operands[0]) return device;
  return call.operands[0]->device();
}

void check_operands(const Call& call, bool with_data) {
  const OpInfo& op = *call.op;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const TensorImpl* x = call.operands[i];
    if (!x && op.arity > 0 && !(op.optional >> i & 1)) [[unlikely]]
      fail_call(call, Category::bad_argument, fmt::format("operand {} is undefined", i));
    if (with_data && x && x->graph) [[unlikely]]
      fail_call(call, Category::bad_argument, no_data_text(*x));
  }
  check_devices(call);
}

void run_into(const Call& call, const Tensor& destination) {
  Executor& executor = executor_of(destination.device());
  const Kernel kernel = executor.find(call.op);
  if (!kernel) fail_call(call, Category::unsupported, "it cannot run in place");
  TensorImpl* output = destination.get();
  output->storage()->will_be_written();
  executor.launch(kernel, call, &output);
  output->storage()->bump_version(call.where);
}

namespace {

// The sum of two cotangents is written into the first one's memory when nobody else can see it and no gradient is
// recorded.
bool accumulate_in_place(const Call& call, Tensor* results) {
  if (call.op != &ops::accumulate || GradMode::is_enabled()) return false;
  TensorImpl& into = *call.operands[0];
  if (!into.is_unshared() || !into.is_contiguous() || into.requires_grad || into.meta) return false;
  results[0] = Tensor(RefPtr<TensorImpl>(&into));
  return true;
}

constexpr int64_t kFewElements = 2048;  // with more, a kernel that cuts its work into chunks is faster
constexpr size_t kFewOperands = 3;

bool has_type_and_strides(const TensorImpl& x, const TensorImpl& of) {
  if (x.dtype() != of.dtype() || !(x.device() == of.device()) || x.rank() != of.rank()) return false;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t size = x.shape()[i].raw();
    if (size != of.shape()[i].raw() || (size > 1 && x.strides()[i] != of.strides()[i])) return false;
  }
  return true;
}

}  // namespace

void Runner::emit(const Call& call, Tensor* results) {
  if (call.op->run_on_host) return call.op->run_on_host(call, results);
  if (call.op->infer != ops::infer_elementwise || !run_on_few(call, *results)) run(call, results);
}

// An elementwise op on a few elements of dense operands with equal types and strides: its result has the same type and
// strides, and only the inner loop of the kernel runs. Most of the cost of a small op is in its type rule, the executor
// and the kernel's setup, which nearly always give this answer. Returns false, with nothing done, when they would not.
bool Runner::run_on_few(const Call& call, Tensor& result) {
  if (call.operands.empty() || call.operands.size() > kFewOperands) return false;
  const TensorImpl* first = call.operands[0];
  if (!first || first->graph || first->device().type() != DeviceType::CPU) return false;
  const int64_t elements = first->contiguous_numel();
  if (elements < 0 || elements > kFewElements) return false;
  const void* in[kFewOperands] = {first->data()};
  for (size_t i = 1; i < call.operands.size(); ++i) {
    const TensorImpl* x = call.operands[i];
    if (!x || x->graph || !has_type_and_strides(*x, *first)) return false;
    in[i] = x->data();
  }
  const SpanKernel span = executor_->find_span(call.op, first->dtype());
  if (!span) return false;
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(first->dtype(), first->device(), first->shape());
  executor_->allocate(*cell);
  span(cell->data(), in, elements, call.attrs);
  result = Tensor(std::move(cell));
  return true;
}

void Runner::run(const Call& call, Tensor* results) {
  const OpInfo& op = *call.op;
  check_operands(call, true);
  TensorImpl* outputs[kMaxOutputs];
  const bool in_place = accumulate_in_place(call, results);
  for (int i = 0; i < call.outputs; ++i) {
    if (!in_place) results[i] = Tensor(TensorImpl::make());
    outputs[i] = results[i].get();
  }
  if (!in_place) op.infer(call, outputs);
  if (op.is(Trait::view)) return make_view(call, *call.operands[0], *outputs[0]);
  const Device device = device_of(call, outputs);
  Executor& executor = device.type() == DeviceType::CPU ? *executor_ : executor_of(device);
  const Kernel kernel = executor.find(&op);
  if (!kernel)
    fail_call(call, Category::unsupported,
              fmt::format("the {} executor has no kernel for it", executor.name()));
  if (!in_place)
    for (int i = 0; i < call.outputs; ++i) executor.allocate(*outputs[i]);
  executor.launch(kernel, call, outputs);
}

void synchronize(Device device) { executor_of(device).synchronize(); }

namespace memory {

int64_t live_bytes(Device device) { return executor_of(device).live_bytes(); }
int64_t peak_bytes(Device device) { return executor_of(device).peak_bytes(); }
void reset_peak(Device device) { executor_of(device).reset_peak(); }

}  // namespace memory

}  // namespace retrograd
