// See engine/anomaly.h.
#include "engine/anomaly.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <fmt/format.h>

#include "engine/autograd.h"
#include "engine/basic_ops.h"
#include "engine/recording.h"

namespace retrograd::inline v0 {
namespace {

Tensor plain(const TensorImpl& cell) {
  RefPtr<TensorImpl> copy = TensorImpl::make();
  copy->alias(cell);
  return Tensor(std::move(copy));
}

bool is_finite(const TensorImpl* cell) {
  if (!cell || cell->graph || !is_floating(cell->dtype()) || !cell->storage()) return true;
  NoGradGuard no_grad;
  Emitter::Scope eager(eager_emitter());
  const Tensor x = plain(*cell);
  return basic::is_finite(is_float8(x.dtype()) ? x.to(kFloat32) : x);
}

// "f32[4] from -1 to 3", "f32[4] with 2 nan, 0 inf, else from -1 to 3"
std::string range_text(const TensorImpl* cell) {
  if (!cell) return "undefined";
  const std::vector<double> values = plain(*cell).to_vector();
  double low = INFINITY, high = -INFINITY;
  size_t nans = 0, infinities = 0;
  for (double v : values) {
    nans += std::isnan(v);
    infinities += std::isinf(v);
    if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  }
  std::string text = to_string(cell->type());
  if (nans || infinities)
    text += fmt::format(" with {} nan and {} inf of {} values", nans, infinities, values.size());
  if (low <= high) text += fmt::format("{} from {} to {}", nans || infinities ? ", else" : "", low, high);
  return text;
}

}  // namespace

void Watcher::emit(const Call& call, Tensor* results) {
  const bool operands_are_finite = std::ranges::all_of(call.operands, is_finite);
  below().emit(call, results);
  if (!operands_are_finite || (call.op->is(Trait::bookkeeping) && call.outputs == 0)) return;
  for (int i = 0; i < call.outputs; ++i) {
    if (is_finite(results[i].get())) continue;
    std::string operands;
    for (const TensorImpl* x : call.operands) operands += (operands.empty() ? "" : "; ") + range_text(x);
    fail(Category::bad_argument, "anomaly",
         fmt::format("result {} of {} is {}. Operands: {}", i, call.op->name, range_text(results[i].get()),
                     operands.empty() ? "none" : operands),
         call.where);
  }
}

void check_leaves(std::span<TensorImpl* const> leaves) {
  for (const TensorImpl* leaf : leaves)
    if (leaf->meta && leaf->meta->grad.defined() && !is_finite(leaf->meta->grad.get()))
      fail(Category::bad_argument, "anomaly",
           fmt::format("before this backward, .grad of a leaf is {}", range_text(leaf->meta->grad.get())));
}

namespace autograd {

namespace {

constinit std::atomic<bool> is_on_everywhere{false};

void refuse_in_recordings(std::string_view what, SourceLocation where) {
  refuse_recording(what, "anomaly mode looks at each result", where);
}

}  // namespace

DetectAnomalyGuard::Scoped DetectAnomalyGuard::checked(bool check_nan, SourceLocation where) {
  refuse_in_recordings("DetectAnomalyGuard", where);
  return {check_nan};
}

DetectAnomalyGuard::DetectAnomalyGuard(bool check_nan, SourceLocation where)
    : guard_(checked(check_nan, where)) {}

bool DetectAnomalyGuard::is_enabled() {
  const Scoped* scoped = OpenScopes<Scoped>::innermost();
  return scoped ? scoped->check_nan : is_on_everywhere.load(std::memory_order_relaxed);
}

void AnomalyMode::set_enabled(bool enabled, bool check_nan, SourceLocation where) {
  refuse_in_recordings("AnomalyMode::set_enabled", where);
  is_on_everywhere.store(enabled && check_nan, std::memory_order_relaxed);
}

}  // namespace autograd
}  // namespace retrograd
