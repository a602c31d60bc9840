// How a reduction is divided into threads, rows and parts: for single reductions and for those at the end of fused
// groups.
#pragma once

#include "cuda/kernels/reduce_call.h"

namespace retrograd::inline v0::cuda {

/// Sets rows_first, lanes and splits of a call from its dims: by sizes and strides only, so that results do not depend
/// on the device. rows.numel > 0.
void cut(ReduceCall& call);
/// The bytes of call.partials that a divided call needs.
int64_t partial_bytes(const ReduceCall& call);

}  // namespace retrograd::cuda
