// Kernels of ops/pooling.h.
//
// Averages are linear maps of grids (cpu/kernels/resample.h). The largest elements are found for a row of
// results at a time, over the rows of its windows (MaxPooling, by WindowTable::max_rows); their gradients go
// back to the indices volume by volume, each in order of position. Bands of result rows run in parallel, and
// whole volumes on the way back, so that no two threads add to one element.
#include "ops/pooling.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "cpu/kernels/grid.h"
#include "cpu/kernels/grid_maps.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"

namespace retrograd::inline v0::cpu {
namespace {

// ---- largest elements -------------------------------------------------------------------------------------

template <class T>
class MaxPooling {
 public:
  MaxPooling(const TensorImpl& x, const Axis (&axes)[3], int dims, TensorImpl* const* outputs)
      : from_(x, dims),
        values_(*outputs[0], dims),
        places_(*outputs[1], dims),
        depth_(axes[0]),
        height_(axes[1]),
        windows_(axes[2]),
        pitch_(from_.width() + kRowSlack) {
    const int64_t rows = std::max<int64_t>(1, values_.height());
    const int64_t in_rows = depth_.taps() * ((from_.height() + rows - 1) / rows);
    row_cost_ = std::max<int64_t>(1, values_.width() + in_rows * from_.width());
    band_ = std::clamp<int64_t>(kRowGrain / 2 / row_cost_, 1, rows);
  }

  void run() const {
    const int64_t bands = (values_.height() + band_ - 1) / band_;
    const int64_t items = values_.volumes() * values_.depth() * bands;
    const int64_t grain = std::max<int64_t>(1, kRowGrain / (band_ * row_cost_));
    const AllRooms all(*this, ceil_div(items, grain));
    parallel_range(items, grain, [&](int64_t begin, int64_t end) {
      const Rooms rooms = all.mine();
      for (int64_t item = begin; item < end; ++item) {
        const int64_t row = item % bands * band_, plane = item / bands;
        band(rooms, plane / values_.depth(), plane % values_.depth(), row,
             std::min(row + band_, values_.height()));
      }
    });
  }

 private:
  // Memory of one thread. Row functions read a little beyond a row: rows that do not lie so are copied.
  struct Rooms {
    T *lines, *result;
    const T** rows;
    LaneOf<T>* places;
  };
  struct AllRooms {
    AllRooms(const MaxPooling& m, int64_t chunks)
        : lines(m.pitch_ * m.depth_.taps() * m.band_lines(), chunks),
          result(m.values_.width(), chunks),
          rows(m.window_rows(), chunks),
          places(m.window_rows(), chunks) {}
    Rooms mine() const { return {lines.mine(), result.mine(), rows.mine(), places.mine()}; }
    ThreadScratch<T> lines, result;
    ThreadScratch<const T*> rows;
    ThreadScratch<LaneOf<T>> places;
  };

  int64_t band_lines() const { return height_.widest_band(band_); }
  int64_t window_rows() const { return std::max<int64_t>(1, depth_.taps() * height_.taps()); }

  void band(const Rooms& rooms, int64_t volume, int64_t d, int64_t begin, int64_t end) const {
    const Axis::Reach rows = height_.reach(begin, end);
    const auto line = [&](int64_t plane, int64_t row) {
      return rooms.lines + (plane * (rows.end - rows.begin) + row - rows.begin) * pitch_;
    };
    const auto in_place = [&](int64_t plane, int64_t row) {
      return from_.template direct<T>(volume, depth_.first[d] + plane * depth_.step, row, kRowSlack);
    };
    for (int64_t p = 0; p < depth_.count[d]; ++p)
      for (int64_t row = rows.begin; row < rows.end; ++row)
        if (!in_place(p, row)) from_.read(volume, depth_.first[d] + p * depth_.step, row, line(p, row));
    for (int64_t h = begin; h < end; ++h) {
      int64_t count = 0;
      rooms.places[0] = place(depth_.first[d], height_.first[h]);
      for (int64_t p = 0; p < depth_.count[d]; ++p)
        for (int64_t k = 0, row = height_.first[h]; k < height_.count[h]; ++k, row += height_.step) {
          const T* const direct = in_place(p, row);
          rooms.rows[count] = direct ? direct : line(p, row);
          rooms.places[count++] = place(depth_.first[d] + p * depth_.step, row);
        }
      T* const target = values_.template direct<T>(volume, d, h);
      T* const values = target ? target : rooms.result;
      window_table<T>().max_rows(rooms.rows, rooms.places, count, windows_.windows(), values,
                                 places_.template direct<int64_t>(volume, d, h));
      if (!target) values_.write(volume, d, h, values);
    }
  }

