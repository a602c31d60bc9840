// Kernels of ops/grid_sample.h.
//
// All operands are row-major in float or double: others are copied. Points are computed in blocks. For each point of a
// block the places that it reads and their weights are found once (Stencils), for all channels: products of the taps
// of its coordinates. Results run in parallel over samples and blocks of points. The transpose adds into pictures: it
// runs over samples and groups of channels, and finds the places anew for each group, so that no two threads add to
// one element and sums are in order of the points.
#include "ops/grid_sample.h"

#include <algorithm>

#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "ops/grid_taps.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kBlock = 64, kChannels = 8;  // points and channels that one piece of work has

// The sizes of a call; a picture of two dims has depth 1.
struct GridSizes {
  int dims;
  int64_t batch, channels, points, size[3];  // depth, height, width
  int64_t picture() const { return size[0] * size[1] * size[2]; }
  int64_t blocks() const { return ceil_div(points, kBlock); }

  GridSizes(const TensorImpl& picture, const TensorImpl& grid) : dims(grid.rank() - 2), points(1), size{1, 1, 1} {
    batch = picture.shape()[0].raw();
    channels = picture.shape()[1].raw();
    for (int i = 0; i < dims; ++i) {
      points *= grid.shape()[i + 1].raw();
      size[3 - dims + i] = picture.shape()[i + 2].raw();
    }
  }
};

int most_places(const ops::GridSampleAttrs& a, int dims) {
  const int taps = a.mode == static_cast<int64_t>(ops::GridMode::bicubic)    ? 4
                   : a.mode == static_cast<int64_t>(ops::GridMode::bilinear) ? 2
                                                                             : 1;
  return dims == 2 ? taps * taps : taps * taps * taps;
}

// The places in a picture and weights of the points of a block.
template <class T>
class Stencils {
 public:
  struct Memory {
    Memory(const ops::GridSampleAttrs& a, int dims, int64_t chunks)
        : most(most_places(a, dims)), places(most * kBlock, chunks), weights(most * kBlock, chunks) {}
    int most;
    ThreadScratch<int64_t> places;
    ThreadScratch<T> weights;
  };

  explicit Stencils(const Memory& memory)
      : most_(memory.most), places_(memory.places.mine()), weights_(memory.weights.mine()) {}

  // For `count` points at `grid`; order[d] derivatives by coordinate d.
  void find(const GridSizes& s, const ops::GridSampleAttrs& a, const int64_t* order, const T* grid,
            int64_t count) {
    for (int64_t p = 0; p < count; ++p, grid += s.dims) {
      ops::GridTaps<T> taps[3];  // depth, height, width
      if (s.dims == 2) taps[0].add(0, 1);
      for (int d = 0; d < s.dims; ++d)
        taps[2 - d] = ops::grid_taps(grid[d], s.size[2 - d], static_cast<ops::GridMode>(a.mode),
                                     static_cast<ops::GridPadding>(a.padding), a.align_corners,
                                     static_cast<int>(std::min<int64_t>(order[d], ops::kMostGridOrder)));
      counts_[p] = multiply(s, taps, places_ + p * most_, weights_ + p * most_);
    }
  }

  // The weighted sum of what point p reads.
  T read(const T* picture, int64_t p) const {
    const int64_t* place = places_ + p * most_;
    const T* weight = weights_ + p * most_;
    T sum = 0;
    for (int k = 0; k < counts_[p]; ++k) sum += weight[k] * picture[place[k]];
    return sum;
  }
  void add(T* picture, int64_t p, T g) const {
    const int64_t* place = places_ + p * most_;
    const T* weight = weights_ + p * most_;
    for (int k = 0; k < counts_[p]; ++k) picture[place[k]] += weight[k] * g;
  }

 private:
  static int multiply(const GridSizes& s, const ops::GridTaps<T>* taps, int64_t* places, T* weights) {
    int n = 0;
    for (int i = 0; i < taps[0].count; ++i)
      for (int j = 0; j < taps[1].count; ++j) {
        const int64_t row = (taps[0].at[i] * s.size[1] + taps[1].at[j]) * s.size[2];
        const T weight = taps[0].weight[i] * taps[1].weight[j];
        for (int k = 0; k < taps[2].count; ++k) {
          places[n] = row + taps[2].at[k];
          weights[n++] = weight * taps[2].weight[k];
        }
      }
    return n;
  }

  int most_;
  int64_t* places_;
  T* weights_;
  int counts_[kBlock];
};

// f(sample, first point, number of points) for all blocks, in parallel.
template <class F>
void for_blocks(const GridSizes& s, const F& f) {
  parallel_for(s.batch * s.blocks(), [&](int64_t item) {
    const int64_t n = item / s.blocks(), p = item % s.blocks() * kBlock;
    f(n, p, std::min(kBlock, s.points - p));
  });
}

