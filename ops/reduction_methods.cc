// Methods of reductions, scans, sorts and draws (engine/method_list.h).
#include "ops/define_methods.h"
#include "ops/random_ops.h"
#include "ops/reduce.h"
#include "ops/sampling.h"
#include "ops/scan.h"
#include "ops/softmax.h"
#include "ops/sort.h"

namespace retrograd::inline v0 {

RG_REDUCTION_METHODS(RG_METHOD, RG_BOTH)

}  // namespace retrograd
