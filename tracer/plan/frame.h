// Frame: the registers of one run of a plan, leased from it.
//
//   own      prepared cells, one for each register, with type and strides set
//   at       the present value of a register: its own cell, or another one that `foreign` keeps alive; null: none
// The first registers are those of the arena; the memory of their cells is valid while the run holds the arena.
#pragma once

#include <memory>
#include <vector>

#include "tracer/plan/program.h"

namespace retrograd::inline v0 {

struct Recordings;

struct Frame {
  explicit Frame(const Program& program);
  ~Frame();
  Frame(const Frame&) = delete;

  std::vector<RefPtr<TensorImpl>> own;
  std::vector<TensorImpl*> at;
  std::vector<RefPtr<TensorImpl>> foreign;
  std::vector<std::byte> patched;  // attributes with the numbers of the run
  RefPtr<Storage> arena;
  const void* arena_data = nullptr;        // the memory to which the arena's cells point
  std::unique_ptr<Recordings> recordings;  // for a plan whose launches are recorded

  /// Allocates the arena unless the frame still has it.
  void take_arena(const Program& program);

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
  /// Empties all registers but the first `in_arena`, and frees the arena unless recordings are bound to it.
  void clear(size_t in_arena);
  /// The value as a separate tensor, which keeps the memory after the register releases it.
  Tensor give(int32_t r) const {
    const auto i = static_cast<size_t>(r);
    if (r < 0 || !at[i]) return {};
    if (foreign[i]) return Tensor(foreign[i]);
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->alias(*own[i]);
    return Tensor(std::move(cell));
  }
};

}  // namespace retrograd
