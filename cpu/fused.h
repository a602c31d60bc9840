// Fused groups on the CPU: several elementwise ops, and reductions of their results, in one pass over memory,
// without a compiler.
//
//   cpu/fused_draft.h    what the nodes of a group become: instructions on values
//   cpu/fused_patterns.cc  instructions that compute several ops at once
//   cpu/fused_program.h  the same with places for the values
//   cpu/fused_tile.h     a run over tiles of the iteration space that stay in the first-level cache
//   here                 work for threads: ranges of elements, or the blocks of the kernels of reductions
//
// An element is computed by the formulas of its ops, in registers of the same kernels: it has the bits that
// they give one by one. Sums are cut and merged as theirs are.
#pragma once

#include "cpu/kernels/table.h"

namespace retrograd::cpu {

/// Executor::fuse for the ops of `table`.
std::unique_ptr<FusedKernel> fuse_group(const FusedGroup& group, const KernelTable& table);

}  // namespace retrograd::cpu
