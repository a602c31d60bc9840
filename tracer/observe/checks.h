// Checks of recordings that are too costly to be always on: the environment variable RETROGRAD_CHECK, and what they
// compare by.
#pragma once

#include <cstdint>

#include "engine/tensor.h"

namespace retrograd::inline v0 {

struct Checks {
  int64_t twin_calls = 0;  // a twin (tracer/function/twin.h) at each n-th call; 0: none
  // Inlined pairs of saved-tensor hooks beside called ones (tracer/backward/check_pairs.h; PairForm::checked).
  bool pairs = false;
};

/// Of "twin", "twin:N" and "pairs", with commas between them. Error(bad_argument) for another text.
Checks checks_of_environment();

/// Whether the elements of two tensors of one type, on any device and in any layout, have the same bits; also of two that
/// are undefined.
bool has_same_bits(const Tensor& a, const Tensor& b);

}  // namespace retrograd