  // The index of a row's first element in the flattened grid.
  LaneOf<T> place(int64_t d, int64_t h) const {
    return static_cast<LaneOf<T>>((d * from_.height() + h) * from_.width());
  }

  Grid from_, values_, places_;
  const Axis &depth_, &height_;
  WindowArrays<T> windows_;
  int64_t pitch_, band_, row_cost_;  // between lines; rows of a band; elements read and written for a row
};

void max_pooling(const TensorImpl& x, const Axis (&axes)[3], int dims, TensorImpl* const* outputs) {
  // Places must fit into integers as wide as T.
  const bool is_large = axes[0].in * axes[1].in * axes[2].in > INT32_MAX;
  if (!is_floating(x.dtype()))
    MaxPooling<int64_t>(x, axes, dims, outputs).run();
  else if (is_large || x.dtype() == kFloat64)
    MaxPooling<double>(x, axes, dims, outputs).run();
  else
    MaxPooling<float>(x, axes, dims, outputs).run();
}

// axes[i] = f(size of the operand, of the result, the dim's number among those of the grid); missing dims
// are copied.
template <class F>
void fill_axes(Axis (&axes)[3], const TensorImpl& x, const TensorImpl& y, int dims, const F& f) {
  for (int i = 0; i < 3 - dims; ++i) axes[i] = identity_axis(1);
  for (int i = 0; i < dims; ++i)
    axes[3 - dims + i] = f(x.shape()[x.rank() - dims + i].raw(), y.shape()[y.rank() - dims + i].raw(), i);
}

}  // namespace

int max_pool_axes(const ops::MaxPool::Attrs& a, const TensorImpl& x, const TensorImpl& y, Axis (&axes)[3]) {
  const int dims = a.kernel_size.size();
  fill_axes(axes, x, y, dims, [&](int64_t in, int64_t out, int i) {
    return window_axis(in, out, a.kernel_size[i], a.stride[i], a.padding[i], a.dilation[i]);
  });
  return dims;
}

int max_pool_axes(const ops::GridSize& a, const TensorImpl& x, const TensorImpl& y, Axis (&axes)[3]) {
  fill_axes(axes, x, y, a.size.rank(), [](int64_t in, int64_t out, int) { return adaptive_axis(in, out); });
  return a.size.rank();
}

namespace {

template <class Attrs>
void max_pool(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;
  Axis axes[3];
  const int dims = max_pool_axes(call.attrs_as<Attrs>(), *call.operands[0], *outputs[0], axes);
  max_pooling(*call.operands[0], axes, dims, outputs);
}

// sums[place] += g for all elements of a volume of gradients.
template <class T>
void add_at_places(const Call& call, const Grid& from, const Grid& places, int64_t volume, int64_t size,
                   T* sums, T* g_room, int64_t* place_room) {
  if (from.width() == 0 || from.height() == 0) return;  // the depth may be anything
  for (int64_t d = 0; d < from.depth(); ++d)
    for (int64_t h = 0; h < from.height(); ++h) {
      const T* g = from.direct<T>(volume, d, h);
      const int64_t* place = places.direct<int64_t>(volume, d, h);
      if (!g) from.read(volume, d, h, g_room), g = g_room;
      if (!place) places.read(volume, d, h, place_room), place = place_room;
      for (int64_t i = 0; i < from.width(); ++i) {
        if (place[i] < 0 || place[i] >= size)
          fail_call(call, Category::index_out_of_range,
                    fmt::format("index {} is out of range for a grid of {} elements", place[i], size));
        sums[place[i]] += g[i];
      }
    }
}

void max_pool_backward(const Call& call, TensorImpl* const* outputs) {
  const int dims = call.attrs_as<ops::GridSize>().size.rank();
  const Grid from(*call.operands[0], dims), places(*call.operands[1], dims), to(*outputs[0], dims);
  if (outputs[0]->numel().raw() == 0) return;
  const int64_t size = to.volume_size(), cost = size + from.volume_size();
  dispatch(outputs[0]->dtype(), [&]<class D>(std::type_identity<D>) {
    using T = ComputeOf<D>;
    D* data = static_cast<D*>(outputs[0]->data());
    const int64_t grain = std::max<int64_t>(1, kRowGrain / cost), chunks = ceil_div(to.volumes(), grain);
    const ThreadScratch<T> room(std::is_same_v<T, D> ? 0 : size, chunks), g_room(from.width(), chunks);
    const ThreadScratch<int64_t> place_room(from.width(), chunks);
    parallel_range(to.volumes(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t volume = begin; volume < end; ++volume) {
        D* result = data + volume * size;
        T* sums;
        if constexpr (std::is_same_v<T, D>)
          sums = result;
        else
          sums = room.mine();
        std::fill_n(sums, size, T(0));
        add_at_places(call, from, places, volume, size, sums, g_room.mine(), place_room.mine());
        if constexpr (!std::is_same_v<T, D>)
          for (int64_t i = 0; i < size; ++i) result[i] = convert<D>(sums[i]);
      }
    });
  });
}

// ---- averages ---------------------------------------------------------------------------------------------

// What a window's sum is divided by, along one dim: its length, with or without what lies outside.
std::vector<double> window_lengths(const ops::AvgPoolAttrs& a, int i, const Axis& axis) {
  std::vector<double> lengths;
  for (int64_t j = 0; j < axis.out(); ++j) {
    const int64_t begin = j * a.stride[i] - a.padding[i];
    const int64_t whole = std::min(begin + a.kernel_size[i], axis.in + a.padding[i]) - begin;
    lengths.push_back(static_cast<double>(std::max<int64_t>(1, a.count_include_pad ? whole : axis.count[j])));
  }
  return lengths;
}

}  // namespace

