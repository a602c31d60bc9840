// Reductions on a device: determines the rows, how they are split, and the result of each. See
// cuda/kernels/reduce_call.h.
#include <algorithm>
#include <cmath>
#include <optional>

#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/reduce_call.h"
#include "cuda/kernels/rows.h"
#include "cuda/kernels/splits.h"
#include "cuda/kernels/table.h"
#include "cuda/scratch.h"
#include "ops/reduce.h"

namespace retrograd::inline v0::cuda {
namespace {


struct Result {
  Reduction kind;
  Finish finish;
  double parameter = 0;
};

void reduce(const Call& call, TensorImpl* const* outputs, const Result& result) {
  const TensorImpl& x = *call.operands[0];
  ReduceCall c;
  c.x = x.data();
  c.element = static_cast<Element>(x.dtype());
  c.out = outputs[0]->data();
  c.out_element = static_cast<Element>(outputs[0]->dtype());
  if (call.outputs > 1) c.index = static_cast<int64_t*>(outputs[1]->data());
  c.finish = result.finish;
  c.parameter = result.parameter;
  const RowSide side = row_side(x, mask_of(call.attrs_as<ops::ReduceAttrs>().dim));
  c.rows = side.rows;
  c.along = side.along;
  if (c.rows.numel == 0) return;
  cut(c);
  std::optional<Scratch> partials;
  if (const int64_t bytes = partial_bytes(c)) c.partials = partials.emplace(bytes, call.op->name).data();
  const ReduceRow& row = Gpu::current().launchers().reduce[static_cast<int>(result.kind)];
  const ScalarType type = compute_type(x.dtype());
  const ReduceLauncher launcher = type == kFloat32 ? row.f32 : type == kFloat64 ? row.f64 : row.i64;
  if (!launcher) fail_call(call, Category::dtype_mismatch, "it is not defined for this dtype");
  launcher(c, Gpu::current().compute().handle());
  Gpu::current().launched(call.op->name);
}

template <Reduction kind, Finish finish>
void kernel(const Call& call, TensorImpl* const* outputs) {
  reduce(call, outputs, {kind, finish});
}

template <Finish finish>
void variance_kernel(const Call& call, TensorImpl* const* outputs) {
  reduce(call, outputs,
         {Reduction::moments, finish, call.attrs_as<ops::VarianceAttrs>().correction.to_double()});
}

void norm_kernel(const Call& call, TensorImpl* const* outputs) {
  const double ord = call.attrs_as<ops::NormAttrs>().ord.to_double();
  if (std::isinf(ord))
    return reduce(call, outputs, {ord > 0 ? Reduction::abs_max : Reduction::abs_min, Finish::value});
  if (ord == 0) return reduce(call, outputs, {Reduction::nonzero, Finish::value});
  if (ord == 1) return reduce(call, outputs, {Reduction::abs_sum, Finish::value});
  if (ord == 2) return reduce(call, outputs, {Reduction::square_sum, Finish::root});
  reduce(call, outputs, {Reduction::power_sum, Finish::power_root, ord});
}

}  // namespace

void cut(ReduceCall& c) {
  const int64_t row_step = c.rows.stride[c.rows.rank - 1], step = c.along.stride[c.along.rank - 1];
  c.rows_first = c.rows.numel > 1 && row_step == 1 && step != 1;
  c.lanes = c.rows_first ? 8 : c.along.numel >= 512 ? kThreadsOfBlock : 32;
  const int64_t rows_of_block = kThreadsOfBlock / c.lanes;
  const int64_t blocks = (c.rows.numel + rows_of_block - 1) / rows_of_block;
  const int64_t most = c.along.numel / (c.lanes * kLeastOfLane);
  c.splits = static_cast<int>(std::clamp<int64_t>(std::min(kBlocks / blocks, most), 1, kBlocks));
  c.part = (c.along.numel + c.splits - 1) / c.splits;
}

int64_t partial_bytes(const ReduceCall& c) {
  return c.splits > 1 ? c.rows.numel * c.splits * static_cast<int64_t>(sizeof(Partial<double>)) : 0;
}

void add_reduce_kernels(KernelTable& table) {
  using enum Reduction;
  table.set(&ops::info<ops::Sum>, kernel<sum, Finish::value>);
  table.set(&ops::info<ops::Mean>, kernel<sum, Finish::mean>);
  table.set(&ops::info<ops::Prod>, kernel<prod, Finish::value>);
  table.set(&ops::info<ops::Amax>, kernel<max, Finish::value>);
  table.set(&ops::info<ops::Amin>, kernel<min, Finish::value>);
  table.set(&ops::info<ops::MaxAlong>, kernel<max, Finish::value>);
  table.set(&ops::info<ops::MinAlong>, kernel<min, Finish::value>);
  table.set(&ops::info<ops::Argmax>, kernel<max, Finish::index>);
  table.set(&ops::info<ops::Argmin>, kernel<min, Finish::index>);
  table.set(&ops::info<ops::Var>, variance_kernel<Finish::variance>);
  table.set(&ops::info<ops::Std>, variance_kernel<Finish::deviation>);
  table.set(&ops::info<ops::LogSumExp>, kernel<logsumexp, Finish::logsumexp>);
  table.set(&ops::info<ops::VectorNorm>, norm_kernel);
  table.set(&ops::info<ops::All>, kernel<nonzero, Finish::is_length>);
  table.set(&ops::info<ops::Any>, kernel<nonzero, Finish::is_positive>);
  table.set(&ops::info<ops::CountNonzero>, kernel<nonzero, Finish::value>);
}

}  // namespace retrograd::cuda
