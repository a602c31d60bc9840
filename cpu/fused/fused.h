// Fused groups on the CPU: several elementwise ops, and reductions of their results, in one pass over memory,
// without a compiler.
//
//   cpu/fused/fused_draft.h      lowering of the nodes of a group to instructions on values
//   cpu/fused/fused_compose.h    instructions that compute several ops at once
//   cpu/fused/fused_program.h    the same with places for the values
//   cpu/fused/fused_tile.h       a run over tiles of the iteration space that stay in the first-level cache
//   cpu/fused/levels/            kernels of composed ops, and copies past the caches, per instruction-set level
//   here                         work for threads: ranges of elements, or the blocks of the kernels of reductions
//
// An element is computed by the formulas of its ops, in registers of the same kernels: it has the same bits as with
// the ops one by one. Sums are cut and merged as in their kernels.
#pragma once

#include "cpu/kernels/table.h"

namespace retrograd::inline v0::cpu {

/// Executor::fuse for the ops of `table`.
std::unique_ptr<FusedKernel> fuse_group(const FusedGroup& group, const KernelTable& table);

}  // namespace retrograd::cpu
