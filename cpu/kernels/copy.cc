// Copies between tensors of any strides and dtypes, and constants.
//
// Both sides are traversed together: dims are ordered by the target's strides and merged where both allow, so that
// the last one is the fastest to write. Elements of one dtype move as bits. If the source is contiguous along another
// dim than the target, both dims are cut into squares that are transposed in registers; else each run of the last dim
// is one call (cpu/kernels/levels/copy_rows.h). Other dtypes go run by run through a tile of the source's compute
// type.
#include <cstring>

#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/levels/copy_rows.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "ops/full.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kCopyGrain = 32768;  // elements a chunk
constexpr int64_t kCopyTile = 512;
constexpr int64_t kShortRun = 64;
constexpr int64_t kSquare = 64;  // of a transpose

struct TurnedAxis {
  int64_t size, to, from;  // strides
};

/// The dims of a copy, the last one with the target's smallest stride.
struct Axes {
  int rank = 0;
  TurnedAxis axis[kMaxRank + 1];

  Axes(const TensorImpl& to, const TensorImpl& from) {
    TurnedAxis found[kMaxRank];
    int count = 0;
    for (int i = 0; i < to.rank(); ++i) {
      if (to.shape()[i].raw() == 1) continue;
      const TurnedAxis next{to.shape()[i].raw(), to.strides()[i], from.strides()[i]};
      int at = count++;
      for (; at > 0 && found[at - 1].to < next.to; --at) found[at] = found[at - 1];
      found[at] = next;
    }
    for (int i = 0; i < count; ++i) add(found[i]);
    if (rank == 0) axis[rank++] = {1, 1, 1};
  }

  TurnedAxis last() const { return axis[rank - 1]; }
  TurnedAxis take(int i) {
    const TurnedAxis taken = axis[i];
    for (--rank; i < rank; ++i) axis[i] = axis[i + 1];
    return taken;
  }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= axis[i].size;
    return n;
  }

 private:
  void add(const TurnedAxis& next) {
    if (rank > 0 && axis[rank - 1].to == next.size * next.to && axis[rank - 1].from == next.size * next.from)
      axis[rank - 1] = {axis[rank - 1].size * next.size, next.to, next.from};
    else
      axis[rank++] = next;
  }
};

/// A place among the indices of some dims, and its offsets.
class Cursor {
 public:
  Cursor(const Axes& axes, int64_t place) : axes_(axes) {
    for (int i = axes.rank - 1; i >= 0; --i) {
      index_[i] = place % axes.axis[i].size;
      place /= axes.axis[i].size;
      to += index_[i] * axes.axis[i].to;
      from += index_[i] * axes.axis[i].from;
    }
  }
  void next() {
    for (int i = axes_.rank - 1; i >= 0; --i) {
      const TurnedAxis& a = axes_.axis[i];
      to += a.to;
      from += a.from;
      if (++index_[i] < a.size) return;
      to -= a.size * a.to;
      from -= a.size * a.from;
      index_[i] = 0;
    }
  }
  int64_t to = 0, from = 0;

 private:
  const Axes& axes_;
  int64_t index_[kMaxRank + 1];
};

/// Calls run(to, from, count) for the runs of the last dim, in parallel; about `grain` elements a chunk.
template <class F>
void for_runs(Axes axes, int64_t grain, const F& run) {
  const TurnedAxis last = axes.take(axes.rank - 1);
  const int64_t piece = std::min(last.size, grain), pieces = (last.size + piece - 1) / piece;
  const int64_t tasks = axes.numel() * pieces, most = std::max<int64_t>(1, grain / piece);
  parallel_range(tasks, even_grain(tasks, most), [&](int64_t begin, int64_t end) {
    Cursor at(axes, begin / pieces);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t skip = task % pieces * piece;
      run(at.to + skip * last.to, at.from + skip * last.from, std::min(piece, last.size - skip));
      if (task % pieces == pieces - 1) at.next();
    }
  });
}

/// The dim along which the source is contiguous, if a transpose pays off: -1 if there is none.
int source_dim(const Axes& axes) {
  const int64_t step = axes.last().from;
  if (axes.last().to != 1 || step == 1 || step == 0 || axes.last().size < 4) return -1;
  for (int i = 0; i + 1 < axes.rank; ++i)
    if (axes.axis[i].from == 1 && axes.axis[i].size >= 4) return i;
  return -1;
}

