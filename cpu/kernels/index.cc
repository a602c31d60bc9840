// Kernels of ops that read and write at positions held by another tensor, element by element: gather,
// scatter, masked_fill, FlatIndex; and isin, which searches sorted values.
//
// gather and scatter go along lines (cpu/kernels/index_lines.h). Every index is checked before anything is written. Ops
// on whole entries are in cpu/kernels/index_entries.cc, scatter_reduce in scatter_reduce.cc.
#include "cpu/kernels/index.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "cpu/kernels/index_lines.h"
#include "cpu/kernels/layout.h"
#include "cpu/parallel.h"
#include "ops/index_functions.h"
#include "ops/index_ops.h"
#include "ops/sorted_search.h"

namespace retrograd::inline v0::cpu {

// Of an index in range neither p nor size - 1 - p has its sign bit.
void check_range(const Call& call, const TensorImpl& index, int64_t size) {
  const auto* p = static_cast<const int64_t*>(index.data());
  const int64_t n = index.numel().raw();
  std::atomic<bool> ok = true;
  parallel_range(n, 4 * kIndexGrain, [&](int64_t begin, int64_t end) {
    uint64_t signs = 0;
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<uint64_t>(p[i]);
      signs |= at | (static_cast<uint64_t>(size) - 1 - at);
    }
    if (signs >> 63) ok = false;
  });
  if (ok) return;
  const int64_t* bad = std::find_if(p, p + n, [size](int64_t i) { return i < 0 || i >= size; });
  fail_call(call, Category::index_out_of_range,
            fmt::format("index {} is out of range for {} entries", *bad, size));
}

namespace {

void gather_lines(const Call& call, TensorImpl* const* outputs) {
  const int64_t dim = call.attrs_as<ops::DimAttrs>().dim;
  const TensorImpl& x = *call.operands[0];
  if (outputs[0]->numel().raw() == 0) return;
  const LocalCopy index(call.operands[1]);
  TensorImpl& out = *outputs[0];
  check_range(call, *index, x.shape()[static_cast<int>(dim)].raw());
  const int64_t length = index->shape()[static_cast<int>(dim)].raw(), step = index->strides()[dim],
                x_step = x.strides()[dim];
  by_width(element_size(x.dtype()), [&]<class T>(T) {
    const T* from = static_cast<const T*>(x.data());
    T* to = static_cast<T*>(out.data());
    Lines(*index, dim, x, out).run([&](int64_t at_index, int64_t at_x, int64_t at_out, int64_t lines) {
      const int64_t* p = positions(*index) + at_index;
      if (lines == 1)
        for (int64_t i = 0; i < length; ++i) to[at_out + i * step] = from[at_x + p[i * step] * x_step];
      else
        for (int64_t i = 0; i < length; ++i)
          for (int64_t k = 0; k < lines; ++k)
            to[at_out + i * step + k] = from[at_x + p[i * step + k] * x_step + k];
    });
  });
}

// out is a row-major copy of x; src elements go to their places in it through put(to, value).
template <class T, class Put>
void scatter_lines(const TensorImpl& index, int64_t dim, const TensorImpl& src, TensorImpl& out, Put&& put) {
  T* to = static_cast<T*>(out.data());
  const T* from = static_cast<const T*>(src.data());
  for_each_target(index, static_cast<int>(dim), src, out,
                  [&](int64_t place, int64_t element) { put(to[place], from[element]); });
}

// A tensor of the shape of `like` that shows one number everywhere.
class Constant : public LocalTensor {
 public:
  Constant(const TensorImpl& like, ScalarType dtype, Scalar value) : LocalTensor(dtype, {}) {
    TensorImpl& cell = **this;
    cell.mutable_shape() = like.shape();
    std::fill_n(cell.mutable_strides(), like.rank(), 0);
    if (measuring()) return;
    dispatch(dtype, [&]<class T>(std::type_identity<T>) {
      T v;
      if constexpr (std::is_integral_v<T>)
        v = static_cast<T>(value.to_int());
      else
        v = convert<T>(value.to_double());
      *static_cast<T*>(cell.data()) = v;
    });
  }
};

void scatter_values(const Call& call, TensorImpl* const* outputs) {
  const ops::Scatter::Attrs& attrs = call.attrs_as<ops::Scatter::Attrs>();
  const LocalCopy index(call.operands[1]);
  TensorImpl& out = *outputs[0];
  check_range(call, *index, out.shape()[static_cast<int>(attrs.dim)].raw());
  std::optional<Constant> number;
  if (!call.operands[2]) number.emplace(*index, out.dtype(), attrs.scalar);
  if (measuring()) return;
  const TensorImpl* src = number ? &**number : call.operands[2];
  convert_copy(*call.operands[0], out);
  by_width(element_size(out.dtype()),
           [&]<class T>(T) { scatter_lines<T>(*index, attrs.dim, *src, out, [](T& to, T v) { to = v; }); });
}

// Small formats are summed in float32 and rounded once.
void scatter_add(const Call& call, TensorImpl* const* outputs) {
  const int64_t dim = call.attrs_as<ops::DimAttrs>().dim;
  const LocalCopy index(call.operands[1]);
  TensorImpl& out = *outputs[0];
  check_range(call, *index, out.shape()[static_cast<int>(dim)].raw());
  const auto add = [](auto& to, auto v) { to = to + v; };
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<Accumulator<T>, T>) {
      if (measuring()) return;
      convert_copy(*call.operands[0], out);
      scatter_lines<T>(*index, dim, *call.operands[2], out, add);
    } else {
      const LocalCopy sum(call.operands[0], kFloat32), src(call.operands[2], kFloat32);
      if (measuring()) return;
      scatter_lines<float>(*index, dim, *src, *sum, add);
      convert_copy(*sum, out);
    }
  });
}