void grid_sample(const Call& call, TensorImpl* const* outputs) {
  const auto& a = call.attrs_as<ops::GridSampleAttrs>();
  if (outputs[0]->numel().raw() == 0) return;
  dispatch_floating(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const LocalCopy x(call.operands[0], dtype_of<T>()), grid(call.operands[1], dtype_of<T>());
    const LocalResult y(*outputs[0], dtype_of<T>());
    const GridSizes s(*x, *grid);
    const typename Stencils<T>::Memory memory(a, s.dims, s.batch * s.blocks());
    for_blocks(s, [&](int64_t n, int64_t p, int64_t count) {
      Stencils<T> stencils(memory);
      stencils.find(s, a, a.order.begin(), grid.values<T>() + (n * s.points + p) * s.dims, count);
      for (int64_t c = n * s.channels; c < (n + 1) * s.channels; ++c) {
        T* const to = static_cast<T*>(y->data()) + c * s.points + p;
        for (int64_t i = 0; i < count; ++i) to[i] = stencils.read(x.values<T>() + c * s.picture(), i);
      }
    });
    y.finish();
  });
}

void grid_sample_transpose(const Call& call, TensorImpl* const* outputs) {
  const auto& a = call.attrs_as<ops::GridSampleAttrs>();
  if (outputs[0]->numel().raw() == 0) return;
  dispatch_floating(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const LocalCopy g(call.operands[0], dtype_of<T>()), grid(call.operands[1], dtype_of<T>());
    const LocalResult x(*outputs[0], dtype_of<T>());
    const GridSizes s(*x, *grid);
    const int64_t groups = ceil_div(s.channels, kChannels);
    const typename Stencils<T>::Memory memory(a, s.dims, s.batch * groups);
    parallel_for(s.batch * groups, [&](int64_t item) {
      Stencils<T> stencils(memory);
      const int64_t n = item / groups, c = item % groups * kChannels, first = n * s.channels + c,
                    channels = std::min(kChannels, s.channels - c);
      T* const pictures = static_cast<T*>(x->data()) + first * s.picture();
      std::fill_n(pictures, channels * s.picture(), T(0));
      for (int64_t p = 0; p < s.points; p += kBlock) {
        const int64_t count = std::min(kBlock, s.points - p);
        stencils.find(s, a, a.order.begin(), grid.values<T>() + (n * s.points + p) * s.dims, count);
        for (int64_t k = 0; k < channels; ++k) {
          const T* const from = g.values<T>() + (first + k) * s.points + p;
          for (int64_t i = 0; i < count; ++i) stencils.add(pictures + k * s.picture(), i, from[i]);
        }
      }
    });
    x.finish();
  });
}

void grid_sample_slope(const Call& call, TensorImpl* const* outputs) {
  const auto& a = call.attrs_as<ops::GridSampleAttrs>();
  if (outputs[0]->numel().raw() == 0) return;
  dispatch_floating(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const LocalCopy g(call.operands[0], dtype_of<T>()), x(call.operands[1], dtype_of<T>()),
        grid(call.operands[2], dtype_of<T>());
    const LocalResult y(*outputs[0], dtype_of<T>());
    const GridSizes s(*x, *grid);
    const typename Stencils<T>::Memory memory(a, s.dims, s.batch * s.blocks());
    for_blocks(s, [&](int64_t n, int64_t p, int64_t count) {
      Stencils<T> stencils(memory);
      const int64_t begin = (n * s.points + p) * s.dims;
      T* const to = static_cast<T*>(y->data()) + begin;
      std::fill_n(to, count * s.dims, T(0));
      for (int d = 0; d < s.dims; ++d) {
        IntList order = a.order;
        ++order[d];
        stencils.find(s, a, order.begin(), grid.values<T>() + begin, count);
        for (int64_t c = n * s.channels; c < (n + 1) * s.channels; ++c)
          for (int64_t i = 0; i < count; ++i)
            to[i * s.dims + d] +=
                g.values<T>()[c * s.points + p + i] * stencils.read(x.values<T>() + c * s.picture(), i);
      }
    });
    y.finish();
  });
}

}  // namespace

void add_grid_sample_kernels(KernelTable& table) {
  table.set(&ops::info<ops::GridSample>, grid_sample, KernelTable::kScratch);
  table.set(&ops::info<ops::GridSampleTranspose>, grid_sample_transpose, KernelTable::kScratch);
  table.set(&ops::info<ops::GridSampleSlope>, grid_sample_slope, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
