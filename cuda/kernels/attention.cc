// Attention on a device, forward and backward: converts a Call to strides. See cuda/kernels/attention.cu.
#include "ops/attention.h"

#include "cuda/kernels/attention_call.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/table.h"
#include "cuda/scratch.h"

namespace retrograd::inline v0::cuda {
namespace {

// A side (..., rows, columns), or with `is_column` (..., rows).
void set_side(AttentionCall& c, int side, const TensorImpl& x, bool is_column = false) {
  BatchMatrix& m = c.side[side];
  const int last = x.rank() - 1, row = is_column ? last : last - 1;
  m.data = x.data();
  m.row = x.strides()[row];
  m.column = is_column ? 0 : x.strides()[last];
  for (int d = 0; d < row; ++d) m.batch[d] = x.strides()[d];
}

// There is at least one batch dim.
void set_sizes(AttentionCall& c, const Call& call) {
  const auto& attrs = call.attrs_as<ops::AttentionAttrs>();
  RG_ASSERT(!attrs.interleaved);
  const TensorImpl &q = *call.operands[0], &v = *call.operands[2];
  const int rank = q.rank();
  c.queries = q.shape()[rank - 2].raw();
  c.depth = q.shape()[rank - 1].raw();
  c.keys = v.shape()[rank - 2].raw();
  c.width = v.shape()[rank - 1].raw();
  c.is_causal = attrs.is_causal;
  c.scale = attrs.scale.to_double();
  for (int d = 0; d < rank - 2; ++d) {
    c.batch_size[d] = q.shape()[d].raw();
    c.batches *= c.batch_size[d];
  }
  c.batch_rank = rank - 2;
  set_side(c, AttentionCall::kQuery, q);
  set_side(c, AttentionCall::kKey, *call.operands[1]);
  set_side(c, AttentionCall::kValue, v);
}

const AttentionPasses& passes_of(ScalarType dtype, const AttentionCall& c) {
  const AttentionRow& row = *Gpu::current().launchers().attention;
  const bool on_tensor_cores = c.takes_tensor_cores();
  switch (dtype) {
    case kFloat64: return row.f64;
    case kFloat32: return row.f32;
    case kFloat16: return on_tensor_cores ? row.tensor_f16 : row.f16;
    default: return on_tensor_cores ? row.tensor_bf16 : row.bf16;
  }
}

void launch(const Call& call, const AttentionCall& c, AttentionLauncher AttentionPasses::*pass) {
  Gpu& gpu = Gpu::current();
  (passes_of(call.operands[0]->dtype(), c).*pass)(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

void forward_kernel(const Call& call, TensorImpl* const* outputs) {
  for (int i = 0; i < 2; ++i) RG_ASSERT(outputs[i]->is_contiguous());
  AttentionCall c;
  set_sizes(c, call);
  if (c.batches * c.queries == 0) return;
  set_side(c, AttentionCall::kOut, *outputs[0]);
  set_side(c, AttentionCall::kLse, *outputs[1], true);
  launch(call, c, &AttentionPasses::forward);
}

void backward_kernel(const Call& call, TensorImpl* const* outputs) {
  for (int i = 0; i < 3; ++i) RG_ASSERT(outputs[i]->is_contiguous());
  AttentionCall c;
  set_sizes(c, call);
  if (c.batches == 0) return;
  set_side(c, AttentionCall::kOut, *call.operands[3]);
  set_side(c, AttentionCall::kLse, *call.operands[4], true);
  set_side(c, AttentionCall::kG, *call.operands[5]);
  c.query_gradient = outputs[0]->data();
  c.key_gradient = outputs[1]->data();
  c.value_gradient = outputs[2]->data();
  const ScalarType of_sums = call.operands[4]->dtype();
  const Scratch delta(2 * c.batches * c.queries * static_cast<int64_t>(element_size(of_sums)), call.op->name);
  c.delta = delta.data();
  launch(call, c, &AttentionPasses::backward);
}

}  // namespace

// Rows are read and written in pieces of 16 bytes.
bool AttentionCall::takes_tensor_cores() const {
  // Limits of the number of rows and of the stride between elements: kernels count both, and a row's bytes, in ints.
  constexpr int64_t kPiece = 8, kMostDepth = 128, kMostRows = int64_t{1} << 30;
  if (depth % kPiece || width % kPiece || depth > kMostDepth || width > kMostDepth || depth * width == 0)
    return false;
  if (queries > kMostRows || keys > kMostRows || !(scale > 0)) return false;
  const auto is_aligned = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
  if (!is_aligned(query_gradient) || !is_aligned(key_gradient) || !is_aligned(value_gradient)) return false;
  for (const BatchMatrix& m : side) {
    if (&m == &side[kLse] || !m.data) continue;  // g is for the backward pass
    if (!is_aligned(m.data) || m.column != 1 || m.row % kPiece || m.row >= kMostRows) return false;
    for (int d = 0; d < batch_rank; ++d)
      if (m.batch[d] % kPiece && batch_size[d] > 1) return false;
  }
  return true;
}

void add_attention_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Attention>, forward_kernel);
  table.set(&ops::info<ops::AttentionBackward>, backward_kernel);
}

}  // namespace retrograd::cuda
