// Kernels of ops that move elements: flip, tril, triu, copy, the transposes of views (ops/views.h), and copies with a
// view replaced (ops/view_scatter.h).
//
// A region is a cell that shows part of another's memory. Flip copies from one with negative strides, a
// view's transpose into one that the view op itself lays out. Where elements of a region overlap, they are
// added, in order; small formats in float32, rounded once.
#include "ops/rearrange.h"

#include <algorithm>
#include <cstring>

#include "cpu/kernels/layout.h"
#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "ops/copy.h"
#include "ops/view_scatter.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kRearrangeGrain = 32768;

void flip(const Call& call, TensorImpl* const* outputs) {
  RefPtr<TensorImpl> region = TensorImpl::make();
  region->alias(*call.operands[0]);
  int64_t offset = region->storage_offset();
  for (int64_t d : call.attrs_as<ops::Flip::Attrs>().dims) {
    int64_t& stride = region->mutable_strides()[d];
    const int64_t n = region->shape()[static_cast<int>(d)].raw();
    offset += n > 0 ? (n - 1) * stride : 0;
    stride = -stride;
  }
  region->set_storage_offset(offset);
  convert_copy(*region, *outputs[0]);
}

// Copies, then clears the elements of each row outside the triangle.
void triangle(const Call& call, TensorImpl& out, bool upper) {
  const TensorImpl& x = *call.operands[0];
  convert_copy(x, out);
  const int64_t rows = out.shape()[out.rank() - 2].raw(), columns = out.shape().back().raw();
  const int64_t diagonal = std::clamp(call.attrs_as<ops::TriangleAttrs>().diagonal, -rows, columns);
  const int64_t n = out.numel().raw(), item = static_cast<int64_t>(element_size(out.dtype()));
  if (n == 0) return;
  char* data = static_cast<char*>(out.data());
  parallel_range(
      n / columns, std::max<int64_t>(1, kRearrangeGrain / columns), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t edge = std::clamp<int64_t>(r % rows + diagonal + (upper ? 0 : 1), 0, columns);
          const int64_t from = upper ? 0 : edge, to = upper ? edge : columns;
          std::memset(data + (r * columns + from) * item, 0, static_cast<size_t>((to - from) * item));
        }
      });
}

void tril(const Call& call, TensorImpl* const* outputs) { triangle(call, *outputs[0], false); }
void triu(const Call& call, TensorImpl* const* outputs) { triangle(call, *outputs[0], true); }

void copy(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0] != call.operands[1])
    convert_copy(*call.operands[1], *outputs[0]);  // the output may be an operand that dies here
}

// region += g, one element after the other.
template <class T>
void add_elements(const TensorImpl& g, TensorImpl& region) {
  const T* from = static_cast<const T*>(g.data());
  T* to = static_cast<T*>(region.data());
  const Layout source(g), destination(region);
  int64_t element = 0;
  destination.for_runs(0, destination.numel(), [&](int64_t offset, int64_t stride, int64_t count, int64_t) {
    for (int64_t i = 0; i < count; ++i) to[offset + i * stride] += from[source.offset(element++)];
  });
}

void put(TensorImpl& g, TensorImpl& out, TensorImpl& region) {
  const bool is_small = element_size(out.dtype()) < 4 && is_floating(out.dtype());
  clear(out);
  region.set_storage(out.storage());
  if (region.numel().raw() == 0) return;
  if (is_injective(region) || !is_small) {
    if (measuring()) return;
    if (is_injective(region)) return convert_copy(g, region);
    dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
      if constexpr (sizeof(T) >= 4 || std::is_integral_v<T>) add_elements<T>(g, region);
    });
    return;
  }
  // Formats of 16 and 8 bits are summed in float32 and rounded once.
  const LocalCopy wide_g(&g, kFloat32);
  const LocalTensor wide_out(kFloat32, out.shape());
  if (measuring()) return;
  clear(*wide_out);
  RefPtr<TensorImpl> wide_region = TensorImpl::make();
  wide_region->alias(region);
  wide_region->set_dtype(kFloat32, out.device());
  wide_region->set_storage_offset(region.storage_offset() - out.storage_offset());
  wide_region->set_storage(wide_out->storage());
  add_elements<float>(*wide_g, *wide_region);
  convert_copy(*wide_out, out);
}

