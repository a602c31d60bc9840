// Methods of matrix products and of linear algebra (engine/method_list.h).
#include "ops/define_methods.h"
#include "ops/linalg.h"
#include "ops/matmul.h"

namespace retrograd::inline v0 {

RG_MATRIX_METHODS(RG_METHOD, RG_BOTH)

}  // namespace retrograd
