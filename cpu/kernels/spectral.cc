// Kernels of ops/spectral.h and of pinv: the matrices of a batch one by one (cpu/kernels/matrix_items.h), by the
// functions of cpu/kernels/levels/spectral.h. Results are dense; operands are copied where they are not.
#include "ops/spectral.h"

#include <limits>

#include "cpu/kernels/levels/spectral.h"
#include "cpu/kernels/matrix_items.h"
#include "cpu/kernels/table.h"
#include "ops/matrix_functions.h"

namespace retrograd::inline v0::cpu {
namespace {

// Calls f(batch entry, its dense matrix) for each matrix of operand 0, in parallel; none if they have no elements.
template <class T, class F>
void for_matrices(const Call& call, const F& f) {
  const Items<T> a(*call.operands[0], 2);
  if (a.size() == 0) return;
  const int64_t work = std::max(cube(a.rows()), cube(a.columns()));
  const ItemRoom<T> room(a, a.count(), work);
  for_items(a.count(), work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i, a.dense(i, room.mine()));
  });
}

void eigh_kernel(const Call& call, TensorImpl* const* outputs) {
  const bool upper = call.attrs_as<ops::Eigh::Attrs>().upper;
  with_type(call, [&]<class T>(T) {
    const Items<T> values(*outputs[0], 1), vectors(*outputs[1], 2);
    for_matrices<T>(call, [&](int64_t i, const T* a) {
      spectral_kernels<T>().eigh(a, vectors.rows(), upper, values.at(i), vectors.at(i));
    });
  });
}

void eigvalsh_kernel(const Call& call, TensorImpl* const* outputs) {
  const bool upper = call.attrs_as<ops::Eigvalsh::Attrs>().upper;
  with_type(call, [&]<class T>(T) {
    const Items<T> values(*outputs[0], 1);
    for_matrices<T>(call, [&](int64_t i, const T* a) {
      spectral_kernels<T>().eigh(a, values.columns(), upper, values.at(i), nullptr);
    });
  });
}

template <class T>
void set_identities(const Items<T>& out) {
  for (int64_t i = 0; i < out.count(); ++i) set_identity(out.at(i), out.rows());
}

void svd_kernel(const Call& call, TensorImpl* const* outputs) {
  const bool full = call.attrs_as<ops::Svd::Attrs>().full_matrices;
  with_type(call, [&]<class T>(T) {
    const Items<T> u(*outputs[0], 2), s(*outputs[1], 1), vh(*outputs[2], 2);
    if (full && s.columns() == 0 && !measuring()) {
      set_identities(u);
      set_identities(vh);
    }
    for_matrices<T>(call, [&](int64_t i, const T* a) {
      spectral_kernels<T>().svd(a, u.rows(), vh.columns(), full, u.at(i), s.at(i), vh.at(i));
    });
  });
}

void svdvals_kernel(const Call& call, TensorImpl* const* outputs) {
  const Shape& shape = call.operands[0]->shape();
  const int64_t m = shape[shape.rank() - 2].raw(), n = shape.back().raw();
  with_type(call, [&]<class T>(T) {
    const Items<T> s(*outputs[0], 1);
    for_matrices<T>(call, [&](int64_t i, const T* a) {
      spectral_kernels<T>().svd(a, m, n, false, nullptr, s.at(i), nullptr);
    });
  });
}

void pinv_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::Pinv::Attrs>();
  with_type(call, [&]<class T>(T) {
    const Items<T> out(*outputs[0], 2);
    const int64_t n = out.rows(), m = out.columns();
    const double relative = attrs.rtol.to_double();
    const T by_size = static_cast<T>(std::max(m, n)) * std::numeric_limits<T>::epsilon();
    const RankTolerance<T> zero{static_cast<T>(attrs.atol.to_double()),
                                relative < 0 ? by_size : static_cast<T>(relative)};
    for_matrices<T>(call, [&](int64_t i, const T* a) {
      spectral_kernels<T>().pinv(a, m, n, attrs.hermitian, zero, out.at(i));
    });
  });
}

}  // namespace

void add_spectral_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Eigh>, eigh_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Eigvalsh>, eigvalsh_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Svd>, svd_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Svdvals>, svdvals_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Pinv>, pinv_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
