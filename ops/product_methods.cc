// Methods of products that are added to something, and of functions of matrices (engine/method_list.h).
#include "ops/define_methods.h"
#include "ops/factorizations.h"
#include "ops/matrix_functions.h"
#include "ops/products.h"

namespace retrograd::inline v0 {

using linalg::cross;

RG_PRODUCT_METHODS(RG_METHOD, RG_BOTH)

}  // namespace retrograd
