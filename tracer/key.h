// The cache key of a backward, in two parts.
//   structure: what a captured graph depends on: the records' own hashes, how they are wired, which run, hooks by kind and place (not by
//              object, save for traceable ones, whose bodies are part of the graph), which slots are packed, what is wanted.
//   sizes:     what a plan depends on besides: every size.
// Values, numbers, hook objects, packed payloads and whether a leaf has a gradient already are in neither.
// The structure of the backward that ran last is recognised without a key, by comparing (tracer/trail.h).
#pragma once

#include <array>

#include "engine/driver.h"

namespace retrograd {

using Key = std::array<uint64_t, 2>;

Key structure_key(const BackwardRequest& request, Walk& walk);
Key sizes_key(const BackwardRequest& request, const Reached& reached);

/// Hooks and packed slots of a record, hooks of a leaf, as one word; 0: there are none.
uint64_t annotations_of(const Record& record);
uint64_t annotations_of(const TensorImpl& leaf);
/// Dtypes, devices, ranks and sizes 0 and 1 of the cotangents.
uint64_t cotangent_types(const BackwardRequest& request);

}  // namespace retrograd
