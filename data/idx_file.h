// Files of the IDX format, in which MNIST and its relatives come: a magic number with the type of the elements and the
// number of dims, the sizes, and the elements in row-major order, all of it big-endian.
#pragma once

#include <string>

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data {

/// The tensor in a file: uint8, int32, float32 or float64. FileError for a file that cannot be read, is compressed, has
/// a type that tensors do not have (int8, int16), or has more or fewer bytes than its sizes say.
Tensor read_idx(const std::string& path);

}  // namespace retrograd::inline v0::data
#pragma GCC visibility pop
