// Runner: the emitter that runs each call at once on an executor. Eager execution, and the reference that every optimisation is compared with.
#pragma once

#include "engine/emitter.h"
#include "engine/executor.h"

namespace retrograd {

class Runner final : public Emitter {
 public:
  explicit Runner(Executor& executor) : executor_(&executor) {}
  void emit(const Call& call, Tensor* results) override;
  std::string name() const override { return "Runner"; }
  Values values() const override { return Values::computed; }

 private:
  Executor* executor_;
};

/// The executor of the CPU.
Executor& cpu_executor();

/// Runs an elementwise call at once, with `destination` as its output: how in-place ops write. The destination has the call's result type;
/// its version is raised. Records nothing.
void run_into(const Call& call, const Tensor& destination);

/// Makes `output` the view of `operand` that a view op's layout() describes.
void make_view(const Call& call, TensorImpl& operand, TensorImpl& output);

}  // namespace retrograd
