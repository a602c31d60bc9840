// See hooks/checkpoint.h; engine/region.h has the mechanism.
#include "hooks/checkpoint.h"

#include <fmt/format.h>

#include "engine/emitter.h"
#include "engine/region_log.h"

namespace retrograd::inline v0 {

namespace detail {

CheckpointScope::CheckpointScope(const CheckpointOptions& options, SourceLocation where) {
  if (!GradMode::is_enabled() || Emitter::current().values() == Emitter::Values::of_backward) return;
  const auto* const overridden = OpenScopes<CheckpointEarlyStopGuard::Setting>::innermost();
  log_ = std::make_unique<RegionLog>(overridden ? overridden->enabled : options.early_stop, where);
}

CheckpointScope::~CheckpointScope() = default;

void CheckpointScope::pass(const Tensor& input) {
  if (log_ && input.defined()) log_->pass(input.impl());
}

void CheckpointScope::close() {
  if (log_) log_->close();
}

}  // namespace detail

GraphExecGroup::GraphExecGroup(SourceLocation where) : group_(std::make_unique<RecomputeGroup>(where)) {}
GraphExecGroup::~GraphExecGroup() = default;

RecomputeStats recompute_stats() {
  return {recompute_counters.regions.load(std::memory_order_relaxed),
          recompute_counters.calls.load(std::memory_order_relaxed),
          recompute_counters.recomputed.load(std::memory_order_relaxed)};
}

// PyTorch: segments of functions.size() / segments functions, the rest in the last one.
Tensor checkpoint_sequential(const std::vector<std::function<Tensor(const Tensor&)>>& functions,
                             int64_t segments, Tensor input, const CheckpointOptions& options,
                             SourceLocation where) {
  const auto count = static_cast<int64_t>(functions.size());
  if (segments < 1 || segments > count)
    fail(Category::bad_argument, "checkpoint_sequential",
         fmt::format("{} segments of {} functions", segments, count), where);
  for (const auto& function : functions)
    require_function(static_cast<bool>(function), "checkpoint_sequential", where);
  const auto apply = [&](int64_t begin, int64_t end, Tensor x) {
    for (int64_t i = begin; i < end; ++i) x = functions[static_cast<size_t>(i)](x);
    return x;
  };
  const int64_t length = count / segments;
  int64_t begin = 0;
  for (; begin + length < count && begin / length + 1 < segments; begin += length)
    input =
        checkpoint([&](const Tensor& x) { return apply(begin, begin + length, x); }, input, options, where);
  return apply(begin, count, std::move(input));
}

}  // namespace retrograd
