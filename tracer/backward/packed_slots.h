// The packed slots whose unpack is part of a captured graph: those that a checkpointed region (engine/region.h) fills,
// and those of traceable pairs. Regions are numbered, so that a captured graph can name what it reads of them: "input 2
// of region 0".
#pragma once

#include "engine/walk.h"

namespace retrograd::inline v0 {

/// Fills reached.regions: the regions of saved values of the records, in order, and those that hold inputs of these.
/// Adds the sizes of regions and payloads to reached.sizes. Returns what a captured graph depends on: which values of
/// which regions the slots and inputs stand for, and the structures of regions and payloads; 0: there are none.
uint64_t find_packed_slots(Reached& reached);

}  // namespace retrograd
