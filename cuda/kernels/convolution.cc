// Convolutions on a device: which side is wanted, and what computes it: the vendor's library (convolution_library.h) if
// it accepts the convolution, else the kernels of convolution.cu, which accept any; and how these split the sums. See
// cuda/kernels/convolution_call.h.
#include "ops/convolution.h"

#include <algorithm>
#include <optional>

#include "cuda/kernels/convolution_call.h"
#include "cuda/kernels/convolution_library.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/splits.h"
#include "cuda/kernels/table.h"
#include "cuda/scratch.h"

namespace retrograd::inline v0::cuda {
namespace {

constexpr int64_t kTile = 64;
constexpr int64_t kFewRows = 4;       // computed one by one
constexpr int64_t kLeastTerms = 256;  // of a part, for each thread or tile that processes them

ConvolutionSide side_of(const TensorImpl& x) {
  ConvolutionSide s{x.data(), x.strides()[0], x.strides()[1], {}};
  for (int d = 2; d < x.rank(); ++d) s.place[3 - x.rank() + d] = x.strides()[d];
  return s;
}

void set_places(const TensorImpl& x, int64_t (&size)[3]) {
  for (int d = 2; d < x.rank(); ++d) size[3 - x.rank() + d] = x.shape()[d].raw();
}
int64_t places(const int64_t (&size)[3]) { return size[0] * size[1] * size[2]; }

void set_sizes(ConvolutionCall& c, const Call& call, const ConvolutionTensors& sides) {
  const TensorImpl &x = *sides.x, &g = *sides.g, &w = *sides.w;
  const auto& attrs = call.attrs_as<ops::ConvolutionAttrs>();
  c.element = static_cast<Element>(x.dtype());
  c.x = side_of(x);
  c.g = side_of(g);
  c.w = side_of(w);
  c.batch = x.shape()[0].raw();
  c.groups = attrs.groups;
  c.channels = x.shape()[1].raw() / attrs.groups;
  c.features = g.shape()[1].raw() / attrs.groups;
  set_places(x, c.large);
  set_places(g, c.small);
  set_places(w, c.kernel);
  const int dims = attrs.stride.size();
  for (int d = 0; d < dims; ++d) {
    c.stride[3 - dims + d] = attrs.stride[d];
    c.padding[3 - dims + d] = attrs.padding[d];
    c.dilation[3 - dims + d] = attrs.dilation[d];
  }
}

void set_matrices(ConvolutionCall& c) {
  const int64_t kernel = places(c.kernel), small = c.batch * places(c.small);
  const bool is_large = c.wanted == ConvolutionWanted::large;
  c.rows = is_large ? c.channels : c.features;
  c.columns = is_large ? c.batch * places(c.large) : small;
  c.terms = (is_large ? c.features : c.channels) * kernel;
  if (c.wanted == ConvolutionWanted::weight) std::swap(c.columns, c.terms);
}

// Depends on sizes only: results do not depend on the device.
void cut(ConvolutionCall& c) {
  const int64_t results = c.rows * c.columns * c.groups;
  int64_t blocks, most;
  if (c.rows <= kFewRows) {
    c.lanes = c.wanted == ConvolutionWanted::weight ? kThreadsOfBlock : 1;
    blocks = (results * c.lanes + kThreadsOfBlock - 1) / kThreadsOfBlock;
    most = c.terms / (c.lanes == 1 ? kLeastTerms : c.lanes * kLeastOfLane);
  } else {
    blocks = (c.rows + kTile - 1) / kTile * ((c.columns + kTile - 1) / kTile) * c.groups;
    most = c.terms / kLeastTerms;
  }
  c.splits = static_cast<int>(std::clamp<int64_t>(std::min(kBlocks / blocks, most), 1, kBlocks));
  c.part = (c.terms + c.splits - 1) / c.splits;
}

void launch_kernels(const Call& call, ConvolutionCall& c, const TensorImpl* bias, ScalarType dtype) {
  if (bias) {
    c.bias = bias->data();
    c.bias_step = bias->strides()[0];
  }
  cut(c);
  std::optional<Scratch> partials;
  if (c.splits > 1)
    c.partials = partials.emplace(c.rows * c.columns * c.groups * c.splits * 8, call.op->name).data();
  Gpu& gpu = Gpu::current();
  const ConvolutionRow& row = gpu.launchers().convolution[static_cast<int>(c.wanted)];
  const ScalarType type = compute_type(dtype);
  const ConvolutionLauncher launcher = type == kFloat32 ? row.f32 : type == kFloat64 ? row.f64 : row.i64;
  if (!launcher) fail_call(call, Category::dtype_mismatch, "it is not defined for this dtype");
  launcher(c, gpu.compute().handle());
}

void convolve(const Call& call, const ConvolutionTensors& sides, ConvolutionWanted wanted) {
  ConvolutionCall c;
  c.wanted = wanted;
  set_sizes(c, call, sides);
  set_matrices(c);
  if (c.rows * c.columns * c.groups == 0) return;
  const TensorImpl* bias = wanted == ConvolutionWanted::weight ? nullptr : call.operands[2];
  if (c.terms == 0 || !convolve_by_library(call, c, sides, bias))
    launch_kernels(call, c, bias, sides.x->dtype());
  Gpu::current().launched(call.op->name);
}

void convolution_kernel(const Call& call, TensorImpl* const* outputs) {
  convolve(call, {call.operands[0], outputs[0], call.operands[1]}, ConvolutionWanted::small);
}

void transpose_kernel(const Call& call, TensorImpl* const* outputs) {
  convolve(call, {outputs[0], call.operands[0], call.operands[1]}, ConvolutionWanted::large);
}

void weight_kernel(const Call& call, TensorImpl* const* outputs) {
  convolve(call, {call.operands[0], call.operands[1], outputs[0]}, ConvolutionWanted::weight);
}

}  // namespace

void add_convolution_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Convolution>, convolution_kernel);
  table.set(&ops::info<ops::ConvolutionTranspose>, transpose_kernel);
  table.set(&ops::info<ops::ConvolutionWeight>, weight_kernel);
}

}  // namespace retrograd::cuda
