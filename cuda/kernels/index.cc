// Reading and writing at positions in another tensor, on a device: converts a Call to the plain data of
// cuda/kernels/index_call.h. Operands with any strides are read directly. Also the transposes of views: if a view shows
// elements more than once, its positions are targets that are added to in order.
#include "cuda/kernels/index_call.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "cpu/kernels/layout.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/sort.h"
#include "cuda/kernels/table.h"
#include "cuda/scratch.h"
#include "ops/elementwise_list.h"
#include "ops/embedding.h"
#include "ops/index_functions.h"
#include "ops/index_ops.h"
#include "ops/scatter_reduce.h"
#include "ops/view_scatter.h"

namespace retrograd::inline v0::cuda {
namespace {

int width_of(const TensorImpl& x) { return static_cast<int>(element_size(x.dtype())); }

const int64_t* positions(const TensorImpl& index) { return static_cast<const int64_t*>(index.data()); }

template <class C>
void set_index(const Call& call, const TensorImpl& index, C& c) {
  c.index = positions(index);
  c.note = Gpu::current().faults().note(*call.op);
}

// ---- reading ----------------------------------------------------------------------------------------------

// Runs of x that are read completely are copied 16 bytes at a time, if sizes and addresses are multiples of that.
void widen(GatherCall& c) {
  const int last = c.dims.rank - 1, n = 16 / c.width;
  const auto fits = [n](int64_t v) { return v % n == 0; };
  if (c.dims.stride[last][0] != 0 || c.dims.stride[last][1] != 1 || !fits(c.dims.size[last]) || !fits(c.step))
    return;
  for (int d = 0; d < last; ++d)
    if (!fits(c.dims.stride[d][1])) return;
  for (const void* data : {c.x, static_cast<const void*>(c.out)})
    if (reinterpret_cast<uintptr_t>(data) % 16 != 0) return;
  for (int d = 0; d < last; ++d) c.dims.stride[d][1] /= n;
  c.dims.size[last] /= n;
  c.dims.numel /= n;
  c.step /= n;
  c.width = 16;
}

void read(const Call& call, const TensorImpl& x, const TensorImpl& index, int dim, TensorImpl& out,
          GatherCall& c) {
  c.dims.finish();
  if (c.dims.numel == 0) return;
  c.x = x.data();
  c.out = out.data();
  c.width = width_of(x);
  c.entries = x.shape()[dim].raw();
  c.step = x.strides()[dim];
  set_index(call, index, c);
  widen(c);
  Gpu& gpu = Gpu::current();
  gpu.launchers().index->gather(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

void gather(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &x = *call.operands[0], &index = *call.operands[1];
  const int dim = static_cast<int>(call.attrs_as<ops::DimAttrs>().dim);
  if (outputs[0]->numel().raw() == 0) return;  // the index may have another rank then
  GatherCall c;
  for (int d = 0; d < index.rank(); ++d)
    c.dims.add(index.shape()[d].raw(), {index.strides()[d], d == dim ? 0 : x.strides()[d]});
  read(call, x, index, dim, *outputs[0], c);
}

void index_select(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &x = *call.operands[0], &index = *call.operands[1];
  const int dim = static_cast<int>(call.attrs_as<ops::DimAttrs>().dim);
  GatherCall c;
  for (int d = 0; d < x.rank(); ++d)
    if (d == dim)
      c.dims.add(index.shape()[0].raw(), {index.strides()[0], 0});
    else
      c.dims.add(x.shape()[d].raw(), {0, x.strides()[d]});
  read(call, x, index, dim, *outputs[0], c);
}

void embedding(const Call& call, TensorImpl* const* outputs) {
  const ops::EmbeddingAttrs& a = call.attrs_as<ops::EmbeddingAttrs>();
  const TensorImpl &index = *call.operands[0], &weight = *call.operands[1];
  GatherCall c;
  for (int d = 0; d < index.rank(); ++d) c.dims.add(index.shape()[d].raw(), {index.strides()[d], 0});
  c.dims.add(weight.shape()[1].raw(), {0, weight.strides()[1]});
  if (a.without_padding) c.blank = a.padding_idx;
  read(call, weight, index, 0, *outputs[0], c);
}

void flat_index(const Call& call, TensorImpl* const* outputs) {
  const Shape& sizes = call.attrs_as<ops::FlatIndex::Attrs>().sizes;
  Gpu& gpu = Gpu::current();
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const TensorImpl& index = *call.operands[k];
    FlatCall c;
    for (int d = 0; d < index.rank(); ++d) c.dims.add(index.shape()[d].raw(), {index.strides()[d]});
    c.dims.finish();
    if (c.dims.numel == 0) return;
    c.out = static_cast<int64_t*>(outputs[0]->data());
    c.size = sizes[static_cast<int>(k)].raw();
    c.is_first = k == 0;
    set_index(call, index, c);
    gpu.launchers().index->flat(c, gpu.compute().handle());
    gpu.launched(call.op->name);
  }
}

void is_in(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &x = *call.operands[0], &sorted = *call.operands[1];
  IsInCall c;
  for (int d = 0; d < x.rank(); ++d) c.dims.add(x.shape()[d].raw(), {x.strides()[d]});
  c.dims.finish();
  if (c.dims.numel == 0) return;
  c.x = x.data();
  c.sorted = sorted.data();
  c.out = static_cast<bool*>(outputs[0]->data());
  c.element = static_cast<Element>(x.dtype());
  c.count = sorted.shape()[0].raw();
  c.step = sorted.strides()[0];
  c.invert = call.attrs_as<ops::IsIn::Attrs>().invert;
  Gpu& gpu = Gpu::current();
  const IndexLaunchers& all = *gpu.launchers().index;
  const ScalarType type = compute_type(x.dtype());
  (type == kFloat32   ? all.is_in_f32
   : type == kFloat64 ? all.is_in_f64
                      : all.is_in_i64)(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

// ---- writing ----------------------------------------------------------------------------------------------

enum class Put { write, reduce };

// A call that writes parts of `src` into `out`, whose other values are there already. The functions that fill it in
// specify which dims are positions.
struct Putting {
  TargetCall to;
  PutCall put;
  bool is_single = false;  // no target can occur twice
  bool is_double = false;  // floating elements are reduced in double

  Putting(TensorImpl& out, const TensorImpl* src) {
    put.out = out.data();
    put.element = static_cast<Element>(out.dtype());
    put.width = width_of(out);
    if (src) put.src = src->data();
  }

  void run(const Call& call, Put how) {
    to.positions.finish();
    put.positions.finish();
    put.rest.finish();
    const int64_t n = put.positions.numel;
    if (n == 0 || put.rest.numel == 0) return;
    is_single = is_single || n == 1;
    const Scratch targets(n * 8, call.op->name);
    put.target = to.target = static_cast<int64_t*>(targets.data());
    Gpu& gpu = Gpu::current();
    gpu.launchers().index->target(to, gpu.compute().handle());
    gpu.launched(call.op->name);
    how == Put::write ? write(call, gpu) : reduce(call, gpu);
    gpu.launched(call.op->name);
  }

 private:
  void write(const Call& call, Gpu& gpu) {
    if (put.positions.numel >= UINT32_MAX)
      fail_call(call, Category::unsupported, "2^32 positions or more on a device");
    std::optional<Scratch> winner;
    if (put.src && !is_single)
      put.winner = static_cast<unsigned*>(winner.emplace(put.targets * 4, call.op->name).data());
    gpu.launchers().index->write(put, gpu.compute().handle());
  }

  void reduce(const Call& call, Gpu& gpu) {
    const int64_t n = put.positions.numel;
    std::optional<Scratch> order;
    if (!is_single) {
      auto* const sorted = static_cast<int64_t*>(order.emplace(n * 8, call.op->name).data());
      sort_places(call, put.target, n, put.targets, sorted);
      put.order = sorted;
    }
    const IndexLaunchers& all = *gpu.launchers().index;
    const ScalarType type = compute_type(static_cast<ScalarType>(put.element));
    (type == kInt64                  ? all.reduce_i64
     : type == kFloat64 || is_double ? all.reduce_f64
                                     : all.reduce_f32)(put, gpu.compute().handle());
  }
};

// Element by element, as scatter does. Without src a number is written.
Putting elements(const Call& call, TensorImpl& out, const TensorImpl& index, int dim, const TensorImpl* src) {
  Putting p(out, src);
  for (int d = 0; d < index.rank(); ++d) {
    const int64_t n = index.shape()[d].raw();
    p.to.positions.add(n, {index.strides()[d], d == dim ? 0 : out.strides()[d]});
    p.put.positions.add(n, {src ? src->strides()[d] : 0});
  }
  p.to.entries = out.shape()[dim].raw();
  p.to.step = out.strides()[dim];
  p.put.targets = out.numel().raw();
  p.is_single = index.shape()[dim].raw() <= 1;
  set_index(call, index, p.to);
  return p;
}

// Whole entries of a dim, like index_add.
Putting entries(const Call& call, TensorImpl& out, const TensorImpl& index, int dim, const TensorImpl& src) {
  Putting p(out, &src);
  const int64_t n = index.numel().raw();
  p.to.positions.add(n, {index.strides()[0], 0});
  p.to.entries = p.put.targets = out.shape()[dim].raw();
  p.to.step = 1;
  p.put.positions.add(n, {src.strides()[dim]});
  p.put.unit = out.strides()[dim];
  for (int d = 0; d < out.rank(); ++d)
    if (d != dim) p.put.rest.add(out.shape()[d].raw(), {out.strides()[d], src.strides()[d]});
  set_index(call, index, p.to);
  return p;
}

void write_bits(Scalar value, ScalarType dtype, uint64_t& bits) {
  dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    T v;
    if constexpr (std::is_integral_v<T>)
      v = static_cast<T>(value.to_int());
    else
      v = static_cast<T>(value.to_double());
    std::memcpy(&bits, &v, sizeof(v));
  });
}

void scatter(const Call& call, TensorImpl* const* outputs) {
  const ops::Scatter::Attrs& a = call.attrs_as<ops::Scatter::Attrs>();
  TensorImpl& out = *outputs[0];
  convert_copy(*call.operands[0], out);
  if (call.operands[1]->numel().raw() == 0) return;  // an index of any rank
  Putting p = elements(call, out, *call.operands[1], static_cast<int>(a.dim), call.operands[2]);
  if (!call.operands[2]) write_bits(a.scalar, out.dtype(), p.put.number);
  p.run(call, Put::write);
}

void scatter_add(const Call& call, TensorImpl* const* outputs) {
  const int dim = static_cast<int>(call.attrs_as<ops::DimAttrs>().dim);
  convert_copy(*call.operands[0], *outputs[0]);
  if (call.operands[1]->numel().raw() == 0) return;
  elements(call, *outputs[0], *call.operands[1], dim, call.operands[2]).run(call, Put::reduce);
}

void scatter_reduce(const Call& call, TensorImpl* const* outputs) {
  const ops::ScatterReduce::Attrs& a = call.attrs_as<ops::ScatterReduce::Attrs>();
  convert_copy(*call.operands[0], *outputs[0]);
  if (call.operands[1]->numel().raw() == 0) return;
  Putting p = elements(call, *outputs[0], *call.operands[1], static_cast<int>(a.dim), call.operands[2]);
  p.put.how = a.how();
  p.put.include_self = a.include_self;
  p.is_double = true;
  p.run(call, Put::reduce);
}

template <Put how>
void put_entries(const Call& call, TensorImpl* const* outputs) {
  const int dim = static_cast<int>(call.attrs_as<ops::DimAttrs>().dim);
  convert_copy(*call.operands[0], *outputs[0]);
  entries(call, *outputs[0], *call.operands[1], dim, *call.operands[2]).run(call, how);
}

void index_select_backward(const Call& call, TensorImpl* const* outputs) {
  const int dim = static_cast<int>(call.attrs_as<ops::IndexSelectBackward::Attrs>().dim);
  fill(call, *outputs[0], 0);
  entries(call, *outputs[0], *call.operands[1], dim, *call.operands[0]).run(call, Put::reduce);
}

// g's rows written to the rows of `out` that the index selects.
Putting table_rows(const Call& call, TensorImpl& out, const TensorImpl& index, const TensorImpl& g,
                   const ops::EmbeddingAttrs& a) {
  Putting p(out, &g);
  for (int d = 0; d < index.rank(); ++d) {
    p.to.positions.add(index.shape()[d].raw(), {index.strides()[d], 0});
    p.put.positions.add(index.shape()[d].raw(), {g.strides()[d]});
  }
  p.to.entries = p.put.targets = out.shape()[0].raw();
  p.to.step = 1;
  p.to.skip = a.padding_idx;
  p.put.include_self = false;
  if (a.scale_grad_by_freq) p.put.how = ops::ScatterReduction::mean;
  p.put.unit = out.strides()[0];
  p.put.rest.add(out.shape()[1].raw(), {out.strides()[1], g.strides()[g.rank() - 1]});
  set_index(call, index, p.to);
  return p;
}

void embedding_backward(const Call& call, TensorImpl* const* outputs) {
  const ops::EmbeddingAttrs& a = call.attrs_as<ops::EmbeddingBackward::Attrs>().embedding;
  fill(call, *outputs[0], 0);
  table_rows(call, *outputs[0], *call.operands[0], *call.operands[1], a).run(call, Put::reduce);
}

// x + 0, as where no row is added, and then the sums.
void embedding_add(const Call& call, TensorImpl* const* outputs) {
  const ops::EmbeddingAttrs& a = call.attrs_as<ops::EmbeddingAttrs>();
  TensorImpl& out = *outputs[0];
  ops::ScalarOperand zero{0.0};
  TensorImpl* operands[] = {call.operands[0], nullptr};
  elementwise(
      {&ops::info<ops::Add>, operands, &zero, call.where, 1}, out,
      Gpu::current().launchers().elementwise->arithmetic[ops::index_of<ops::Add, ops::ArithmeticOps>]);
  Putting p = table_rows(call, out, *call.operands[1], *call.operands[2], a);
  p.put.apart = true;
  p.run(call, Put::reduce);
}

// `where(mask, value, x)`.
void masked_fill(const Call& call, TensorImpl* const* outputs) {
  ops::Where::Attrs attrs{};
  attrs.scalar = call.attrs_as<ops::MaskedFill::Attrs>().scalar;
  TensorImpl* operands[] = {call.operands[1], call.operands[2], call.operands[0]};
  const Call where{&ops::info<ops::Where>, operands, &attrs, call.where, 1};
  elementwise(where, *outputs[0],
              Gpu::current().launchers().elementwise->ternary[ops::index_of<ops::Where, ops::TernaryOps>]);
}

// ---- transposes of views ----------------------------------------------------------------------------------

// The elements of the output that view V shows.
template <class V>
RefPtr<TensorImpl> region_of(const Call& call, typename V::Attrs& attrs, TensorImpl* const* outputs) {
  RefPtr<TensorImpl> region = TensorImpl::make();
  const Call view{&ops::info<V>, {outputs, 1}, &attrs, call.where, 1};
  TensorImpl* cell = region.get();
  V::infer(view, &cell);
  if constexpr (std::is_same_v<V, ops::AsStrided>) ops::check_inside(call, attrs, outputs[0]->shape());
  V::layout(view, *region);
  region->set_storage(outputs[0]->storage());
  return region;
}

template <class V>
void transposed(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& g = *call.operands[0];
  TensorImpl& out = *outputs[0];
  const RefPtr<TensorImpl> region =
      region_of<V>(call, call.attrs_as<typename ops::Transposed<V>::Attrs>().view, outputs);
  fill(call, out, 0);
  if (region->numel().raw() == 0) return;
  if (cpu::is_injective(*region)) return convert_copy(g, *region);
  Putting p(out, &g);
  p.put.out = region->data();
  for (int d = 0; d < region->rank(); ++d) {
    p.to.positions.add(region->shape()[d].raw(), {0, region->strides()[d]});
    p.put.positions.add(region->shape()[d].raw(), {g.strides()[d]});
  }
  p.put.targets = out.numel().raw();
  p.run(call, Put::reduce);
}

template <class V>
void view_scatter(const Call& call, TensorImpl* const* outputs) {
  const RefPtr<TensorImpl> region = region_of<V>(call, call.attrs_as<typename V::Attrs>(), outputs);
  convert_copy(*call.operands[0], *outputs[0]);
  convert_copy(*call.operands[1], *region);
}

// The base in the layout of its memory, in temporary memory unless it is row-major; the view's elements are replaced
// there.
void as_strided_scatter(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &base = *call.operands[0], &value = *call.operands[1];
  TensorImpl& out = *outputs[0];
  const ops::Geometry& g = call.attrs_as<ops::Geometry>();
  ops::check_inside(call, g, base.shape());
  const RefPtr<TensorImpl> region = TensorImpl::make(), memory = TensorImpl::make();
  memory->alias(out);
  std::optional<Scratch> room;
  if (!g.base_is_dense) {
    int64_t extent = 1;
    for (int i = 0; i < base.rank(); ++i) {
      memory->set_stride(i, g.base_stride[i]);
      extent += (base.shape()[i].raw() - 1) * g.base_stride[i].raw();
    }
    room.emplace(std::max<int64_t>(extent, 1) * static_cast<int64_t>(element_size(out.dtype())),
                 call.op->name);
    memory->set_storage_offset(0);
    memory->set_storage(Storage::wrap(room->data(), 0, nullptr, nullptr));
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

void add_index_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Gather>, gather);
  table.set(&ops::info<ops::IndexSelect>, index_select);
  table.set(&ops::info<ops::Embedding>, embedding);
  table.set(&ops::info<ops::FlatIndex>, flat_index);
  table.set(&ops::info<ops::Scatter>, scatter);
  table.set(&ops::info<ops::ScatterAdd>, scatter_add);
  table.set(&ops::info<ops::ScatterReduce>, scatter_reduce);
  table.set(&ops::info<ops::IsIn>, is_in);
  table.set(&ops::info<ops::IndexAdd>, put_entries<Put::reduce>);
  table.set(&ops::info<ops::IndexCopy>, put_entries<Put::write>);
  table.set(&ops::info<ops::IndexSelectBackward>, index_select_backward);
  table.set(&ops::info<ops::EmbeddingBackward>, embedding_backward);
  table.set(&ops::info<ops::EmbeddingAdd>, embedding_add);
  table.set(&ops::info<ops::MaskedFill>, masked_fill);
  table.set(&ops::info<ops::Transposed<ops::Slice>>, transposed<ops::Slice>);
  table.set(&ops::info<ops::Transposed<ops::Select>>, transposed<ops::Select>);
  table.set(&ops::info<ops::Transposed<ops::Diagonal>>, transposed<ops::Diagonal>);
  table.set(&ops::info<ops::Transposed<ops::Unfold>>, transposed<ops::Unfold>);
  table.set(&ops::info<ops::Transposed<ops::AsStrided>>, transposed<ops::AsStrided>);
  table.set(&ops::info<ops::SliceScatter>, view_scatter<ops::Slice>);
  table.set(&ops::info<ops::SelectScatter>, view_scatter<ops::Select>);
  table.set(&ops::info<ops::DiagonalScatter>, view_scatter<ops::Diagonal>);
  table.set(&ops::info<ops::AsStridedScatter>, as_strided_scatter);
}

}  // namespace retrograd::cuda
