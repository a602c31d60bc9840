// The checkpointed regions (engine/region.h) that a backward recomputes, numbered, so that a captured graph can name
// what it reads of them: "input 2 of region 0".
#pragma once

#include "engine/walk.h"

namespace retrograd::inline v0 {

/// Fills reached.regions, and adds their sizes: the regions of saved values of the records, in order, and those that
/// hold inputs of these. Returns what a captured graph depends on: which values of which regions the slots and inputs
/// stand for, and the structures of the regions; 0: there are none.
uint64_t find_regions(Reached& reached);

}  // namespace retrograd
