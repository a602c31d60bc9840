// Taper: the emitter of reverse mode. It emits into the emitter below. When gradient mode is on and an operand wants a
// gradient, it also appends a tape record and links the results to it. Under autocast (engine/autocast.h) it casts the
// operands first.
#pragma once

#include "engine/tape.h"

namespace retrograd::inline v0 {

class Taper final : public PassThrough {
 public:
  explicit Taper(Emitter& below) : PassThrough("Taper", below) {}
  void emit(const Call& call, Tensor* results) override;

 private:
  void emit_as_given(const Call& call, Tensor* results);
  [[gnu::noinline]] void emit_cast(const Call& call, Tensor* results);
  [[gnu::noinline]] void emit_and_record(const Call& call, Tensor* results);
  [[gnu::noinline]] void emit_without_record(const Call& call, Tensor* results);
  void emit_unpack(const Call& call, Tensor* results);
  void run(const Call& call, Tensor* results);
};

}  // namespace retrograd
