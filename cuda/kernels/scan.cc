// Scans on a device: rows along a dim. See cuda/kernels/scan_call.h.
#include "ops/scan.h"

#include <optional>

#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/rows.h"
#include "cuda/kernels/table.h"
#include "cuda/scratch.h"

namespace retrograd::cuda {
namespace {

constexpr int64_t kMostSplits = 128;
constexpr int64_t kBytesOfPart = 16;

// A thread a row where rows are short or neighbours in memory, else a warp or a block.
RowCut cut_of(const RowSide& y, ScanKind kind) {
  RowCut cut = cut_rows(y, kind == ScanKind::shift ? 1 : kMostSplits);
  if (kind == ScanKind::shift) return cut;
  if (cut.rows_first && cut.rows * 8 < cut.length) {  // few and long
    cut.rows_first = false;
    cut.lanes = 256;
  }
  if (cut.lanes == 8) cut.lanes = 1;
  return cut;
}

template <ScanKind kind>
void kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::ScanAttrs>();
  const TensorImpl& y = *outputs[0];
  const uint64_t along = y.rank() ? uint64_t{1} << attrs.dim : 0;
  ScanCall c;
  c.x = row_side(*call.operands[0], along);
  c.b = row_side(*call.operands.back(), along);
  c.y = row_side(y, along);
  c.reverse = attrs.reverse;
  c.exclusive = attrs.exclusive;
  c.cut = cut_of(c.y, kind);
  if (c.cut.rows == 0 || c.cut.length == 0) return;
  std::optional<Scratch> partials;
  if (c.cut.splits > 1)
    c.partials = partials.emplace(c.cut.rows * c.cut.splits * kBytesOfPart, call.op->name).data();
  Gpu& gpu = Gpu::current();
  const ScanRow& row = gpu.launchers().scan[static_cast<int>(kind)];
  const ScalarType type = compute_type(y.dtype());
  (type == kFloat32 ? row.f32 : type == kFloat64 ? row.f64 : row.i64)(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

}  // namespace

void add_scan_kernels(KernelTable& table) {
  using enum ScanKind;
  table.set(&ops::info<ops::CumSum>, kernel<sum>);
  table.set(&ops::info<ops::CumProd>, kernel<product>);
  table.set(&ops::info<ops::Recurrence>, kernel<recurrence>);
  table.set(&ops::info<ops::Shift>, kernel<shift>);
}

}  // namespace retrograd::cuda
