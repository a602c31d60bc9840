// See cuda/fusion/compiler.h.
#include "cuda/fusion/compiler.h"

#include <fmt/format.h>

namespace retrograd::inline v0::cuda::fusion {

std::vector<std::string> compile_options(int architecture) {
  return {fmt::format("--gpu-architecture=sm_{}", architecture),
          "--std=c++20",
          "--fmad=false",
          "--device-as-default-execution-space",
          "--device-int128",  // for host code that runs before a launch
          "--define-macro=RG_FORMULAS",
          "--diag-suppress=1097"};  // attributes of other compilers
}

}  // namespace retrograd::cuda::fusion
