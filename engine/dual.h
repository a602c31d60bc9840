// Dual: the emitter of forward mode at one level. It emits the primal into the emitter below. When an operand carries a
// tangent of its level, it also emits the op's jvp into the same emitter and notes the tangent on the result.
//
// The stack is Dual over Taper over Runner; a further level is a further Dual on top. So tangents have tape records of
// their own (reverse over forward). A cell carries its tangents with it, also into slots, so a backward that runs into
// this stack differentiates forward over reverse. A record saves its results before their tangents exist: Dual adds
// them to those slots, until the level ends. Levels never mix: each Dual sees the tangents of its own level only.
#pragma once

#include "engine/tape.h"

namespace retrograd::inline v0 {

class Dual final : public Emitter::Layer {
 public:
  explicit Dual(uint64_t level) : Layer("Dual"), level_(level) {}
  ~Dual();
  void emit(const Call& call, Tensor* results) override;

 private:
  void emit_as_given(const Call& call, Tensor* results);
  void note_in_slots(TensorImpl& result, const Tensor& tangent);
  void forget_tangents();

  uint64_t level_;
  // Cells with a tangent that has a record: the end of the level breaks these cycles.
  std::vector<RefPtr<TensorImpl>> cells_;
};

/// The tangent of `cell` at `level`; undefined when it has none.
Tensor tangent_of(const TensorImpl& cell, uint64_t level);
void set_tangent(TensorImpl& cell, uint64_t level, Tensor tangent);

}  // namespace retrograd
