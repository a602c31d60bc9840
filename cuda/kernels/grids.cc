// Pooling and interpolation on a device. The axes' matrices are those of the CPU (cpu/kernels/grid_maps.h), copied to
// the device for a call.
#include <optional>
#include <span>
#include <vector>

#include "cpu/kernels/grid_maps.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/grid_call.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/table.h"
#include "cuda/scratch.h"

namespace retrograd::inline v0::cuda {
namespace {

using cpu::Axis;
using cpu::GridMap;

// Numbers of 8 bytes that a call needs on the device: counted first, then written contiguously.
class Numbers {
 public:
  template <class T>
  void add(const std::vector<T>& values, const T*& place) {
    static_assert(sizeof(T) == 8);
    if (values.empty()) return;
    const auto* words = reinterpret_cast<const uint64_t*>(values.data());
    places_.push_back({reinterpret_cast<const void**>(&place), words_.size()});
    words_.insert(words_.end(), words, words + values.size());
  }
  /// Copies them to the device; the pointers that were handed out are updated to point there.
  void upload(std::optional<Uploaded>& memory, std::string_view op) {
    const auto* data =
        static_cast<const uint64_t*>(memory.emplace(std::as_bytes(std::span(words_)), op).data());
    for (const auto& [place, at] : places_) *place = data + at;
  }

