// Runner: the emitter that runs each call immediately on the executor it is given, or on that of the device where
// tensors are on another device than the CPU. It is eager execution, and the reference for every optimisation. Most of
// the cost of a small op is the handling of types and layouts: an elementwise op on few elements of operands that are
// alike runs the inner loop of its kernel directly, as in a plan.
#pragma once

#include "engine/emitter.h"
#include "engine/executor.h"

namespace retrograd::inline v0 {

class Runner final : public Emitter {
 public:
  explicit Runner(Executor& executor) : executor_(&executor) {}
  void emit(const Call& call, Tensor* results) override;
  std::string name() const override { return "Runner"; }
  Values values() const override { return Values::computed; }

 private:
  bool run_on_few(const Call& call, Tensor& result);
  void run(const Call& call, Tensor* results);

  Executor* executor_;
};

/// The executor of the CPU, and that of a CUDA device: Error(bad_argument) when there is no such device; the text says
/// why.
Executor& cpu_executor();
Executor& cuda_executor(int index);
inline Executor& executor_of(Device device) {
  return device.type() == DeviceType::CPU ? cpu_executor() : cuda_executor(device.index());
}
/// The device that a call runs on: that of its results, or that of its first operand when the call copies to the CPU.
Device device_of(const Call& call, const TensorImpl* const* outputs);

/// Runs an elementwise call immediately, with `destination` as its output: the way in-place ops write. The destination
/// has the call's result type; its version is raised. Records nothing.
void run_into(const Call& call, const Tensor& destination);

/// Error(bad_argument) for a missing operand that the op needs, for one without data (if `with_data`), and for several
/// devices.
void check_operands(const Call& call, bool with_data);

/// Notes that `view`, which shares the memory of `operand`, is part of its history: its base, and how it was made.
void note_base(TensorImpl& operand, TensorImpl& view);

/// Makes `output` the view of `operand` that the layout() of a view op describes.
void make_view(const Call& call, TensorImpl& operand, TensorImpl& output);

}  // namespace retrograd
