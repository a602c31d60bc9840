// The norm of many tensors together (clipping of gradients).
//
// The elements of all operands are cut into chunks of one size, so that one large and many small tensors keep
// all threads busy. Each chunk leaves one part, sum |x|^p or the largest |x|; parts are joined in the order
// of the chunks, so the result does not depend on the number of threads: to the norm of each operand, and then
// to that of these norms. So norms of operands that were computed before, one by one, give the same bits.
// Elements of 16 bits go through tiles of float. The operands must be contiguous.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "cpu/kernels/layout.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"
#include "ops/total_norm.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kChunk = 1 << 14;  // elements: small enough to share out, large enough to pay for it

// Eight sums side by side, so that additions overlap.
template <class T, class F>
double sum_of(const T* x, int64_t n, const F& f) {
  double sums[8] = {};
  const int64_t whole = n / 8 * 8;
  for (int64_t i = 0; i < whole; i += 8)
    for (int64_t k = 0; k < 8; ++k) sums[k] += f(static_cast<double>(x[i + k]));
  for (int64_t i = whole; i < n; ++i) sums[i - whole] += f(static_cast<double>(x[i]));
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// What a chunk adds: sum |x|^norm_type, or the largest |x|, which is nan if there is one.
template <class T>
double part_of_norm(const T* x, int64_t n, double norm_type) {
  if (norm_type == 2) return sum_of(x, n, [](double v) { return v * v; });
  if (!std::isinf(norm_type))
    return sum_of(x, n, [=](double v) { return std::pow(std::fabs(v), norm_type); });
  double largest = 0;
  for (int64_t i = 0; i < n; ++i)
    if (const double a = std::fabs(static_cast<double>(x[i])); a > largest || std::isnan(a)) largest = a;
  return largest;
}

// Elements of 16 bits go through tiles of float.
double part_of_norm(const TensorImpl& x, int64_t begin, int64_t n, double norm_type) {
  if (x.dtype() == kFloat64) return part_of_norm(static_cast<const double*>(x.data()) + begin, n, norm_type);
  if (x.dtype() == kFloat32) return part_of_norm(static_cast<const float*>(x.data()) + begin, n, norm_type);
  constexpr int64_t kTile = 512;
  const auto load = convert_table<float>().load[static_cast<int>(x.dtype())];
  const auto* from = static_cast<const std::byte*>(x.data()) + begin * 2;
  float tile[kTile];
  double part = 0;
  for (int64_t at = 0; at < n; at += kTile) {
    const int64_t count = std::min(kTile, n - at);
    load(from + at * 2, 1, count, tile);
    const double more = part_of_norm(tile, count, norm_type);
    if (!std::isinf(norm_type))
      part += more;
    else if (more > part || std::isnan(more))
      part = more;
  }
  return part;
}

double join(std::span<const double> parts, double norm_type) {
  double total = 0;
  for (double part : parts) {
    if (!std::isinf(norm_type))
      total += part;
    else if (part > total || std::isnan(part))
      total = part;
  }
  return std::isinf(norm_type) ? total : norm_type == 2 ? std::sqrt(total) : std::pow(total, 1 / norm_type);
}

double norm_of_norms(std::span<double> norms, double norm_type) {
  if (norms.size() == 1) return norms[0];
  for (double& n : norms) n = part_of_norm(&n, 1, norm_type);
  return join(norms, norm_type);
}

void total_norm(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::TotalNorm::Attrs>();
  const double norm_type = attrs.norm_type.to_double();
  Scratch<int64_t> ends(std::ssize(call.operands));  // of each operand, the chunks up to its end
  int64_t chunks = 0;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const TensorImpl& x = *call.operands[k];
    if (!x.is_contiguous()) fail_call(call, Category::bad_argument, "an operand is not contiguous");
    chunks += (x.numel().raw() + kChunk - 1) / kChunk;
    if (!measuring()) ends[static_cast<int64_t>(k)] = chunks;
  }
  Scratch<double> parts(chunks), norms(std::ssize(call.operands));
  if (measuring()) return;
  parallel_for(chunks, [&](int64_t chunk) {
    const auto k = std::upper_bound(ends.data(), ends.data() + call.operands.size(), chunk) - ends.data();
    const TensorImpl& x = *call.operands[static_cast<size_t>(k)];
    const int64_t begin = (chunk - (k == 0 ? 0 : ends[k - 1])) * kChunk,
                  n = std::min(x.numel().raw() - begin, kChunk);
    parts[chunk] = part_of_norm(x, begin, n, norm_type);
  });
  int64_t begin = 0;
  for (int64_t k = 0; k < std::ssize(call.operands); begin = ends[k++]) {
    const TensorImpl& x = *call.operands[static_cast<size_t>(k)];
    norms[k] = x.numel().raw() == 1  // exact with any norm_type
                   ? part_of_norm(x, 0, 1, std::numeric_limits<double>::infinity())
                   : join({parts.data() + begin, static_cast<size_t>(ends[k] - begin)}, norm_type);
  }
  const double norm = norm_of_norms({norms.data(), call.operands.size()}, norm_type);
  if (attrs.error_if_nonfinite && !std::isfinite(norm))
    fail_call(call, Category::bad_argument, fmt::format("the norm is {}", norm));
  *static_cast<double*>(outputs[0]->data()) = norm;
}

}  // namespace

void add_total_norm_kernels(KernelTable& table) {
  table.set(&ops::info<ops::TotalNorm>, total_norm, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
