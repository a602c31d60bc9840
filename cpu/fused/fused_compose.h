// The second step of a fused group on its way to a program, after lower() (cpu/fused/fused_draft.h) and before the
// values get places (cpu/fused/fused_program.h): instructions that compute several ops at once replace those that
// compute them one by one. Each saves a pass over a tile, which for a cheap op is most of its cost.
//
// Which combinations there are, and their kernels: cpu/fused/levels/patterns.h. A composed instruction returns the
// same bits as its ops one by one.
#pragma once

#include "cpu/fused/fused_draft.h"

namespace retrograd::inline v0::cpu {

/// Marks instructions of the draft as composed, and the instructions that they replace as absorbed.
void compose(FusedDraft& draft);

}  // namespace retrograd::cpu
