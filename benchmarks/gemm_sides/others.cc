// The other sides in a build for the CPU and for devices; others_of_devices.cc replaces it in programs that omit those
// of the CPU (the bundle for a machine with a GPU).
#include "benchmarks/gemm_sides/side.h"

namespace bench {

std::vector<Side> other_sides(const Place& place) {
  if (!place.is_cpu()) return cublaslt_side(place);
  std::vector<Side> sides{eigen_side()};
  for (const auto& found : {openblas_side(), onednn_side()})
    sides.insert(sides.end(), found.begin(), found.end());
  return sides;
}

}  // namespace bench
