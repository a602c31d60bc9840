// The cache key of a backward, in two parts.
//   structure: the dependencies of a captured graph: the records' own hashes, their wiring, which of them run, the
//              kind of run (accumulate, create_graph, ...), hooks by kind and place (not by object, except traceable
//              ones, whose bodies are part of the graph), packed slots, requested gradients.
//   sizes:     the further dependencies of a plan: every size.
// Values, numbers, hook objects, packed payloads and the presence of a leaf's gradient affect neither part. The
// structure of the backward that ran last is recognised without a key, by comparing (tracer/backward/trail.h).
#pragma once

#include <array>

#include "engine/driver.h"

namespace retrograd::inline v0 {

using Key = std::array<uint64_t, 2>;

/// `packed`: what find_packed_slots() gave.
Key structure_key(const BackwardRequest& request, Walk& walk, uint64_t packed);
Key sizes_key(const BackwardRequest& request, const Reached& reached);

/// Hooks and packed slots of a record, hooks of a leaf, as one word; 0: none.
uint64_t annotations_of(const Record& record);
uint64_t annotations_of(const TensorImpl& leaf);
/// Dtypes, devices, ranks and sizes 0 and 1 of the cotangents.
uint64_t cotangent_types(const BackwardRequest& request);

}  // namespace retrograd