void transpose(Axes axes, int dim, int width, char* to, const char* from) {
  const TurnedAxis row = axes.take(axes.rank - 1), column = axes.take(dim);
  const int64_t across = (row.size + kSquare - 1) / kSquare, down = (column.size + kSquare - 1) / kSquare;
  const auto run = move_table().transpose[width];
  const int64_t squares = axes.numel() * across * down;
  parallel_range(squares, even_grain(squares, kCopyGrain / (kSquare * kSquare)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const Cursor at(axes, task / (across * down));
      const int64_t i = task % across * kSquare, j = task / across % down * kSquare;
      run(from + ((at.from + i * row.from + j) << width), row.from, std::min(kSquare, row.size - i),
          std::min(kSquare, column.size - j), to + ((at.to + j * column.to + i) << width), column.to);
    }
  });
}

// Short runs in one call for a dim of them.
void move_short(Axes axes, int width, char* to, const char* from) {
  const TurnedAxis last = axes.take(axes.rank - 1), next = axes.last();
  const auto runs = move_table().runs[width];
  for_runs(axes, kCopyGrain / last.size, [&](int64_t to_offset, int64_t from_offset, int64_t count) {
    runs(from + from_offset * (1 << width), next.from, last.from, count, last.size, to + (to_offset << width),
         next.to);
  });
}

void move(const Axes& axes, int width, char* to, const char* from) {
  const int dim = source_dim(axes);
  if (dim >= 0) return transpose(axes, dim, width, to, from);
  const TurnedAxis last = axes.last();
  if (axes.rank > 1 && last.size <= kShortRun && last.to == 1) return move_short(axes, width, to, from);
  const auto run = move_table().move[width];
  for_runs(axes, kCopyGrain, [&](int64_t to_offset, int64_t from_offset, int64_t count) {
    run(from + from_offset * (1 << width), last.from, count, to + (to_offset << width), last.to);
  });
}

template <class T>
void convert_runs(const Axes& axes, const TensorImpl& from, TensorImpl& to) {
  const auto load = convert_table<T>().load[static_cast<int>(from.dtype())];
  const auto store = convert_table<T>().store[static_cast<int>(to.dtype())];
  const auto from_item = static_cast<int64_t>(element_size(from.dtype())),
             to_item = static_cast<int64_t>(element_size(to.dtype()));
  const char* source = static_cast<const char*>(from.data());
  char* target = static_cast<char*>(to.data());
  const TurnedAxis last = axes.last();
  const bool in_place = from.dtype() == dtype_of<T>() && last.from == 1,
             to_place = to.dtype() == dtype_of<T>() && last.to == 1;
  for_runs(axes, kCopyGrain, [&](int64_t to_offset, int64_t from_offset, int64_t count) {
    if (to_place)
      return load(source + from_offset * from_item, last.from, count,
                  reinterpret_cast<T*>(target) + to_offset);
    T tile[kCopyTile];
    for (int64_t at = 0; at < count; at += kCopyTile) {
      const int64_t n = std::min(kCopyTile, count - at);
      const char* p = source + (from_offset + at * last.from) * from_item;
      if (!in_place) load(p, last.from, n, tile);
      store(in_place ? reinterpret_cast<const T*>(p) : tile, n, target + (to_offset + at * last.to) * to_item,
            last.to);
    }
  });
}

void copy_kernel(const Call& call, TensorImpl* const* outputs) {
  convert_copy(*call.operands[0], *outputs[0]);
}

void full_kernel(const Call& call, TensorImpl* const* outputs) {
  const Scalar value = call.attrs_as<ops::Full::Attrs>().value;
  TensorImpl& out = *outputs[0];
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    T v;
    if constexpr (std::is_integral_v<T>)
      v = static_cast<T>(value.to_int());
    else
      v = convert<T>(value.to_double());
    T* p = static_cast<T*>(out.data());
    const auto fill = move_table().fill[width_index(out.dtype())];
    const int64_t n = out.numel().raw();
    parallel_range(n, even_grain(n, kCopyGrain, kCopyTile),
                   [&](int64_t begin, int64_t end) { fill(&v, end - begin, p + begin); });
  });
}

}  // namespace

void convert_copy(const TensorImpl& from, TensorImpl& to) {
  if (to.numel().raw() == 0) return;
  const Axes axes(to, from);
  if (from.dtype() == to.dtype())
    return move(axes, width_index(to.dtype()), static_cast<char*>(to.data()),
                static_cast<const char*>(from.data()));
  dispatch_compute(from.dtype(), [&]<class T>(std::type_identity<T>) { convert_runs<T>(axes, from, to); });
}

void add_copy_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Clone>, copy_kernel);
  table.set(&ops::info<ops::To>, copy_kernel);
  table.set(&ops::info<ops::ToDevice>, copy_kernel);  // from the CPU to the CPU
  table.set(&ops::info<ops::Full>, full_kernel);
}

}  // namespace retrograd::cpu