// The elements of the output that view V shows.
template <class V>
RefPtr<TensorImpl> region_of(const Call& call, typename V::Attrs& attrs, TensorImpl* const* outputs) {
  RefPtr<TensorImpl> region = TensorImpl::make();
  const Call view{&ops::info<V>, {outputs, 1}, &attrs, call.where, 1};
  TensorImpl* cell = region.get();
  V::infer(view, &cell);
  if constexpr (std::is_same_v<V, ops::AsStrided>) ops::check_inside(call, attrs, outputs[0]->shape());
  V::layout(view, *region);
  return region;
}

template <class V>
void transposed(const Call& call, TensorImpl* const* outputs) {
  auto& attrs = call.attrs_as<typename ops::Transposed<V>::Attrs>().view;
  put(*call.operands[0], *outputs[0], *region_of<V>(call, attrs, outputs));
}

template <class V>
void view_scatter(const Call& call, TensorImpl* const* outputs) {
  const RefPtr<TensorImpl> region = region_of<V>(call, call.attrs_as<typename V::Attrs>(), outputs);
  convert_copy(*call.operands[0], *outputs[0]);
  region->set_storage(outputs[0]->storage());
  convert_copy(*call.operands[1], *region);
}

void as_strided_scatter(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &base = *call.operands[0], &value = *call.operands[1];
  TensorImpl& out = *outputs[0];
  const ops::Geometry& g = call.attrs_as<ops::Geometry>();
  ops::check_inside(call, g, base.shape());
  RefPtr<TensorImpl> region = TensorImpl::make(), memory = TensorImpl::make();
  memory->alias(out);
  int64_t extent = 1;  // of the base as it lies in memory, if that is not row-major
  for (int i = 0; i < base.rank() && !g.base_is_dense; ++i) {
    memory->set_stride(i, g.base_stride[i]);
    extent += (base.shape()[i].raw() - 1) * g.base_stride[i].raw();
  }
  const Scratch<std::byte> room(
      g.base_is_dense ? 0 : std::max<int64_t>(extent, 1) * static_cast<int64_t>(element_size(out.dtype())));
  if (measuring()) return;
  if (!g.base_is_dense) {
    memory->set_storage_offset(0);
    memory->set_storage(Storage::wrap(room.data(), 0, nullptr, nullptr));
  }
  convert_copy(base, *memory);
  region->set_type(value.dtype(), value.device(), g.size);
  for (int i = 0; i < g.size.rank(); ++i) region->set_stride(i, g.stride[i]);
  region->set_offset(memory->offset() + g.offset);
  region->set_storage(memory->storage());
  convert_copy(value, *region);
  if (!g.base_is_dense) convert_copy(*memory, out);
}

}  // namespace

void add_rearrange_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Flip>, flip);
  table.set(&ops::info<ops::Tril>, tril);
  table.set(&ops::info<ops::Triu>, triu);
  table.set(&ops::info<ops::Copy>, copy);
  table.set(&ops::info<ops::Transposed<ops::Slice>>, transposed<ops::Slice>, KernelTable::kScratch);
  table.set(&ops::info<ops::Transposed<ops::Select>>, transposed<ops::Select>, KernelTable::kScratch);
  table.set(&ops::info<ops::Transposed<ops::Diagonal>>, transposed<ops::Diagonal>, KernelTable::kScratch);
  table.set(&ops::info<ops::Transposed<ops::Unfold>>, transposed<ops::Unfold>, KernelTable::kScratch);
  table.set(&ops::info<ops::Transposed<ops::AsStrided>>, transposed<ops::AsStrided>, KernelTable::kScratch);
  table.set(&ops::info<ops::SliceScatter>, view_scatter<ops::Slice>);
  table.set(&ops::info<ops::SelectScatter>, view_scatter<ops::Select>);
  table.set(&ops::info<ops::DiagonalScatter>, view_scatter<ops::Diagonal>);
  table.set(&ops::info<ops::AsStridedScatter>, as_strided_scatter, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
