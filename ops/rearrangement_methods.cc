// Methods of further views and rearrangements, and of copies with a part replaced (engine/method_list.h).
#include "ops/define_methods.h"
#include "ops/index_functions.h"
#include "ops/reshaping.h"
#include "ops/scatter_reduce.h"
#include "ops/stacking.h"
#include "ops/view_scatter.h"

namespace retrograd::inline v0 {

RG_REARRANGEMENT_METHODS(RG_METHOD, RG_BOTH, RG_GEOMETRY)

}  // namespace retrograd
