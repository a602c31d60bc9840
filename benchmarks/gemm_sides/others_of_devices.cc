// The other sides in a program that needs no other library: on a device cuBLASLt, on the CPU none. See others.cc.
#include "benchmarks/gemm_sides/side.h"

namespace bench {

std::vector<Side> other_sides(const Place& place) {
  return place.is_cpu() ? std::vector<Side>() : cublaslt_side(place);
}

}  // namespace bench
