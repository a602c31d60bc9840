// Elementwise ops and copies on the CPU. Contiguous float and double go straight through the span kernel;
// anything else is gathered into tiles of kTile elements in the compute type, computed by the same kernel,
// and scattered. Work is cut into chunks by size alone, so results do not depend on the number of threads.
#include "cpu/kernels/elementwise.h"

#include <algorithm>
#include <cstring>

#include "cpu/kernels/layout.h"
#include "cpu/parallel.h"
#include "ir/each_field.h"

namespace retrograd::cpu {
namespace {

constexpr int64_t kTile = 512;
constexpr int64_t kGrain = 32768;  // elements a chunk; below it a parallel region costs more than it gains
constexpr int kMaxOperands = 3;

ScalarType compute_type(ScalarType dtype) {
  if (dtype == kFloat64) return kFloat64;
  return is_floating(dtype) ? kFloat32 : kInt64;
}

// Row-major like the output and not broadcast to it.
bool is_dense(const TensorImpl& x, const TensorImpl& output) {
  return x.is_contiguous() && x.numel().raw() == output.numel().raw();
}

// One operand or the output of a tiled run: read or written in place where it is contiguous in the compute
// type.
template <class T>
struct Side {
  const TensorImpl* x = nullptr;
  Layout layout;
  bool direct;

  Side(const TensorImpl& t, const TensorImpl& output)
      : x(&t), layout(t, output.shape()), direct(t.dtype() == dtype_of<T>() && is_dense(t, output)) {}
};

template <class T, class Out>
class TiledRun {
 public:
  TiledRun(const Call& call, TensorImpl& output, Span span)
      : call_(call), output_(output), span_(span), out_(output, output) {
    for (size_t k = 0; k < call.operands.size(); ++k)
      if (call.operands[k]) sides_.emplace_back(*call.operands[k], output);
    if (sides_.size() == call.operands.size()) return;
    const Scalar number = ir::scalar_operand(*call.op, call.attrs);
    scalar_ =
        std::is_same_v<T, int64_t> ? static_cast<T>(number.to_int()) : static_cast<T>(number.to_double());
  }

  void run(int64_t begin, int64_t end) const {
    T tiles[kMaxOperands][kTile];
    Out result[kTile];
    for (int64_t at = begin; at < end; at += kTile) {
      const int64_t stop = std::min(at + kTile, end);
      const void* in[kMaxOperands];
      size_t side = 0;
      for (size_t k = 0; k < call_.operands.size(); ++k) {
        if (call_.operands[k])
          in[k] = load(sides_[side++], at, stop, tiles[k]);
        else
          in[k] = std::fill_n(tiles[k], stop - at, scalar_) - (stop - at);
      }
      const bool direct = output_.dtype() == dtype_of<Out>() && out_.direct;
      void* out = direct ? static_cast<void*>(static_cast<Out*>(output_.data()) + at) : result;
      span_(out, in, stop - at, call_.attrs);
      if (!direct)
        dispatch(output_.dtype(), [&]<class D>(std::type_identity<D>) {
          scatter<D>(result, static_cast<D*>(output_.data()), out_.layout, at, stop);
        });
    }
  }

 private:
  const void* load(const Side<T>& side, int64_t at, int64_t stop, T* tile) const {
    if (side.direct) return static_cast<const T*>(side.x->data()) + at;
    dispatch(side.x->dtype(), [&]<class D>(std::type_identity<D>) {
      gather<T>(static_cast<const D*>(side.x->data()), side.layout, at, stop, tile);
    });
    return tile;
  }

