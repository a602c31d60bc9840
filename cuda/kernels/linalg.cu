// The launchers of linear algebra, put together from linalg_factor.cu, linalg_parts.cu and linalg_solve.cu. See
// cuda/kernels/linalg_call.h.
#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
// Included after launch.h, since it needs RG_TARGET.
#include "cuda/kernels/linalg.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {

void add_linalg_launchers(Launchers& all) {
  static const LinalgLaunchers own{
      .matrices = matrix_launchers(), .factor = factor_launchers(), .triangular = triangular_launcher()};
  all.linalg = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
