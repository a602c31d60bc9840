// The environment variable RETROGRAD_CHECK: checks of recordings that are too costly to be always on.
#pragma once

#include <cstdint>

namespace retrograd::inline v0 {

struct Checks {
  int64_t twin_calls = 0;  // a twin (tracer/function/twin.h) at each n-th call; 0: none
  bool pairs = false;      // inlined unpacks beside called ones (tracer/backward/check_pairs.h)
};

/// Of "twin", "twin:N" and "pairs", with commas between them. Error(bad_argument) for another text.
Checks checks_of_environment();

}  // namespace retrograd