 private:
  struct Place {
    const void** pointer;
    size_t at;
  };
  std::vector<uint64_t> words_;
  std::vector<Place> places_;
};

void set_axis(Numbers& numbers, const Axis& from, GridAxis& to) {
  to.in = from.in;
  to.out = from.out();
  to.step = from.step;
  numbers.add(from.first, to.first);
  numbers.add(from.count, to.count);
  if (from.weight.empty()) return;
  std::vector<int64_t> start(from.count.size());
  for (size_t j = 1; j < start.size(); ++j) start[j] = start[j - 1] + from.count[j - 1];
  numbers.add(start, to.start);
  numbers.add(from.weight, to.weight);
}

void set_operand(GridCall& c, const TensorImpl& x, int dims) {
  const int outer = x.rank() - dims;
  c.x = x.data();
  c.element = static_cast<Element>(x.dtype());
  for (int d = 0; d < dims; ++d) c.stride[3 - dims + d] = x.strides()[outer + d];
  for (int d = 0; d < outer; ++d) {
    c.outer_size[d] = x.shape()[d].raw();
    c.outer_stride[d] = x.strides()[d];
    c.volumes *= c.outer_size[d];
  }
  c.outer_rank = outer;
  if (outer == 0) c.outer_size[c.outer_rank++] = 1;
}

template <class Launcher>
void run(const Call& call, const GridCall& c, ScalarType dtype, Launcher f32, Launcher f64, Launcher i64) {
  Gpu& gpu = Gpu::current();
  const ScalarType type = compute_type(dtype);
  (type == kFloat32 ? f32 : type == kFloat64 ? f64 : i64)(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

void resample(const Call& call, const GridMap& map, TensorImpl& out) {
  const TensorImpl& x = *call.operands[0];
  GridCall c;
  Numbers numbers;
  set_operand(c, x, map.dims);
  c.out = out.data();
  c.division = static_cast<GridDivision>(map.division);
  for (int i = 0; i < 3; ++i) {
    set_axis(numbers, map.axes[i], c.axis[i]);
    if (map.division != GridMap::Division::none) numbers.add(map.divisors[i], c.axis[i].divisor);
  }
  std::optional<Uploaded> memory;
  numbers.upload(memory, call.op->name);
  const GridRow& row = *Gpu::current().launchers().grids;
  run(call, c, x.dtype(), row.resample_f32, row.resample_f64, row.resample_i64);
}

static_assert(static_cast<int>(GridDivision::before) == static_cast<int>(GridMap::Division::before) &&
              static_cast<int>(GridDivision::after) == static_cast<int>(GridMap::Division::after));

template <class Attrs, GridMap (*map_of)(const Attrs&, const TensorImpl&, const TensorImpl&)>
void forward_kernel(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;
  resample(call, map_of(call.attrs_as<Attrs>(), *call.operands[0], *outputs[0]), *outputs[0]);
}

template <class Attrs, GridMap (*map_of)(const Attrs&, const TensorImpl&, const TensorImpl&)>
void backward_kernel(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;
  const TensorImpl& g = *call.operands[0];
  if (g.numel().raw() == 0) return fill(call, *outputs[0], 0);  // empty sums; its other sizes may be anything
  GridMap map = map_of(call.attrs_as<Attrs>(), *outputs[0], g);
  cpu::turn(map);
  resample(call, map, *outputs[0]);
}

// A transposed interpolation divides nothing.
void interpolate_backward_kernel(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;
  GridMap map =
      cpu::interpolation_map(call.attrs_as<ops::InterpolateAttrs>(), *outputs[0], *call.operands[0]);
  for (Axis& axis : map.axes) axis = cpu::transposed(axis);
  resample(call, map, *outputs[0]);
}

template <class Attrs>
void max_pool_kernel(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;
  const TensorImpl& x = *call.operands[0];
  Axis axes[3];
  GridCall c;
  Numbers numbers;
  set_operand(c, x, cpu::max_pool_axes(call.attrs_as<Attrs>(), x, *outputs[0], axes));
  for (int i = 0; i < 3; ++i) set_axis(numbers, axes[i], c.axis[i]);
  c.out = outputs[0]->data();
  c.places = static_cast<int64_t*>(outputs[1]->data());
  std::optional<Uploaded> memory;
  numbers.upload(memory, call.op->name);
  const GridRow& row = *Gpu::current().launchers().grids;
  run(call, c, x.dtype(), row.max_f32, row.max_f64, row.max_i64);
}

// Indices beyond the grid are not checked: the device does not report them.
void max_pool_backward_kernel(const Call& call, TensorImpl* const* outputs) {
  TensorImpl& out = *outputs[0];
  if (out.numel().raw() == 0) return;
  const TensorImpl &g = *call.operands[0], &places = *call.operands[1];
  if (g.numel().raw() == 0) return fill(call, out, 0);
  const int dims = call.attrs_as<ops::GridSize>().size.rank(), outer = g.rank() - dims;
  PlacesCall c{.g = g.data(), .places = places.data(), .element = static_cast<Element>(out.dtype())};
  c.out = c.sums = out.data();
  for (int d = 0; d < outer; ++d) c.volumes *= g.shape()[d].raw();
  c.elements = g.numel().raw() / c.volumes;
  c.volume_size = out.numel().raw() / c.volumes;
  c.rank = g.rank();
  for (int d = 0; d < c.rank; ++d) {
    c.size[d] = g.shape()[d].raw();
    c.stride[d][0] = g.strides()[d];
    c.stride[d][1] = places.strides()[d];
  }
  const ScalarType type = compute_type(out.dtype());
  std::optional<Scratch> sums;
  if (type != out.dtype()) c.sums = sums.emplace(out.numel().raw() * 4, call.op->name).data();
  Gpu& gpu = Gpu::current();
  const GridRow& row = *gpu.launchers().grids;
  (type == kFloat64 ? row.places_f64 : row.places_f32)(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

}  // namespace

void add_grids_kernels(KernelTable& table) {
  table.set(&ops::info<ops::MaxPool>, max_pool_kernel<ops::MaxPool::Attrs>);
  table.set(&ops::info<ops::AdaptiveMaxPool>, max_pool_kernel<ops::GridSize>);
  table.set(&ops::info<ops::MaxPoolBackward>, max_pool_backward_kernel);
  table.set(&ops::info<ops::AvgPool>, forward_kernel<ops::AvgPoolAttrs, cpu::average_map>);
  table.set(&ops::info<ops::AvgPoolBackward>, backward_kernel<ops::AvgPoolAttrs, cpu::average_map>);
  table.set(&ops::info<ops::AdaptiveAvgPool>, forward_kernel<ops::GridSize, cpu::adaptive_map>);
  table.set(&ops::info<ops::AdaptiveAvgPoolBackward>, backward_kernel<ops::GridSize, cpu::adaptive_map>);
  table.set(&ops::info<ops::Interpolate>, forward_kernel<ops::InterpolateAttrs, cpu::interpolation_map>);
  table.set(&ops::info<ops::InterpolateBackward>, interpolate_backward_kernel);
}

}  // namespace retrograd::cuda