// ---- masked_fill and flat_index -----------------------------------------------------------------------------------

void masked_fill(const Call& call, TensorImpl* const* outputs) {
  TensorImpl& out = *outputs[0];
  const LocalCopy x(call.operands[0]), mask(call.operands[1]);
  const Scalar number = call.attrs_as<ops::MaskedFill::Attrs>().scalar;
  const LocalCopy given(call.operands[2]);
  std::optional<Constant> constant;
  if (!given) constant.emplace(out, out.dtype(), number);
  const TensorImpl& value = given ? *given : **constant;
  const int64_t step = call.operands[2] ? 1 : 0, n = out.numel().raw();
  const bool* m = static_cast<const bool*>(mask->data());
  if (n == 0) return;
  by_width(element_size(out.dtype()), [&]<class T>(T) {
    const T *from = static_cast<const T*>(x->data()), *v = static_cast<const T*>(value.data());
    T* to = static_cast<T*>(out.data());
    parallel_range(n, kIndexGrain, [&](int64_t begin, int64_t end) {
      const auto fill = [&](const auto& value) {
        for (int64_t i = begin; i < end; ++i) {
          const T kept = from[i], bits = static_cast<T>(0 - static_cast<T>(m[i]));  // no branch
          to[i] = static_cast<T>(kept ^ ((kept ^ value(i)) & bits));
        }
      };
      if (step == 0)
        fill([first = *v](int64_t) { return first; });
      else
        fill([v](int64_t i) { return v[i]; });
    });
  });
}

void flat_index(const Call& call, TensorImpl* const* outputs) {
  const Shape& sizes = call.attrs_as<ops::FlatIndex::Attrs>().sizes;
  TensorImpl& out = *outputs[0];
  auto* to = static_cast<int64_t*>(out.data());
  const int64_t n = out.numel().raw();
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const LocalCopy index(call.operands[k]);
    const int64_t size = sizes[static_cast<int>(k)].raw();
    const int64_t* p = positions(*index);
    std::atomic<bool> ok = true;
    parallel_range(n, kIndexGrain, [&](int64_t begin, int64_t end) {
      uint64_t signs = 0;
      for (int64_t i = begin; i < end; ++i) {
        const auto at = static_cast<uint64_t>(p[i]), wide = static_cast<uint64_t>(size);
        signs |= (at + wide) | (wide - 1 - at);
        to[i] =
            static_cast<int64_t>((k ? static_cast<uint64_t>(to[i]) * wide : 0) + at + (p[i] < 0 ? wide : 0));
      }
      if (signs >> 63) ok = false;
    });
    if (ok) continue;
    const int64_t* bad = std::find_if(p, p + n, [size](int64_t i) { return i < -size || i >= size; });
    // In a plan the user-level indexing function is unknown; the op is not one of them.
    fail(Category::index_out_of_range, "indexing",
         fmt::format("index {} is out of range for {} entries", *bad, size), call.where);
  }
}

void is_in(const Call& call, TensorImpl* const* outputs) {
  const bool invert = call.attrs_as<ops::IsIn::Attrs>().invert;
  const ScalarType compute = compute_type(call.operands[0]->dtype());
  const LocalCopy x(call.operands[0], compute), sorted(call.operands[1], compute);
  if (measuring()) return;
  const int64_t count = sorted->numel().raw();
  bool* const to = static_cast<bool*>(outputs[0]->data());
  dispatch_compute(compute, [&]<class V>(std::type_identity<V>) {
    const V *from = x.values<V>(), *values = sorted.values<V>();
    parallel_range(x->numel().raw(), kIndexGrain / 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        to[i] = ops::is_among([values](int64_t at) { return values[at]; }, count, from[i]) != invert;
    });
  });
}

}  // namespace

void add_index_kernels(KernelTable& table) {
  add_entry_kernels(table);
  table.set(&ops::info<ops::Gather>, gather_lines, KernelTable::kScratch);
  table.set(&ops::info<ops::Scatter>, scatter_values, KernelTable::kScratch);
  table.set(&ops::info<ops::ScatterAdd>, scatter_add, KernelTable::kScratch);
  table.set(&ops::info<ops::MaskedFill>, masked_fill, KernelTable::kScratch);
  table.set(&ops::info<ops::FlatIndex>, flat_index, KernelTable::kScratch);
  table.set(&ops::info<ops::IsIn>, is_in, KernelTable::kScratch);
  add_scatter_reduce_kernel(table);
}

}  // namespace retrograd::cpu
