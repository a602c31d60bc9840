// Elementwise ops and copies on the CPU: see cpu/kernels/elementwise.h.
//
// direct() handles operands that are all contiguous in the compute type: the span kernel processes them directly, in
// chunks. TiledRun handles all others: elements are gathered into tiles of kSpanTile elements in the compute type,
// computed by the same kernel, and scattered. If an operand has long runs, tiles are cut at their ends, so that a run
// is loaded by one call (Side). Work is cut into chunks by size alone, so results do not depend on the number of
// threads. Start reading at elementwise().
#include "cpu/kernels/elementwise.h"

#include <algorithm>
#include <vector>

#include "cpu/kernels/layout.h"
#include "cpu/parallel.h"
#include "engine/each_field.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kSpanTile = 512;
constexpr int64_t kLongRun = 64;   // shorter ones are collected in a tile
constexpr int64_t kSpanGrain = 32768;  // elements a chunk; below it a parallel region costs more than it gains
constexpr int kMaxOperands = 3;

// One operand, or the output as an operand: access to the elements of a tile. In a layout of one run per row (rank 1:
// of a single run) a tile has a constant stride from its first element.
template <class T>
class Side {
 public:
  Side(const TensorImpl& x, const Shape& shape)
      : base_(static_cast<const char*>(x.data())),
        layout_(x, shape),
        load_(convert_table<T>().load[static_cast<int>(x.dtype())]),
        item_(static_cast<int64_t>(element_size(x.dtype()))),
        same_(x.dtype() == dtype_of<T>()) {}

  int64_t run() const { return layout_.size[layout_.rank - 1]; }
  bool in_place() const { return same_ && (step() == 1 || run() == 1); }

  const char* element(int64_t at) const { return base_ + layout_.offset(at) * item_; }
  /// From an element on, that lies `skip` after one of the same run, `count` elements: where they are, or
  /// copied to `tile`. `filled` is the element that the tile repeats since the last call.
  const T* read_run(const char* first, int64_t skip, int64_t count, T* tile, const char*& filled) const {
    const char* from = first + skip * step() * item_;
    if (in_place()) return reinterpret_cast<const T*>(from);
    if (step() == 0) {
      if (filled != from) load_(from, 0, std::min(kSpanTile, run()), tile);
      filled = from;
    } else {
      load_(from, step(), count, tile);
    }
    return tile;
  }
  /// Elements [at, at + count) of any runs.
  const T* read(int64_t at, int64_t count, T* tile) const {
    if (layout_.rank == 1 && in_place()) return reinterpret_cast<const T*>(base_) + at;
    layout_.for_runs(at, at + count, [&](int64_t offset, int64_t stride, int64_t n, int64_t to) {
      load_(base_ + offset * item_, stride, n, tile + to);
    });
    return tile;
  }

 private:
  int64_t step() const { return layout_.stride[layout_.rank - 1]; }

  const char* base_;
  Layout layout_;
  void (*load_)(const void*, int64_t, int64_t, T*);
  int64_t item_;
  bool same_;
};

// Runs of operands that broadcast differently nest: each is made of the last dims of one shape.
template <class T, class Out>
class TiledRun {
 public:
  TiledRun(const Call& call, TensorImpl& output, Span span)
      : call_(call), output_(output), span_(span), out_(output), run_(out_.size[out_.rank - 1]) {
    for (const TensorImpl* x : call.operands) {
      if (!x) continue;
      sides_.emplace_back(*x, output.shape());
      run_ = std::min(run_, sides_.back().run());
    }
    if (sides_.size() == call.operands.size()) return;
    const Scalar number = ir::scalar_operand(*call.op, call.attrs);
    scalar_ =
        std::is_same_v<T, int64_t> ? static_cast<T>(number.to_int()) : static_cast<T>(number.to_double());
  }

  void run(int64_t begin, int64_t end) const {
    T tiles[kMaxOperands][kSpanTile];
    const char* filled[kMaxOperands] = {};
    for (size_t k = 0; k < call_.operands.size(); ++k)
      if (!call_.operands[k]) std::fill_n(tiles[k], std::min(kSpanTile, end - begin), scalar_);
    if (run_ >= kLongRun)
      for (int64_t at = begin; at < end;)
        at += one_run(at, std::min(end - at, run_ - at % run_), tiles, filled);
    else
      for (int64_t at = begin; at < end; at += kSpanTile) mixed(at, std::min(kSpanTile, end - at), tiles);
  }

 private:
  // Elements [begin, begin + n) of one run of each operand; returns n.
  int64_t one_run(int64_t begin, int64_t n, T (*tiles)[kSpanTile], const char** filled) const {
    const char* first[kMaxOperands];
    for (size_t side = 0; side < sides_.size(); ++side) first[side] = sides_[side].element(begin);
    for (int64_t at = 0; at < n; at += kSpanTile) {
      const int64_t count = std::min(kSpanTile, n - at);
      write_for_sides(begin + at, count, tiles, [&](size_t side, size_t k) {
        return sides_[side].read_run(first[side], at, count, tiles[k], filled[k]);
      });
    }
    return n;
  }
  // Elements of several runs.
  void mixed(int64_t at, int64_t count, T (*tiles)[kSpanTile]) const {
    write_for_sides(at, count, tiles,
                    [&](size_t side, size_t k) { return sides_[side].read(at, count, tiles[k]); });
  }
  template <class Read>
  void write_for_sides(int64_t at, int64_t count, T (*tiles)[kSpanTile], const Read& read) const {
    const void* in[kMaxOperands];
    size_t side = 0;
    for (size_t k = 0; k < call_.operands.size(); ++k) in[k] = call_.operands[k] ? read(side++, k) : tiles[k];
    write(in, at, count);
  }
  void write(const void* const* in, int64_t at, int64_t count) const {
    const bool in_place = output_.dtype() == dtype_of<Out>() && output_.is_contiguous();
    if (in_place) return span_(static_cast<Out*>(output_.data()) + at, in, count, call_.attrs);
    Out result[kSpanTile];
    span_(result, in, count, call_.attrs);
    dispatch(output_.dtype(), [&]<class D>(std::type_identity<D>) {
      D* to = static_cast<D*>(output_.data());
      if constexpr (!std::is_same_v<Out, bool>)
        scatter<D>(result, to, out_, at, at + count);
      else
        out_.for_runs(at, at + count, [&](int64_t offset, int64_t stride, int64_t n, int64_t from) {
          for (int64_t i = 0; i < n; ++i) to[offset + i * stride] = convert<D>(result[from + i]);
        });
    });
  }

