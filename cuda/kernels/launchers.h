// Launchers: the entry points of all compiled kernels, for one target: code for devices, or the same source compiled
// for the host (see cuda/kernels/launch.h). Each family of kernels is a field, named and typed by its entry in
// cuda/kernels/families.h. Its type is only declared here: who calls or fills in a family includes its NAME_call.h.
#pragma once

#include "cuda/kernels/families.h"

namespace retrograd::inline v0::cuda {

#define RG_DECLARE(name, Type) struct Type;
RG_CUDA_FAMILIES(RG_DECLARE)
#undef RG_DECLARE

struct Launchers {
#define RG_FIELD(name, Type) const Type* name = nullptr;
  RG_CUDA_FAMILIES(RG_FIELD)
#undef RG_FIELD
};

/// Without launchers in a build without CUDA.
namespace device_code {
const Launchers& launchers();
}
/// For tests.
namespace host_code {
const Launchers& launchers();
}

}  // namespace retrograd::cuda
