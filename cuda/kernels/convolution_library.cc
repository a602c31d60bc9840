// See cuda/kernels/convolution_library.h.
//
// A side that is not row-major, or not at an address that the library accepts, is copied to temporary memory and, if it
// is the result, back. So it depends only on sizes and dtypes which kernel computes the convolution, and not on where a
// plan has placed a value. A copy costs little compared with a convolution.
//
// A bias is the initial value of the result, and the library adds to it: so a sum of 16-bit floats is rounded once.
#include "cuda/kernels/convolution_library.h"

#include <algorithm>
#include <optional>

#include "cuda/dnn.h"
#include "cuda/kernels/dense.h"
#include "cuda/scratch.h"

namespace retrograd::inline v0::cuda {
namespace {

std::optional<DnnType> type_of(ScalarType dtype) {
  switch (dtype) {
    case kFloat32: return DnnType::f32;
    case kFloat64: return DnnType::f64;
    case kFloat16: return DnnType::f16;
    case kBFloat16: return DnnType::bf16;
    default: return {};
  }
}

// With one channel per group, as in depthwise convolutions, sums are short and retrograd's own kernels are limited by
// memory.
bool is_wanted(DnnUse use, const ConvolutionCall& c) {
  return use == DnnUse::wherever_it_can ||
         (use == DnnUse::where_it_wins && (c.groups == 1 || c.channels > 1));
}

DnnConvolution without_sides(const ConvolutionCall& c, DnnType type, int spatial_dims) {
  DnnConvolution d;
  d.wanted = static_cast<DnnWanted>(c.wanted);
  d.type = type;
  d.tf32 = Gpu::current().allows_tf32();
  d.dims = std::max(spatial_dims, 2);
  d.batch = c.batch;
  d.groups = c.groups;
  d.channels = c.channels;
  d.features = c.features;
  std::copy_n(c.large, 3, d.large);
  std::copy_n(c.small, 3, d.small);
  std::copy_n(c.kernel, 3, d.kernel);
  std::copy_n(c.stride, 3, d.stride);
  std::copy_n(c.padding, 3, d.padding);
  std::copy_n(c.dilation, 3, d.dilation);
  return d;
}

// Repeats (channels) to every position of (batch, channels, positions).
void spread(const TensorImpl& bias, TensorImpl& out) {
  const RefPtr<TensorImpl> repeated = TensorImpl::make();
  repeated->alias(bias);
  repeated->mutable_shape() = out.shape();
  for (int d = 0; d < out.rank(); ++d) repeated->mutable_strides()[d] = d == 1 ? bias.strides()[0] : 0;
  convert_copy(*repeated, out);
}

}  // namespace

bool convolve_by_library(const Call& call, const ConvolutionCall& c, const ConvolutionTensors& sides,
                         const TensorImpl* bias) {
  Gpu& gpu = Gpu::current();
  const std::optional<DnnType> type = type_of(sides.x->dtype());
  if (!type || !is_wanted(gpu.dnn_use(), c)) return false;
  Dnn* library = gpu.dnn();
  if (!library) return false;
  DnnConvolution d = without_sides(c, *type, sides.x->rank() - 2);
  const std::optional<int64_t> bytes = library->workspace(d);
  bool is_done = false;
  if (bytes) {
    const auto dense = [&](TensorImpl& side) { return DenseTensor(side, call.op->name, Dnn::kAlignment); };
    DenseTensor x = dense(*sides.x), g = dense(*sides.g), w = dense(*sides.w);
    DenseTensor& out = c.wanted == ConvolutionWanted::small ? g : c.wanted == ConvolutionWanted::large ? x : w;
    for (DenseTensor* side : {&x, &g, &w})
      if (side != &out) side->bring();
    if (bias) spread(*bias, out.here());
    d.adds = bias;
    d.x = x.here().data();
    d.g = g.here().data();
    d.w = w.here().data();
    std::optional<Scratch> workspace;
    if (*bytes > 0) workspace.emplace(*bytes, call.op->name);
    is_done = library->convolve(d, workspace ? workspace->data() : nullptr, *bytes, gpu.compute().handle());
    if (is_done) out.take_back();
  }
  gpu.count_dnn(is_done);
  return is_done;
}

}  // namespace retrograd::cuda