  const Call& call_;
  TensorImpl& output_;
  Span span_;
  std::vector<Side<T>> sides_;
  Layout out_;
  int64_t run_;
  T scalar_{};
};

template <class T>
void tiled(const Call& call, TensorImpl& output, Span span, bool boolean) {
  const int64_t n = output.numel().raw();
  auto go = [&](const auto& run) {
    if (n <= kSpanGrain)
      run.run(0, n);
    else
      parallel_range(n, even_grain(n, kSpanGrain, kSpanTile),
                     [&](int64_t begin, int64_t end) { run.run(begin, end); });
  };
  if (boolean)
    go(TiledRun<T, bool>(call, output, span));
  else
    go(TiledRun<T, T>(call, output, span));
}

bool has_shape_and_strides(const TensorImpl& x, const TensorImpl& of) {
  if (x.rank() != of.rank()) return false;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t size = x.shape()[i].raw();
    if (size != of.shape()[i].raw() || (size > 1 && x.strides()[i] != of.strides()[i])) return false;
  }
  return true;
}

void direct_chunks(const Call& call, void* out, const void* const* in, int64_t n, Span span, int64_t item) {
  parallel_range(n, even_grain(n, kSpanGrain, kSpanTile), [&](int64_t begin, int64_t end) {
    const void* part[kMaxOperands];
    for (size_t k = 0; k < call.operands.size(); ++k)
      part[k] = static_cast<const char*>(in[k]) + begin * item;
    span(static_cast<char*>(out) + begin * item, part, end - begin, call.attrs);
  });
}

// Runs without tiles if all operands and the output are contiguous in `dtype`; else returns false. Such checks
// dominate the cost of a small op, hence operands are compared with the output instead of being inspected one by one.
bool direct(const Call& call, TensorImpl& output, ScalarType dtype, Span span) {
  if (output.dtype() != dtype) return false;
  const int64_t n = output.contiguous_numel();
  if (n < 0) return false;
  const void* in[kMaxOperands];
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const TensorImpl* x = call.operands[k];
    if (!x || x->dtype() != dtype || !has_shape_and_strides(*x, output)) return false;
    in[k] = x->data();
  }
  if (n <= kSpanGrain)
    span(output.data(), in, n, call.attrs);
  else
    direct_chunks(call, output.data(), in, n, span, static_cast<int64_t>(element_size(dtype)));
  return true;
}

void tiled(const Call& call, TensorImpl& output, ScalarType type, Span span, bool boolean) {
  if (output.numel().raw() == 0) return;
  if (type == kFloat32)
    tiled<float>(call, output, span, boolean);
  else if (type == kFloat64)
    tiled<double>(call, output, span, boolean);
  else
    tiled<int64_t>(call, output, span, boolean);
}

}  // namespace

void refuse_zero_divisors(const Call& call) {
  const TensorImpl* divisor = call.operands[1];
  if (!divisor) {
    if (is_integral(call.operands[0]->dtype(), true) &&
        ir::scalar_operand(*call.op, call.attrs).to_int() == 0)
      fail_call(call, Category::bad_argument, "an integer is divided by zero");
    return;
  }
  if (!is_integral(divisor->dtype(), true)) return;
  const Layout layout(*divisor);
  const int64_t n = divisor->numel().raw();
  int64_t tile[kSpanTile];
  for (int64_t at = 0; at < n; at += kSpanTile) {
    const int64_t count = std::min(kSpanTile, n - at);
    dispatch(divisor->dtype(), [&]<class D>(std::type_identity<D>) {
      gather<int64_t>(static_cast<const D*>(divisor->data()), layout, at, at + count, tile);
    });
    if (std::find(tile, tile + count, 0) != tile + count)
      fail_call(call, Category::bad_argument, "an integer is divided by zero");
  }
}

void elementwise(const Call& call, TensorImpl& output, const Spans& spans) {
  // The last operand that is a tensor has the dtype that is computed in; an earlier one may be the condition
  // of `where`.
  size_t last = call.operands.size() - 1;
  while (!call.operands[last]) --last;
  const TensorImpl* value = call.operands[last];
  if (spans.b8 && direct(call, output, kBool, spans.b8)) return;
  const ScalarType type = compute_type(value->dtype());
  const Span span = type == kFloat32 ? spans.f32 : type == kFloat64 ? spans.f64 : spans.i64;
  if (!span) fail_call(call, Category::dtype_mismatch, "it is not defined for this dtype");
  if (type == kInt64 || !direct(call, output, type, span)) tiled(call, output, type, span, spans.boolean);
}

}  // namespace retrograd::cpu
