// Hashes: what a tape record, and a call of a region, are recognised by. Structure is what a recorded graph depends on:
// attributes without sizes and numbers, dtypes, devices, ranks, which sizes are 0 or 1. Sizes are all other sizes.
// Numbers are part of neither: they are inputs of the graph.
#pragma once

#include "engine/op.h"

namespace retrograd::inline v0 {

struct Hashes {
  uint64_t structure = 0, sizes = 0;

  void add_dim(Dim d);
  void add_attrs(const OpInfo& op, void* attrs);
  void add(const TensorType& type);
};

}  // namespace retrograd
