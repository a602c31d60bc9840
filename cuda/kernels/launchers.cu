// The launchers of all families, for the target that this is compiled for. See cuda/kernels/launchers.h.
#include "cuda/kernels/launchers.h"

#include "cuda/kernels/launch.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

#define RG_DECLARE(name, Type) void add_##name##_launchers(Launchers& all);
RG_CUDA_FAMILIES(RG_DECLARE)
#undef RG_DECLARE

const Launchers& launchers() {
  static const Launchers all = [] {
    Launchers made;
#define RG_ADD(name, Type) add_##name##_launchers(made);
    RG_CUDA_FAMILIES(RG_ADD)
#undef RG_ADD
    return made;
  }();
  return all;
}

}  // namespace retrograd::cuda::RG_TARGET
