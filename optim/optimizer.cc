// The common code of optimizers that does not depend on their algorithm. See optim/optimizer.h.
#include "optim/optimizer.h"

#include <unordered_set>

#include <fmt/format.h>

#include "ops/shape_ops.h"

namespace retrograd::inline v0::optim {

void Optimizer::zero_grad(bool set_to_none) {
  NoGradGuard no_grad;
  for (const Tensor& param : parameters()) {
    if (set_to_none)
      param.set_grad({});
    else if (param.grad().defined())
      param.grad().zero_();
  }
}

namespace detail {

void check_params(const Tensors& params, std::string_view optimizer, SourceLocation where) {
  if (params.empty()) fail(Category::bad_argument, optimizer, "there is no parameter", where);
  std::unordered_set<const TensorImpl*> seen;
  for (const Tensor& p : params) {
    if (!p.defined()) fail(Category::bad_argument, optimizer, "a parameter is undefined", where);
    if (!ops::may_be_updated(p.dtype()))
      fail(Category::dtype_mismatch, optimizer,
           fmt::format("parameters are float32, float64, bfloat16 or float16, one is {}", describe(p)),
           where);
    if (!p.is_leaf())
      fail(Category::bad_argument, optimizer, fmt::format("{} is not a leaf", describe(p)), where);
    if (!p.is_contiguous())
      fail(Category::bad_argument, optimizer,
           fmt::format("{} is not contiguous. Hint: clone it before it becomes a leaf", describe(p)), where);
    if (!seen.insert(p.get()).second)
      fail(Category::bad_argument, optimizer, fmt::format("{} is twice among the parameters", describe(p)),
           where);
  }
}

void need_state(Tensor& state, const Tensor& param) {
  if (state.defined()) return;
  Emitter::Scope now(eager_runner());
  state = zeros(param.sizes(), {param.dtype(), param.device()});
}

void take_over(Tensor& now, const Tensor& loaded) {
  if (!now.defined())
    now = loaded;
  else if (loaded.defined())
    now.copy_(loaded);
  else
    now.zero_();
}

namespace {
// The largest step count that a double represents exactly; numbers that depend on the step are computed in double.
constexpr int64_t kMostSteps = int64_t{1} << 53;
std::string key_of(size_t index, std::string_view name) { return fmt::format("{}.{}", index, name); }
}  // namespace

void save_state(StateDict& out, size_t index, std::string_view name, const Tensor& value) {
  if (value.defined()) out.emplace(key_of(index, name), value);
}

Tensor take_state(StateDict& rest, size_t index, std::string_view name, const Tensor& param,
                  SourceLocation where) {
  const auto it = rest.find(key_of(index, name));
  if (it == rest.end()) return {};
  const Tensor value = it->second;
  if (value.sizes() != param.sizes() || value.dtype() != param.dtype())
    fail(value.dtype() == param.dtype() ? Category::shape_mismatch : Category::dtype_mismatch,
         "load_state_dict",
         fmt::format("{} for \"{}\" of a parameter {}", describe(value), it->first, describe(param)), where);
  rest.erase(it);
  return value.device() == param.device() ? clone(value) : value.to(param.device(), where);
}

std::optional<int64_t> take_step(StateDict& rest, size_t index, SourceLocation where) {
  const auto it = rest.find(key_of(index, "step"));
  if (it == rest.end()) return {};
  const int64_t step = it->second.item<int64_t>(where);
  if (step < 0 || step >= kMostSteps)
    fail(Category::bad_argument, "load_state_dict",
         fmt::format("\"{}\" is {}: it counts steps", it->first, step), where);
  rest.erase(it);
  return step;
}

void fail_without_step(size_t index, SourceLocation where) {
  fail(Category::bad_argument, "load_state_dict",
       fmt::format("there is state of parameter {} but no \"{}\", which it depends on", index,
                   key_of(index, "step")),
       where);
}

void fail_unknown_key(std::string_view key, SourceLocation where) {
  fail(Category::bad_argument, "load_state_dict", fmt::format("\"{}\" is not a state of this optimizer", key),
       where);
}

OnlyStep::OnlyStep(std::atomic<bool>& is_running, std::string_view optimizer, SourceLocation where)
    : is_running_(is_running) {
  if (is_running.exchange(true))
    fail(Category::bad_argument, optimizer,
         "another step of this optimizer is running. Hint: one thread at a time may use an optimizer", where);
}

void fail_gone(std::string_view optimizer) {
  fail(Category::bad_argument, optimizer,
       "a recorded function steps an optimizer that no longer exists. Hint: make the optimizer outside the "
       "function",
       {});
}

}  // namespace detail
}  // namespace retrograd::optim
