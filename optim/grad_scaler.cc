// See optim/grad_scaler.h.
#include "optim/grad_scaler.h"

#include <fmt/format.h>

#include "engine/recording.h"
#include "engine/runner.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/creation.h"
#include "ops/ternary.h"
#include "ops/total_norm.h"
#include "ops/unary.h"
#include "optim/saved_values.h"

namespace retrograd::inline v0::optim {
namespace {

constexpr std::string_view kScaler = "GradScaler";

Tensor scaler_number(double value, Device device) { return full({}, value, {kFloat32, device}); }

void check_scaling(const GradScalerOptions& o, SourceLocation where) {
  const auto require = [&](bool holds, std::string_view what, double value) {
    if (!holds) fail(Category::bad_argument, kScaler, fmt::format("{}, it is {}", what, value), where);
  };
  require(o.init_scale > 0, "init_scale must be above 0", o.init_scale);
  require(o.growth_factor > 1, "growth_factor must be above 1", o.growth_factor);
  require(o.backoff_factor > 0 && o.backoff_factor < 1, "backoff_factor must be in (0, 1)", o.backoff_factor);
  require(o.growth_interval > 0, "growth_interval must be above 0", static_cast<double>(o.growth_interval));
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options, SourceLocation where)
    : options_(std::make_shared<GradScalerOptions>(options)) {
  check_scaling(options, where);
  const Emitter::Scope now(eager_runner());
  scale_ = scaler_number(options.init_scale, options.device);
  tracker_ = scaler_number(0, options.device);
}

GradScaler::OfOptimizer& GradScaler::entry(Optimizer& optimizer, SourceLocation where) {
  OfOptimizer& entry = optimizers_[&optimizer];
  if (!entry.found_inf.defined()) {
    for (const Tensor& p : optimizer.parameters())
      if (!(p.device() == options().device))
        fail(Category::bad_argument, kScaler,
             "a parameter is on another device. Hint: GradScalerOptions::device", where);
    const Emitter::Scope now(eager_runner());
    entry.found_inf = scaler_number(0, options().device);
  }
  return entry;
}

// A 16-bit loss is scaled in float32: the factor may exceed its range.
Tensor GradScaler::scale(const Tensor& loss) const {
  if (!options().enabled) return loss;
  return mul(element_size(loss.dtype()) < 4 ? loss.to(kFloat32) : loss,
             to(scale_, loss.dtype() == kFloat64 ? kFloat64 : kFloat32));
}

void GradScaler::unscale_(Optimizer& optimizer, SourceLocation where) {
  if (!options().enabled) return;
  OfOptimizer& of = entry(optimizer, where);
  if (of.stage != Stage::ready)
    fail(Category::bad_argument, kScaler,
         of.stage == Stage::unscaled ? "gradients are unscaled already since the last update()"
                                     : "the optimizer has stepped already since the last update()",
         where);
  NoGradGuard no_grad;
  Tensors gradients;
  for (const Tensor& p : optimizer.parameters())
    if (p.grad().defined()) {
      if (!p.grad().is_contiguous()) p.set_grad(p.grad().contiguous());
      gradients.push_back(p.grad());
    }
  if (gradients.empty()) fail(Category::bad_argument, kScaler, "no parameter has a gradient", where);
  const Tensor largest = total_norm(gradients, std::numeric_limits<double>::infinity(), false, where);
  of.found_inf.copy_(to(logical_not(isfinite(largest)), kFloat32));
  const Tensor inverse = reciprocal(to(scale_, kFloat64));
  for (const Tensor& g : gradients) {
    if (element_size(g.dtype()) < 4)  // where the inverse may not be a normal number
      g.copy_(g.to(kFloat32) * to(inverse, kFloat32));
    else
      g.mul_(to(inverse, g.dtype()));
  }
  of.stage = Stage::unscaled;
}

void GradScaler::step(Optimizer& optimizer, SourceLocation where) {
  if (!options().enabled) return optimizer.step(where);
  OfOptimizer& of = entry(optimizer, where);
  if (of.stage == Stage::stepped)
    fail(Category::bad_argument, kScaler, "the optimizer has stepped already since the last update()", where);
  if (of.stage == Stage::ready) unscale_(optimizer, where);
  optimizer.step_unless(of.found_inf, where);
  of.stage = Stage::stepped;
}

void GradScaler::update(SourceLocation where) {
  if (!options().enabled) return;
  NoGradGuard no_grad;
  if (FunctionRecording* const function = recorded_function())
    function->depends_on(
        [shared = options_, now = options()] {
          return shared->growth_factor == now.growth_factor && shared->backoff_factor == now.backoff_factor &&
                 shared->growth_interval == now.growth_interval;
        },
        "options of a GradScaler have changed");
  Tensor found;
  for (auto& [optimizer, of] : optimizers_) {
    if (of.stage == Stage::ready) continue;
    found = found.defined() ? maximum(found, of.found_inf) : of.found_inf;
  }
  if (!found.defined())
    fail(Category::bad_argument, kScaler, "no gradients were unscaled since the last update()", where);
  const Tensor is_bad = ne(found, 0), count = tracker_ + 1;
  const Tensor grows = eq(count, static_cast<double>(options().growth_interval));
  const Tensor grown = scale_ * options().growth_factor;
  const Tensor larger = retrograd::where(logical_and(grows, isfinite(grown)), grown, scale_);
  scale_.copy_(retrograd::where(is_bad, scale_ * options().backoff_factor, larger));
  tracker_.copy_(retrograd::where(logical_or(is_bad, grows), zeros({}, {kFloat32, options().device}), count));
  for (auto& [optimizer, of] : optimizers_) of.stage = Stage::ready;
}

void GradScaler::update(double new_scale, SourceLocation where) {
  if (!options().enabled) return;
  if (!(new_scale > 0))
    fail(Category::bad_argument, kScaler, fmt::format("the scale must be above 0, it is {}", new_scale),
         where);
  scale_.fill_(new_scale);
  for (auto& [optimizer, of] : optimizers_) of.stage = Stage::ready;
}

double GradScaler::get_scale() const { return options().enabled ? scale_.item<double>() : 1; }

bool GradScaler::was_skipped(const Optimizer& optimizer) const {
  const auto it = optimizers_.find(&optimizer);
  return it != optimizers_.end() && it->second.found_inf.item<double>() != 0;
}

StateDict GradScaler::state_dict() const {
  StateDict out;
  if (!options().enabled) return out;
  const auto add = [&](std::string_view key, double value) {
    out.emplace(key, scalar_tensor(value, {kFloat64}));
  };
  add("scale", get_scale());
  add("growth_factor", options().growth_factor);
  add("backoff_factor", options().backoff_factor);
  out.emplace("growth_interval", scalar_tensor(options().growth_interval, {kInt64}));
  out.emplace("_growth_tracker", scalar_tensor(static_cast<int64_t>(tracker_.item<double>()), {kInt64}));
  return out;
}

void GradScaler::load_state_dict(const StateDict& state, SourceLocation where) {
  if (!options().enabled) return;
  detail::SavedValues saved(state, "a GradScaler", where);
  const double scale = saved.number("scale"), growth = saved.number("growth_factor"),
               backoff = saved.number("backoff_factor"), interval = saved.number("growth_interval"),
               tracker = saved.number("_growth_tracker");
  saved.end();
  GradScalerOptions loaded = options();
  loaded.growth_factor = growth, loaded.backoff_factor = backoff;
  loaded.growth_interval = static_cast<int64_t>(interval);
  check_scaling(loaded, where);
  update(scale, where);
  *options_ = loaded;
  tracker_.fill_(tracker);
}

}  // namespace retrograd::optim
