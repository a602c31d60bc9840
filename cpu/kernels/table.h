// The CPU's kernels, by op. Each family in cpu/kernels/families.h fills in its own rows (add_..._kernels), when the
// executor is made (cpu/executor.cc); an op without a row is reported as unsupported.
//
// A row has the kernel, a function on a Call, and of an elementwise op the span kernels, which plans and
// fused groups call directly. A kernel that asks for temporary memory is marked kScratch: only such ones are
// measured before they run (cpu/scratch.h).
#pragma once

#include <array>

#include "cpu/kernels/families.h"
#include "cpu/kernels/levels/spans.h"
#include "engine/executor.h"

namespace retrograd::inline v0::cpu {

/// Kernels by the address of their OpInfo: an open-addressed table, read-only once made.
class KernelTable {
 public:
  struct Row {
    const OpInfo* op = nullptr;
    Kernel kernel = nullptr;
    const Spans* spans = nullptr;  // of an elementwise op
    bool has_scratch = false;      // it may ask for temporary memory: cpu/scratch.h
  };
  enum class Memory { scratch };
  static constexpr Memory kScratch = Memory::scratch;

  void set(const OpInfo* op, Kernel kernel, const Spans* spans = nullptr) { row(op) = {op, kernel, spans}; }
  void set(const OpInfo* op, Kernel kernel, Memory) { row(op) = {op, kernel, nullptr, true}; }
  /// The row of an op; an empty one when it has none.
  const Row& find(const OpInfo* op) const {
    size_t i = slot(op);
    while (rows_[i].op && rows_[i].op != op) i = (i + 1) % kSlots;
    return rows_[i];
  }

 private:
  static constexpr size_t kSlots = 2048;
  static size_t slot(const OpInfo* op) {
    return (reinterpret_cast<uintptr_t>(op) >> 3) * 0x9E3779B97F4A7C15u >> 53;
  }
  Row& row(const OpInfo* op) { return const_cast<Row&>(find(op)); }

  std::array<Row, kSlots> rows_;
};

#define RG_DECLARE(name) void add_##name##_kernels(KernelTable& table);
RG_CPU_FAMILIES(RG_DECLARE)
#undef RG_DECLARE

}  // namespace retrograd::cpu
