// Kernel of cross (ops/products.h): for operands of any strides, which are copied where they are not row-major.
//
// Each number is converted to the compute type, and a result is rounded once; integers wrap around.
#include "cpu/kernels/layout.h"
#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "ops/products.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kGrain = 16384;

// The type in which products are formed: unsigned for integers, whose overflow is defined.
template <class T>
using ProductOf = std::conditional_t<std::is_integral_v<T>, uint64_t, ComputeOf<T>>;

// Vectors [begin, end); `inner`: elements between two entries of a vector.
template <class T>
void cross_rows(const T* a, const T* b, T* out, int64_t inner, int64_t begin, int64_t end) {
  using P = ProductOf<T>;
  const auto at = [](const T* x, int64_t i) { return static_cast<P>(x[i]); };
  for (int64_t v = begin; v < end; ++v) {
    const int64_t x = v / inner * 3 * inner + v % inner, y = x + inner, z = y + inner;
    out[x] = static_cast<T>(at(a, y) * at(b, z) - at(a, z) * at(b, y));
    out[y] = static_cast<T>(at(a, z) * at(b, x) - at(a, x) * at(b, z));
    out[z] = static_cast<T>(at(a, x) * at(b, y) - at(a, y) * at(b, x));
  }
}

void cross_kernel(const Call& call, TensorImpl* const* outputs) {
  const LocalCopy a(call.operands[0]), b(call.operands[1]);
  TensorImpl& out = *outputs[0];
  const Shape& shape = out.shape();
  int64_t inner = 1;
  for (int d = static_cast<int>(call.attrs_as<ops::Cross::Attrs>().dim) + 1; d < shape.rank(); ++d)
    inner *= shape[d].raw();
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    parallel_range(out.numel().raw() / 3, kGrain, [&](int64_t begin, int64_t end) {
      cross_rows(a.values<T>(), b.values<T>(), static_cast<T*>(out.data()), inner, begin, end);
    });
  });
}

}  // namespace

void add_cross_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Cross>, cross_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
