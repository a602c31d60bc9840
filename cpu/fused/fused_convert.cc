// The span kernels of cpu/fused/fused_convert.h.
//
// They have no loops of their own except round_to_odd(): each calls the function of the best instruction-set level
// for a whole tile (convert_table() of cpu/kernels/levels/copy_rows.h, best_stream_span() of
// cpu/fused/levels/stream_span.h). Rounding to a narrower dtype converts to it and back in pieces of 256 elements on
// the stack.
#include "cpu/fused/fused_convert.h"

#include <algorithm>

#include "cpu/fused/levels/stream_span.h"
#include "cpu/kernels/levels/copy_rows.h"
#include "ops/convert.h"

namespace retrograd::inline v0::cpu {
namespace {

template <class T, class D>
void store(void* out, const void* const* in, int64_t n, const void*) {
  convert_table<T>().store[static_cast<int>(dtype_of<D>())](static_cast<const T*>(in[0]), n, out, 1);
}

template <class D>
void round(void* out, const void* const* in, int64_t n, const void*) {
  constexpr int64_t kPiece = 256;
  constexpr int dtype = static_cast<int>(dtype_of<D>());
  D rounded[kPiece];
  const float* from = static_cast<const float*>(in[0]);
  float* to = static_cast<float*>(out);
  for (int64_t at = 0; at < n; at += kPiece) {
    const int64_t count = std::min(kPiece, n - at);
    convert_table<float>().store[dtype](from + at, count, rounded, 1);
    convert_table<float>().load[dtype](rounded, 1, count, to + at);
  }
}

template <class From, class To>
void change_width(void* out, const void* const* in, int64_t n, const void*) {
  convert_table<To>().load[static_cast<int>(dtype_of<From>())](in[0], 1, n, static_cast<To*>(out));
}

void round_to_odd(void* out, const void* const* in, int64_t n, const void*) {
  const double* from = static_cast<const double*>(in[0]);
  float* to = static_cast<float*>(out);
  for (int64_t i = 0; i < n; ++i) to[i] = rounded_to_odd(from[i]);
}

}  // namespace

Span store_span(bool wide, ScalarType to) {
  return dispatch(
      to, [&]<class D>(std::type_identity<D>) -> Span { return wide ? store<double, D> : store<float, D>; });
}

Span stream_span(bool wide) { return wide ? best_stream_span<double>() : best_stream_span<float>(); }

Span round_span(ScalarType to) {
  return dispatch(to, []<class D>(std::type_identity<D>) -> Span { return round<D>; });
}

Span odd_span() { return round_to_odd; }

Span width_span(bool to_wide) { return to_wide ? change_width<float, double> : change_width<double, float>; }

}  // namespace retrograd::cpu
