// See optim/lbfgs.h.
#include "optim/lbfgs.h"

#include <cmath>

#include <fmt/format.h>

#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/creation.h"
#include "ops/join.h"
#include "ops/linalg.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "optim/line_search.h"
#include "optim/param_state.h"
#include "optim/saved_values.h"

namespace retrograd::inline v0::optim {
namespace {

constexpr std::string_view kName = "LBFGS";

double largest(const Tensor& x) { return x.numel() == 0 ? 0 : max(abs(x)).item<double>(); }
double dot_of(const Tensor& a, const Tensor& b) { return dot(a, b).item<double>(); }

Tensors copies_of(const Tensors& params) {
  Tensors copies;
  for (const Tensor& p : params) copies.push_back(clone(p));
  return copies;
}

void copy_to(const Tensors& params, const Tensors& values) {
  for (size_t i = 0; i < params.size(); ++i) params[i].copy_(values[i]);
}

void check(const LBFGSOptions& o, SourceLocation where) {
  const auto refuse = [&](std::string_view what, auto value, std::string_view domain) {
    fail(Category::bad_argument, kName, fmt::format("{} must be {}, it is {}", what, domain, value), where);
  };
  if (!(o.lr >= 0)) refuse("lr", o.lr, "at least 0");
  if (o.max_iter < 1) refuse("max_iter", o.max_iter, "at least 1");
  if (o.max_eval && *o.max_eval < 1) refuse("max_eval", *o.max_eval, "at least 1");
  if (o.history_size < 1) refuse("history_size", o.history_size, "at least 1");
}

void visit_options(void* options, detail::OptionVisitor& visitor) {
  auto& o = *static_cast<LBFGSOptions*>(options);
  visitor.numbers("lr", {&o.lr, 1}, ops::kNotNegative);
  visitor.count("max_iter", o.max_iter, ops::Domain{1, ops::kUnlimited});
  visitor.count("history_size", o.history_size, ops::Domain{1, ops::kUnlimited});
  visitor.numbers("tolerance_grad", {&o.tolerance_grad, 1}, ops::kNotNegative);
  visitor.numbers("tolerance_change", {&o.tolerance_change, 1}, ops::kNotNegative);
  visitor.flag("maximize", o.maximize);
  visitor.choice("line_search_fn", static_cast<int64_t>(o.line_search_fn));
}

// It is no update rule: this is for its options to be saved and loaded as those of a rule are.
constexpr detail::RuleInfo kOptionsInfo = [] {
  detail::RuleInfo info{};
  info.name = kName;
  info.visit = visit_options;
  info.refuse = [](const void*) -> const char* { return nullptr; };
  return info;
}();
constexpr std::string_view kMaxEval = "param_groups.0.max_eval";  // as PyTorch: the number in effect

int64_t max_eval_of(const LBFGSOptions& o) { return o.max_eval.value_or(o.max_iter * 5 / 4); }

}  // namespace

LBFGS::LBFGS(Tensors params, LBFGSOptions given, SourceLocation where)
    : options(given), params_(std::move(params)) {
  check(options, where);
  detail::check_params(params_, kName, where);
  for (const Tensor& p : params_)
    if (p.dtype() != params_[0].dtype() || !(p.device() == params_[0].device()))
      fail(Category::dtype_mismatch, kName, "parameters are not of one dtype and on one device", where);
}

void LBFGS::step(SourceLocation where) {
  fail(Category::bad_argument, kName,
       "a step needs a closure, which it calls several times. Hint: step([&] { ...; return loss; })", where);
}

OptimizerParamGroup LBFGS::param_group(size_t index) {
  if (index > 0) fail(Category::bad_argument, kName, "there is one parameter group", {});
  return {kName, params_, initial_lr_, &options, visit_options};
}

double LBFGS::evaluate(const LossClosure& closure, Tensor* out) {
  EnableGradGuard enable_grad;
  const Tensor loss = closure();
  if (out) *out = loss;
  ++state_.func_evals;
  return options.maximize ? -loss.item<double>() : loss.item<double>();
}

// A parameter without a gradient counts as one whose gradient is 0.
Tensor LBFGS::flat_gradient() const {
  Tensors parts;
  for (const Tensor& p : params_)
    parts.push_back(reshape(p.grad().defined() ? p.grad() : zeros_like(p), {p.numel()}));
  const Tensor flat = cat(parts, 0);
  return options.maximize ? -flat : flat;
}

void LBFGS::move(double t, const Tensor& direction) const {
  int64_t begin = 0;
  for (const Tensor& p : params_) {
    p.add_(narrow(direction, 0, begin, p.numel()).view(p.sizes()), t);
    begin += p.numel();
  }
}

// By the two-loop recursion (Nocedal and Wright 2006, algorithm 7.4).
void LBFGS::update_direction(const Tensor& gradient) {
  State& s = state_;
  const Tensor y = gradient - s.prev_flat_grad, step = s.d * s.t;
  const double ys = dot_of(y, step);
  if (ys > 1e-10) {
    if (static_cast<int64_t>(s.changes.size()) >= options.history_size) s.changes.pop_front();
    s.changes.push_back({y, step, 1 / ys});
    s.H_diag = ys / dot_of(y, y);
  }
  Tensor q = -gradient;
  std::vector<double> al(s.changes.size());
  for (size_t i = s.changes.size(); i-- > 0;) {
    al[i] = dot_of(s.changes[i].params, q) * s.changes[i].ro;
    q.add_(s.changes[i].gradient, -al[i]);
  }
  q.mul_(s.H_diag);
  for (size_t i = 0; i < s.changes.size(); ++i)
    q.add_(s.changes[i].params, al[i] - dot_of(s.changes[i].gradient, q) * s.changes[i].ro);
  s.d = q;
}

// Returns the loss at the point found, `gradient` is that there, and state_.t its distance.
double LBFGS::search_line(const LossClosure& closure, double loss, Tensor& gradient, double slope,
                          int64_t most, int64_t& evaluations) {
  const Tensor direction = state_.d;
  const Tensors begin = copies_of(params_);
  const auto at = [&](double t) -> detail::LinePoint {
    move(t, direction);
    const double now = evaluate(closure);
    const Tensor g = flat_gradient();
    copy_to(params_, begin);
    return {t, now, g, dot_of(g, direction)};
  };
  const detail::LineSearch search =
      detail::strong_wolfe(at, {0, loss, gradient, slope}, state_.t, largest(direction), most);
  evaluations += search.evaluations;
  state_.t = search.found.t;
  gradient = search.found.gradient;
  return search.found.loss;
}

Tensor LBFGS::step(const LossClosure& closure, SourceLocation where) {
  refuse_recording(kName, "how often it calls its closure depends on losses", where);
  check(options, where);
  NoGradGuard no_grad;
  const State before = state_;
  const Tensors begin = copies_of(params_);
  try {
    return iterate(closure);
  } catch (...) {
    state_ = before;
    copy_to(params_, begin);
    throw;
  }
}

Tensor LBFGS::iterate(const LossClosure& closure) {
  const int64_t max_eval = max_eval_of(options);
  State& s = state_;
  Tensor first;
  double loss = evaluate(closure, &first);
  int64_t evaluations = 1;
  Tensor gradient = flat_gradient();
  if (largest(gradient) <= options.tolerance_grad) return first;
  for (int64_t iteration = 1; iteration <= options.max_iter; ++iteration) {
    const bool is_first = ++s.n_iter == 1;
    if (is_first)
      s.d = -gradient;
    else
      update_direction(gradient);
    s.prev_flat_grad = clone(gradient);
    s.prev_loss = loss;
    s.t = is_first ? std::min(1.0, 1 / sum(abs(gradient)).item<double>()) * options.lr : options.lr;
    const double slope = dot_of(gradient, s.d);
    if (slope > -options.tolerance_change) break;
    if (options.line_search_fn == LineSearchFn::strong_wolfe)
      loss = search_line(closure, loss, gradient, slope, max_eval - evaluations, evaluations);
    move(s.t, s.d);
    if (iteration == options.max_iter) break;
    if (options.line_search_fn == LineSearchFn::none) {
      loss = evaluate(closure);
      gradient = flat_gradient();
      ++evaluations;
    }
    if (evaluations >= max_eval || largest(gradient) <= options.tolerance_grad) break;
    if (largest(s.d) * std::abs(s.t) <= options.tolerance_change) break;
    if (std::abs(loss - s.prev_loss) < options.tolerance_change) break;
  }
  return first;
}

StateDict LBFGS::state_dict() const {
  StateDict out;
  LBFGSOptions present = options;
  detail::save_options(out, 0, kOptionsInfo, &present, initial_lr_);
  out.emplace(kMaxEval, scalar_tensor(max_eval_of(options), {kInt64}));
  if (state_.func_evals == 0) return out;
  out.emplace("0.func_evals", scalar_tensor(state_.func_evals, {kInt64}));
  out.emplace("0.n_iter", scalar_tensor(state_.n_iter, {kInt64}));
  if (!state_.d.defined()) return out;
  out.emplace("0.d", state_.d);
  out.emplace("0.prev_flat_grad", state_.prev_flat_grad);
  out.emplace("0.t", scalar_tensor(state_.t, {kFloat64}));
  out.emplace("0.prev_loss", scalar_tensor(state_.prev_loss, {kFloat64}));
  out.emplace("0.H_diag", scalar_tensor(state_.H_diag, {kFloat64}));
  for (size_t i = 0; i < state_.changes.size(); ++i) {
    out.emplace(fmt::format("0.old_dirs.{}", i), state_.changes[i].gradient);
    out.emplace(fmt::format("0.old_stps.{}", i), state_.changes[i].params);
    out.emplace(fmt::format("0.ro.{}", i), scalar_tensor(state_.changes[i].ro, {kFloat64}));
  }
  return out;
}

void LBFGS::load_state_dict(const StateDict& state, SourceLocation where) {
  NoGradGuard no_grad;
  detail::SavedValues saved(state, "this optimizer", where);
  LBFGSOptions loaded_options = options;
  std::optional<double> loaded_initial_lr = initial_lr_;
  detail::take_options(saved, 0, kOptionsInfo, &loaded_options, loaded_initial_lr);
  if (const auto max_eval = saved.find_number<int64_t>(kMaxEval)) loaded_options.max_eval = max_eval;
  check(loaded_options, where);
  int64_t numel = 0;
  for (const Tensor& p : params_) numel += p.numel();
  const auto take_vector = [&](const std::string& key) {
    const Tensor value = saved.take(key);
    if (value.sizes() != IntArray{numel} || value.dtype() != params_[0].dtype())
      fail(Category::shape_mismatch, "load_state_dict",
           fmt::format("{} for \"{}\" of parameters with {} elements", describe(value), key, numel), where);
    return clone(value.to(params_[0].device()));
  };
  State loaded;
  if (!saved.empty()) {
    loaded.func_evals = saved.count("0.func_evals");
    loaded.n_iter = saved.count("0.n_iter");
  }
  if (!saved.empty()) {
    loaded.d = take_vector("0.d");
    loaded.prev_flat_grad = take_vector("0.prev_flat_grad");
    loaded.t = saved.number("0.t");
    loaded.prev_loss = saved.number("0.prev_loss");
    loaded.H_diag = saved.number("0.H_diag");
  }
  for (size_t i = 0; saved.rest().contains(fmt::format("0.ro.{}", i)); ++i)
    loaded.changes.push_back({take_vector(fmt::format("0.old_dirs.{}", i)),
                              take_vector(fmt::format("0.old_stps.{}", i)),
                              saved.number(fmt::format("0.ro.{}", i))});
  saved.end();
  options = loaded_options;
  initial_lr_ = loaded_initial_lr;
  state_ = std::move(loaded);
}

}  // namespace retrograd::optim
