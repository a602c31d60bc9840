// Applies linear maps to grids: see cpu/kernels/resample.h.
//
// Resampler<T> goes over bands of result rows, in parallel. For a band it copies the rows of the operand that
// the band reaches into memory of the thread, adds them along the depth, and goes along height and width in
// the cheaper of the two orders. The row functions are those of cpu/kernels/levels/window_rows.h. A band
// reads and writes about kBand elements, so that it stays in the first-level cache. Start reading at
// Resampler::run.
#include "cpu/kernels/resample.h"

#include <algorithm>

#include "cpu/kernels/grid.h"
#include "cpu/kernels/row_access.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"

namespace retrograd::inline v0::cpu {
namespace {

// Elements that a band reads and writes: few enough for the first cache.
constexpr int64_t kBand = 4096;

template <class T>
class Resampler {
 public:
  Resampler(const TensorImpl& x, const GridMap& map, const TensorImpl& out)
      : map_(map),
        from_(x, map.dims),
        to_(out, map.dims),
        height_(map.axes[1]),
        width_(map.axes[2]),
        depth_(map.axes[0]),
        divisor_(map.divisors[2].begin(), map.divisors[2].end()),
        is_flat_(map.axes[0].is_identity()) {
    // Along the width a register of results takes about four times as long as along the height.
    const double in_rows = static_cast<double>(from_.height()), out_rows = static_cast<double>(to_.height());
    const double across = 4.0 * static_cast<double>(width().taps * to_.width());
    const double down = static_cast<double>(height().taps) * out_rows;
    width_first_ = in_rows * across + down * static_cast<double>(to_.width()) <
                   out_rows * across + down * static_cast<double>(from_.width());
    const int64_t rows = std::max<int64_t>(1, to_.height());
    row_cost_ = std::max<int64_t>(1, to_.width() + from_.width() * ((from_.height() + rows - 1) / rows));
    band_ = std::clamp<int64_t>(kBand / row_cost_, 1, rows);
  }

  void run() const {
    const int64_t bands = (to_.height() + band_ - 1) / band_, items = to_.volumes() * to_.depth() * bands;
    const int64_t grain = std::max<int64_t>(1, kRowGrain / (band_ * row_cost_));
    const AllRooms all(*this, ceil_div(items, grain));
    parallel_range(items, grain, [&](int64_t begin, int64_t end) {
      const Rooms rooms = all.mine();
      std::fill_n(rooms.row + from_.width(), kRowSlack, T(0));
      for (int64_t item = begin; item < end; ++item) {
        const int64_t row = item % bands * band_, plane = item / bands;
        band(rooms, plane / to_.depth(), plane % to_.depth(), row, std::min(row + band_, to_.height()));
      }
    });
  }

 private:
  // Memory of one thread. The rows of a band are copied before they are added: memory is read in order
  // then, and faster than by overlapping or alternating rows.
  struct Rooms {
    T *row, *lines, *planes, *result;
    const T **pointers, **plane_pointers;
  };
  struct AllRooms {
    AllRooms(const Resampler& r, int64_t chunks)
        : row(r.from_.width() + kRowSlack, chunks),
          lines(r.line_length() * r.band_lines(), chunks),
          planes(r.is_flat_ ? 0 : r.from_.width() * r.depth().taps, chunks),
          result(r.to_.width(), chunks),
          pointers(r.band_lines(), chunks),
          plane_pointers(r.is_flat_ ? 0 : r.depth().taps, chunks) {}
    Rooms mine() const {
      return {row.mine(), lines.mine(), planes.mine(), result.mine(), pointers.mine(), plane_pointers.mine()};
    }
    ThreadScratch<T> row, lines, planes, result;
    ThreadScratch<const T*> pointers, plane_pointers;
  };

  const Windows<T>& depth() const { return depth_.windows(); }
  const Windows<T>& height() const { return height_.windows(); }
  const Windows<T>& width() const { return width_.windows(); }
  int64_t line_length() const { return width_first_ ? to_.width() : from_.width(); }
  int64_t band_lines() const { return map_.axes[1].widest_band(band_); }

  void band(const Rooms& rooms, int64_t volume, int64_t d, int64_t begin, int64_t end) const {
    const Axis& axis = map_.axes[1];
    const auto [top, bottom] = axis.reach(begin, end);
    for (int64_t i = 0; i < bottom - top; ++i) {
      T* line = rooms.lines + i * line_length();
      rooms.pointers[i] = line;
      read(rooms, volume, d, top + i, width_first_ ? rooms.row : line);
      if (width_first_) window_table<T>().combine(rooms.row, width(), line);
    }
    for (int64_t h = begin; h < end; ++h) {
      T* in_place = to_.template direct<T>(volume, d, h);
      T* result = in_place ? in_place : rooms.result;
      T* sum = width_first_ ? result : rooms.row;
      window_table<T>().add_rows(rooms.pointers + (axis.first[h] - top),
                                 height().weight ? height().weight + h : nullptr, height().pitch,
                                 axis.count[h], line_length(), sum);
      if (!width_first_) window_table<T>().combine(sum, width(), result);
      if (map_.division == GridMap::Division::after)
        window_table<T>().divide(result, divisor_.data(), scale(d, h), to_.width(), result);
      if (!in_place) to_.write(volume, d, h, result);
    }
  }

  // A row for depth d of the result: the sum over the depth of rows, divided before if that is asked for.
  void read(const Rooms& rooms, int64_t volume, int64_t d, int64_t h, T* to) const {
    if (is_flat_) return read_divided(volume, d, h, to);
    const int64_t count = depth().count[d], n = from_.width();
    for (int64_t k = 0; k < count; ++k) {
      T* room = rooms.planes + k * n;
      read_divided(volume, depth().first[d] + k, h, room);
      rooms.plane_pointers[k] = room;
    }
    window_table<T>().add_rows(rooms.plane_pointers, depth().weight ? depth().weight + d : nullptr,
                               depth().pitch, count, n, to);
  }

  void read_divided(int64_t volume, int64_t d, int64_t h, T* to) const {
    from_.read(volume, d, h, to);
    if (map_.division == GridMap::Division::before)
      window_table<T>().divide(to, divisor_.data(), scale(d, h), from_.width(), to);
  }

  T scale(int64_t d, int64_t h) const { return static_cast<T>(map_.divisors[0][d] * map_.divisors[1][h]); }

  const GridMap& map_;
  Grid from_, to_;
  WindowArrays<T> height_, width_, depth_;
  std::vector<T> divisor_;  // along the width
  bool is_flat_, width_first_;
  int64_t band_, row_cost_;  // rows of a band; elements read and written for a row of the result
};

}  // namespace

void resample(const TensorImpl& x, const GridMap& map, TensorImpl& out) {
  if (out.numel().raw() == 0) return;
  dispatch_compute(x.dtype(), [&]<class T>(std::type_identity<T>) { Resampler<T>(x, map, out).run(); });
}

}  // namespace retrograd::cpu