GridMap average_map(const ops::AvgPoolAttrs& a, const TensorImpl& x, const TensorImpl& y) {
  GridMap map;
  map.dims = a.size.rank();
  map.division = GridMap::Division::after;
  fill_axes(map.axes, x, y, map.dims, [&](int64_t in, int64_t out, int i) {
    return window_axis(in, out, a.kernel_size[i], a.stride[i], a.padding[i], 1);
  });
  for (int i = 0; i < 3; ++i) {
    const int dim = i - (3 - map.dims);
    if (a.divisor_override != 0 || dim < 0)
      map.divisors[i].assign(map.axes[i].first.size(), 1);
    else
      map.divisors[i] = window_lengths(a, dim, map.axes[i]);
  }
  if (a.divisor_override != 0)
    std::fill(map.divisors[2].begin(), map.divisors[2].end(), static_cast<double>(a.divisor_override));
  return map;
}

GridMap adaptive_map(const ops::GridSize& a, const TensorImpl& x, const TensorImpl& y) {
  GridMap map;
  map.dims = a.size.rank();
  map.division = GridMap::Division::after;
  fill_axes(map.axes, x, y, map.dims, [](int64_t in, int64_t out, int) { return adaptive_axis(in, out); });
  for (int i = 0; i < 3; ++i) map.divisors[i].assign(map.axes[i].count.begin(), map.axes[i].count.end());
  return map;
}

void turn(GridMap& map) {
  for (Axis& axis : map.axes) axis = transposed(axis);
  map.division = GridMap::Division::before;
}

namespace {

template <class Attrs, GridMap (*MapOf)(const Attrs&, const TensorImpl&, const TensorImpl&)>
void average(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;
  const TensorImpl& x = *call.operands[0];
  resample(x, MapOf(call.attrs_as<Attrs>(), x, *outputs[0]), *outputs[0]);
}

template <class Attrs, GridMap (*MapOf)(const Attrs&, const TensorImpl&, const TensorImpl&)>
void average_backward(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;
  const TensorImpl& g = *call.operands[0];
  if (g.numel().raw() == 0) {  // sums of nothing; its other sizes may be anything
    if (measuring()) return;
    std::memset(outputs[0]->data(), 0,
                static_cast<size_t>(outputs[0]->numel().raw()) * element_size(outputs[0]->dtype()));
    return;
  }
  GridMap map = MapOf(call.attrs_as<Attrs>(), *outputs[0], g);
  turn(map);
  resample(g, map, *outputs[0]);
}

}  // namespace

void add_pooling_kernels(KernelTable& table) {
  table.set(&ops::info<ops::MaxPool>, max_pool<ops::MaxPool::Attrs>, KernelTable::kScratch);
  table.set(&ops::info<ops::AdaptiveMaxPool>, max_pool<ops::GridSize>, KernelTable::kScratch);
  table.set(&ops::info<ops::MaxPoolBackward>, max_pool_backward, KernelTable::kScratch);
  table.set(&ops::info<ops::AvgPool>, average<ops::AvgPoolAttrs, average_map>, KernelTable::kScratch);
  table.set(&ops::info<ops::AvgPoolBackward>, average_backward<ops::AvgPoolAttrs, average_map>,
            KernelTable::kScratch);
  table.set(&ops::info<ops::AdaptiveAvgPool>, average<ops::GridSize, adaptive_map>, KernelTable::kScratch);
  table.set(&ops::info<ops::AdaptiveAvgPoolBackward>, average_backward<ops::GridSize, adaptive_map>,
            KernelTable::kScratch);
}

}  // namespace retrograd::cpu
