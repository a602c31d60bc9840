// Scans on a device: rows along a dim. See cuda/kernels/scan_call.h.
#include "ops/scan.h"

#include <optional>

#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/rows.h"
#include "cuda/kernels/scan_call.h"
#include "cuda/kernels/splits.h"
#include "cuda/kernels/table.h"
#include "cuda/scratch.h"
#include "ops/cumulative.h"

namespace retrograd::inline v0::cuda {
namespace {

constexpr int64_t kBytesOfPart = 16;
// Rows of int64 that are scanned one after the other, each over the whole device.
constexpr int64_t kLongRow = int64_t{1} << 18, kMostLongRows = 8;

// One thread per row if rows are short or adjacent in memory, else a warp or a block.
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

// The position of the start of row r.
int64_t start_of(const Dims& rows, int64_t r) {
  int64_t start = 0;
  for (int d = rows.rank - 1; d >= 0; --d) {
    start += r % rows.size[d] * rows.stride[d];
    r /= rows.size[d];
  }
  return start;
}

void scan_integers(const Call& call, const ScanCall& c, IntegerScan scan) {
  Gpu& gpu = Gpu::current();
  IntegerRow row;
  row.length = c.cut.length;
  row.exclusive = c.exclusive;
  row.x_step = c.reverse ? -c.x.along.stride[0] : c.x.along.stride[0];
  row.y_step = c.reverse ? -c.y.along.stride[0] : c.y.along.stride[0];
  size_t bytes = 0;
  gpu.health().check(scan(nullptr, bytes, row, nullptr), call.op->name);
  const Scratch room(static_cast<int64_t>(bytes), call.op->name);
  const int64_t last = c.reverse ? row.length - 1 : 0;
  for (int64_t r = 0; r < c.cut.rows; ++r) {
    row.x = static_cast<const int64_t*>(c.x.data) + start_of(c.x.rows, r) + last * c.x.along.stride[0];
    row.y = static_cast<int64_t*>(c.y.data) + start_of(c.y.rows, r) + last * c.y.along.stride[0];
    gpu.health().check(scan(room.data(), bytes, row, gpu.compute().handle()), call.op->name);
    gpu.launched(call.op->name);
  }
}

// Cumulative extremes and sums of exponentials have a dim only.
template <ScanKind kind>
ops::ScanAttrs attrs_of(const Call& call) {
  if constexpr (gives_places(kind) || kind == ScanKind::logsumexp)
    return {call.attrs_as<ops::DimAttrs>().dim};
  else
    return call.attrs_as<ops::ScanAttrs>();
}

template <ScanKind kind>
void kernel(const Call& call, TensorImpl* const* outputs) {
  const ops::ScanAttrs attrs = attrs_of<kind>(call);
  const TensorImpl& y = *outputs[0];
  const uint64_t along = y.rank() ? uint64_t{1} << attrs.dim : 0;
  ScanCall c;
  c.x = row_side(*call.operands[0], along);
  c.b = row_side(gives_places(kind) ? *outputs[1] : *call.operands.back(), along);
  c.y = row_side(y, along);
  c.reverse = attrs.reverse;
  c.exclusive = attrs.exclusive;
  c.cut = cut_of(c.y, kind);
  if (c.cut.rows == 0 || c.cut.length == 0) return;
  Gpu& gpu = Gpu::current();
  const ScanRow& row = gpu.launchers().scan[static_cast<int>(kind)];
  if (row.integers && y.dtype() == kInt64 && c.cut.rows <= kMostLongRows && c.cut.length >= kLongRow)
    return scan_integers(call, c, row.integers);
  std::optional<Scratch> partials;
  if (c.cut.splits > 1)
    c.partials = partials.emplace(c.cut.rows * c.cut.splits * kBytesOfPart, call.op->name).data();
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
  table.set(&ops::info<ops::CumMax>, kernel<largest>);
  table.set(&ops::info<ops::CumMin>, kernel<smallest>);
  table.set(&ops::info<ops::LogCumSumExp>, kernel<logsumexp>);
}

}  // namespace retrograd::cuda