  const Call& call_;
  TensorImpl& output_;
  Span span_;
  std::vector<Side<T>> sides_;
  Side<Out> out_;
  T scalar_{};
};

template <class T>
void tiled(const Call& call, TensorImpl& output, Span span, bool boolean) {
  const int64_t n = output.numel().raw();
  auto go = [&](const auto& run) {
    if (n <= kGrain)
      run.run(0, n);
    else
      parallel_range(n, kGrain, [&](int64_t begin, int64_t end) { run.run(begin, end); });
  };
  if (boolean)
    go(TiledRun<T, bool>(call, output, span));
  else
    go(TiledRun<T, T>(call, output, span));
}

// All operands and the output contiguous in `dtype`: no tiles.
bool all_direct(const Call& call, const TensorImpl& output, ScalarType dtype) {
  if (output.dtype() != dtype || !output.is_contiguous()) return false;
  for (const TensorImpl* x : call.operands)
    if (!x || x->dtype() != dtype || !(x->shape() == output.shape()) || !x->is_contiguous()) return false;
  return true;
}

void direct(const Call& call, TensorImpl& output, Span span, int64_t item) {
  const void* in[kMaxOperands];
  for (size_t k = 0; k < call.operands.size(); ++k) in[k] = call.operands[k]->data();
  const int64_t n = output.numel().raw();
  if (n <= kGrain) return span(output.data(), in, n, call.attrs);
  parallel_range(n, kGrain, [&](int64_t begin, int64_t end) {
    const void* part[kMaxOperands];
    for (size_t k = 0; k < call.operands.size(); ++k)
      part[k] = static_cast<const char*>(in[k]) + begin * item;
    span(static_cast<char*>(output.data()) + begin * item, part, end - begin, call.attrs);
  });
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
  int64_t tile[kTile];
  for (int64_t at = 0; at < n; at += kTile) {
    const int64_t count = std::min(kTile, n - at);
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
  const TensorImpl* value = nullptr;
  for (const TensorImpl* x : call.operands) value = x ? x : value;
  const ScalarType type = compute_type(value->dtype());
  const Span span = type == kFloat32 ? spans.f32 : type == kFloat64 ? spans.f64 : spans.i64;
  if (!span) fail_call(call, Category::dtype_mismatch, "it is not defined for this dtype");
  if (type != kInt64 && all_direct(call, output, type))
    return direct(call, output, span, type == kFloat32 ? 4 : 8);
  if (output.numel().raw() == 0) return;
  if (type == kFloat32)
    tiled<float>(call, output, span, spans.boolean);
  else if (type == kFloat64)
    tiled<double>(call, output, span, spans.boolean);
  else
    tiled<int64_t>(call, output, span, spans.boolean);
}

namespace {

// Elements of one dtype, moved as bits.
template <class Bits>
void move_range(const TensorImpl& from, const Layout& from_layout, TensorImpl& to, const Layout& to_layout,
                int64_t begin, int64_t end) {
  const Bits* source = static_cast<const Bits*>(from.data());
  Bits* target = static_cast<Bits*>(to.data());
  Bits tile[kTile];
  const bool dense = to.is_contiguous();
  for (int64_t at = begin; at < end; at += kTile) {
    const int64_t stop = std::min(at + kTile, end);
    Bits* out = dense ? target + at : tile;
    from_layout.for_runs(at, stop, [&](int64_t offset, int64_t stride, int64_t count, int64_t k) {
      for (int64_t i = 0; i < count; ++i) out[k + i] = source[offset + i * stride];
    });
    if (dense) continue;
    to_layout.for_runs(at, stop, [&](int64_t offset, int64_t stride, int64_t count, int64_t k) {
      for (int64_t i = 0; i < count; ++i) target[offset + i * stride] = tile[k + i];
    });
  }
}

// From dtype to dtype through the compute type of the source: 10 + 10 loops instead of 100.
template <class T>
void convert_range(const TensorImpl& from, const Layout& from_layout, TensorImpl& to, const Layout& to_layout,
                   int64_t begin, int64_t end) {
  T tile[kTile];
  for (int64_t at = begin; at < end; at += kTile) {
    const int64_t stop = std::min(at + kTile, end);
    dispatch(from.dtype(), [&]<class D>(std::type_identity<D>) {
      gather<T>(static_cast<const D*>(from.data()), from_layout, at, stop, tile);
    });
    dispatch(to.dtype(), [&]<class D>(std::type_identity<D>) {
      scatter(tile, static_cast<D*>(to.data()), to_layout, at, stop);
    });
  }
}

using RangeCopy = void (*)(const TensorImpl&, const Layout&, TensorImpl&, const Layout&, int64_t, int64_t);

RangeCopy range_copy(ScalarType from, ScalarType to) {
  if (from == to) {
    switch (element_size(to)) {
      case 1: return move_range<uint8_t>;
      case 2: return move_range<uint16_t>;
      case 4: return move_range<uint32_t>;
      default: return move_range<uint64_t>;
    }
  }
  const ScalarType through = compute_type(from);
  return through == kFloat32   ? convert_range<float>
         : through == kFloat64 ? convert_range<double>
                               : convert_range<int64_t>;
}

}  // namespace

void convert_copy(const TensorImpl& from, TensorImpl& to) {
  const int64_t n = to.numel().raw();
  if (n == 0) return;
  if (from.dtype() == to.dtype() && from.is_contiguous() && to.is_contiguous()) {
    const int64_t item = static_cast<int64_t>(element_size(to.dtype()));
    if (n <= kGrain) return void(std::memcpy(to.data(), from.data(), static_cast<size_t>(n * item)));
    return parallel_range(n, kGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char*>(to.data()) + begin * item,
                  static_cast<const char*>(from.data()) + begin * item,
                  static_cast<size_t>((end - begin) * item));
    });
  }
  const Layout from_layout(from), to_layout(to);
  const RangeCopy copy = range_copy(from.dtype(), to.dtype());
  parallel_range(n, kGrain,
                 [&](int64_t begin, int64_t end) { copy(from, from_layout, to, to_layout, begin, end); });
}

}  // namespace retrograd::cpu
