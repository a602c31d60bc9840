// Convolutions on the CPU: operands become sweeps (cpu/kernels/convolution.h).
//
// make_sweep() brings a call of one to three dims into the form of three; merge_axes() joins the last two dims if the
// kernel does not extend over the last. A transposed convolution becomes a sweep for each remainder by the stride.
// Operands that are not contiguous or of 16 bits are converted first, to float32; the result of 16 bits is rounded
// once. Integers are computed as int64, by tiles. Start reading at convolution_kernel.
#include "cpu/kernels/convolution.h"

#include <numeric>

#include "cpu/kernels/layout.h"
#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/table.h"
#include "ops/convolution.h"

namespace retrograd::inline v0::cpu {

int64_t make_runs(const Sweep& s, int64_t begin, int64_t end, ConvolutionRun* runs) {
  const SweepAxis(&a)[3] = s.axis;
  int64_t line = begin / a[2].grid, x = begin % a[2].grid;
  ConvolutionRun* run = runs;
  for (int64_t column = 0; column < end - begin; ++run, ++line, x = 0) {
    const int64_t y = line % a[1].grid, z = line / a[1].grid % a[0].grid,
                  sample = line / a[1].grid / a[0].grid;
    run->at[0] = z * a[0].stride;
    run->at[1] = y * a[1].stride;
    run->at[2] = x * a[2].stride;
    run->from = sample * s.in_sample() + (run->at[0] * a[1].in + run->at[1]) * a[2].in + run->at[2];
    run->to = sample * s.out_sample() +
              ((a[0].first + z * a[0].step) * a[1].out + a[1].first + y * a[1].step) * a[2].out + a[2].first +
              x * a[2].step;
    run->column = column;
    run->count = std::min(a[2].grid - x, end - begin - column);
    column += run->count;
  }
  return run - runs;
}

namespace {

constexpr int64_t kFewFeatures = 4;  // per group: computed by lines

// Calls f(out) with the result's memory in the compute type, and rounds it to the output.
template <class F>
void with_result(TensorImpl& output, ScalarType type, F&& f) {
  const LocalResult result(output, type);
  f(result->data());
  result.finish();
}

int64_t spatial_size(const Shape& shape, int d) {  // of dim d of three, counted from the last
  const int i = shape.rank() - 3 + d;
  return i < 2 ? 1 : shape[i].raw();
}

// The sweep of a convolution from `large` to `small` with a kernel as that of `weight`, all of them (..., channels,
// spatial dims). Missing dims are the leading ones.
Sweep make_sweep(const ops::ConvolutionAttrs& attrs, const Shape& large, const Shape& small,
                 const Shape& weight) {
  Sweep s;
  s.batch = large[0].raw();
  s.groups = attrs.groups;
  s.in_channels = large[1].raw() / attrs.groups;
  s.out_channels = small[1].raw() / attrs.groups;
  const int missing = 3 - attrs.stride.size();
  for (int d = 0; d < 3; ++d) {
    SweepAxis& a = s.axis[d];
    a.in = spatial_size(large, d);
    a.out = a.grid = spatial_size(small, d);
    a.kernel = a.taps = spatial_size(weight, d);
    if (d < missing) continue;
    a.stride = attrs.stride[d - missing];
    a.offset = -attrs.padding[d - missing];
    a.offset_step = attrs.dilation[d - missing];
  }
  return s;
}

// Merges the last two dims if the kernel does not extend over the last: kernels of one place become plain products.
void merge_axes(Sweep& s) {
  for (int d = 0; d < 2; ++d) {
    SweepAxis &y = s.axis[1], &x = s.axis[2];
    const bool passes = x.kernel == 1 && x.stride == 1 && x.offset == 0 && x.in == x.out;
    if (!passes || y.stride != 1) return;
    const int64_t line = x.in;
    x = y;
    for (int64_t* size : {&x.in, &x.out, &x.grid, &x.offset, &x.offset_step}) *size *= line;
    y = s.axis[0];
    s.axis[0] = SweepAxis();
  }
}

// The results of dim `a` of a convolution's transpose at places with remainder r by the stride: place
// r + i * stride was read for the kernel's places t with (r - offset - t * offset_step) a multiple of the
// stride. These are tap, tap + tap_step, ...
SweepAxis transposed(const SweepAxis& a, int64_t r) {
  SweepAxis t;
  t.in = a.out;
  t.out = a.in;
  t.kernel = a.kernel;
  t.first = r;
  t.step = a.stride;
  t.grid = ceil_div(a.in - r, a.stride);
  t.tap_step = a.stride / std::gcd(a.offset_step, a.stride);
  while (t.tap < std::min(t.tap_step, a.kernel) && (r - a.offset - t.tap * a.offset_step) % a.stride != 0)
    ++t.tap;
  t.taps = t.tap < t.tap_step ? ceil_div(a.kernel - t.tap, t.tap_step) : 0;
  t.offset = (r - a.offset - t.tap * a.offset_step) / a.stride;
  t.offset_step = -t.tap_step * a.offset_step / a.stride;
  return t;
}

template <class T>
void run_sweep(const Sweep& s, const SweepData<T>& data) {
  if constexpr (!std::is_same_v<T, int64_t>)
    if (s.out_channels <= kFewFeatures && s.in_channels * s.taps() > 0) return sweep_lines(s, data);
  sweep_tiles(s, data);
}

void convolution_kernel(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;
  const ScalarType type = compute_type(outputs[0]->dtype());
  const LocalCopy x(call.operands[0], type), weight(call.operands[1], type), bias(call.operands[2], type);
  Sweep s =
      make_sweep(call.attrs_as<ops::ConvolutionAttrs>(), x->shape(), outputs[0]->shape(), weight->shape());
  merge_axes(s);
  with_result(*outputs[0], type, [&](void* out) {
    dispatch_compute(type, [&]<class T>(std::type_identity<T>) {
      run_sweep<T>(s, {x.values<T>(), weight.values<T>(), bias.values<T>(), static_cast<T*>(out), s.kernel(),
                       s.in_channels * s.kernel()});
    });
  });
}

void transpose_kernel(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;  // whatever its strides are
  const ScalarType type = compute_type(outputs[0]->dtype());
  const LocalCopy x(call.operands[0], type), weight(call.operands[1], type), bias(call.operands[2], type);
  Sweep forward =
      make_sweep(call.attrs_as<ops::ConvolutionAttrs>(), outputs[0]->shape(), x->shape(), weight->shape());
  merge_axes(forward);
  Sweep s = forward;
  std::swap(s.in_channels, s.out_channels);
  const auto remainders = [&](int d) { return std::min(forward.axis[d].stride, forward.axis[d].in); };
  with_result(*outputs[0], type, [&](void* out) {
    dispatch_compute(type, [&]<class T>(std::type_identity<T>) {
      const SweepData<T> data{x.values<T>(),        weight.values<T>(),          bias.values<T>(),
                              static_cast<T*>(out), s.out_channels * s.kernel(), s.kernel()};
      for (int64_t z = 0; z < remainders(0); ++z)
        for (int64_t y = 0; y < remainders(1); ++y)
          for (int64_t x = 0; x < remainders(2); ++x) {
            const int64_t remainder[3] = {z, y, x};
            for (int d = 0; d < 3; ++d) s.axis[d] = transposed(forward.axis[d], remainder[d]);
            run_sweep(s, data);
          }
    });
  });
}

void weight_kernel(const Call& call, TensorImpl* const* outputs) {
  const ScalarType type = compute_type(outputs[0]->dtype());
  const LocalCopy x(call.operands[0], type), grad(call.operands[1], type);
  Sweep s =
      make_sweep(call.attrs_as<ops::ConvolutionAttrs>(), x->shape(), grad->shape(), outputs[0]->shape());
  merge_axes(s);
  if (outputs[0]->numel().raw() == 0) return;
  with_result(*outputs[0], type, [&](void* out) {
    const auto run = [&]<class T>(T) {
      const auto way = s.out_channels <= kFewFeatures ? weight_lines<T> : weight_tiles<T>;
      way(s, x.values<T>(), grad.values<T>(), static_cast<T*>(out));
    };
    if (type == kFloat64)
      run(double{});
    else
      run(float{});
  });
}

}  // namespace

void add_convolution_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Convolution>, convolution_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::ConvolutionTranspose>, transpose_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::ConvolutionWeight>, weight_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
