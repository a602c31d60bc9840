// Taper: the emitter of reverse mode. It emits into the emitter below and, when gradient mode is on and an operand wants a gradient,
// appends a tape record and links the results to it.
#pragma once

#include "engine/tape.h"

namespace retrograd {

class Taper final : public Emitter {
 public:
  explicit Taper(Emitter& below) : below_(&below) {}
  void emit(const Call& call, Tensor* results) override;
  std::string name() const override { return "Taper over " + below_->name(); }
  bool is_symbolic() const override { return below_->is_symbolic(); }
  const void* attrs_of(const Record& record) override { return below_->attrs_of(record); }
  TensorType type_of(const Record& record, int i) override { return below_->type_of(record, i); }
  void at(const Origin& origin) override { below_->at(origin); }

 private:
  void emit_unpack(const Call& call, Tensor* results);

  Emitter* below_;
};

}  // namespace retrograd
