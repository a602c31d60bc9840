// Methods of order statistics and of what ignores nan (engine/method_list.h).
#include "ops/counts.h"
#include "ops/cumulative.h"
#include "ops/define_methods.h"
#include "ops/differences.h"
#include "ops/distances.h"
#include "ops/order_statistics.h"
#include "ops/quantile.h"
#include "ops/statistics.h"

namespace retrograd::inline v0 {

RG_STATISTICS_METHODS(RG_METHOD, RG_BOTH)

}  // namespace retrograd
