// The check of inlined pairs: does a traceable pair of saved-tensor hooks do in a graph what it does when it is called?
//
// The gradients of the leaves are computed twice, by a graph that contains the unpacks and by one that calls them, and
// compared bit for bit. They differ if an unpack depends on more than its payload: on data that it captures and that has
// changed, on random numbers, on something that it counts. Nothing is accumulated, and saved values stay.
#pragma once

#include "engine/driver.h"

namespace retrograd::inline v0 {

/// Error(bad_argument), with the type of the gradient and the line, at the first difference. Does nothing for a
/// backward that calls user code, or whose graph has no such unpack.
void check_inlined_pairs(const BackwardRequest& request);

}  // namespace retrograd
