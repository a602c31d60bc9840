// The cache key of a backward: two 128-bit hashes folded along the walk.
//   structure: what a captured graph depends on: the records' own hashes, how they are wired, which run, hooks by kind and place (not by
//              object, save for traceable ones, whose bodies are part of the graph), which slots are packed, what is wanted.
//   sizes:     what a plan depends on besides: every size.
// Values, numbers, hook objects, packed payloads and whether a leaf has a gradient already are in neither.
#pragma once

#include <array>

#include "engine/driver.h"

namespace retrograd {

struct BackwardKey {
  std::array<uint64_t, 2> structure{}, sizes{};
};

BackwardKey make_key(const BackwardRequest& request, Walk& walk);

}  // namespace retrograd
