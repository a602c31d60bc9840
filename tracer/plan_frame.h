// Plan::Frame, the registers of one run; for tracer/plan*.cc only.
#pragma once

#include "tracer/plan.h"

namespace retrograd {

inline constexpr int kMaxSpanOperands = 3;

// `own` are the prepared cells; `at` what a register holds now: its own cell, or a foreign one that `foreign` keeps alive.
struct Plan::Frame {
  std::vector<RefPtr<TensorImpl>> own;
  std::vector<TensorImpl*> at;
  std::vector<RefPtr<TensorImpl>> foreign;
  std::vector<std::byte> patched;  // attributes with the numbers of the run

  void set_foreign(int32_t r, RefPtr<TensorImpl> value) {
    at[static_cast<size_t>(r)] = value.get();
    foreign[static_cast<size_t>(r)] = std::move(value);
  }
  void drop(int32_t r) {
    const auto i = static_cast<size_t>(r);
    if (foreign[i])
      foreign[i].reset();
    else if (at[i])
      own[i]->set_storage({});
    at[i] = nullptr;
  }
  // Whatever a run that was broken off has left.
  void clear() {
    for (size_t i = 0; i < at.size(); ++i) {
      at[i] = nullptr;
      foreign[i].reset();
      if (own[i]->storage()) own[i]->set_storage({});
    }
  }
  // The value as a tensor of its own, its memory handed over when the register is done with it.
  Tensor give(int32_t r) {
    const auto i = static_cast<size_t>(r);
    if (r < 0 || !at[i]) return {};
    if (foreign[i]) return Tensor(foreign[i]);
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->alias(*own[i]);
    return Tensor(std::move(cell));
  }
};

}  // namespace retrograd
