// The actions of a program's hooks and saved-tensor hooks. Everything they see is written to the lines; traceable ones
// consist of tensor functions and write nothing.
#include <fmt/format.h>

#include "tests/fuzz/machine.h"

namespace fuzz {
namespace {

double factor_of(const Step& step) { return step.numbers.empty() ? 0.5 : step.numbers[0]; }

/// Hooks on one gradient that are made of tensor functions.
std::function<Tensor(const Tensor&)> traceable_hook(const Step& step) {
  const double factor = factor_of(step);
  return [factor](const Tensor& g) { return rg::tanh(g) * factor; };
}
Tensors scaled(const Tensors& grads, double factor) {
  Tensors all;
  for (const Tensor& g : grads) all.push_back(g.defined() ? g * factor : g);
  return all;
}

}  // namespace

// What a hook does besides its answer.
void Machine::side_effect(const Step& step, const Tensor& g) {
  if (step.has("throw")) throw HookFailure{step.id};
  if (step.has("remove_self")) handles_[step.id].remove();
  if (step.has("remove_other") && step.inputs.size() == 1) {
    const auto it = handles_.find(step.inputs[0].step);
    if (it != handles_.end()) it->second.remove();
  }
  if (step.has("add") && !step.inputs.empty())
    if (const Tensor* other = find(step.inputs[0]); other && other->requires_grad())
      other->register_hook([this, id = step.id](const Tensor& seen) {
        log(fmt::format("  hook added by v{} {}", id, text_of(seen)));
        return seen * 0.5;
      });
  if (step.has("callback"))
    rg::autograd::queue_callback([this, id = step.id] { log(fmt::format("  callback of v{}", id)); });
  if (step.has("nested") && g.defined()) {
    const rg::EnableGradGuard on;
    const Tensor x = g.detach().clone().requires_grad_();
    rg::sum(rg::tanh(x) * x).backward();
    log(fmt::format("  nested in v{} {}", step.id, text_of(x.grad())));
  }
}

Tensor Machine::run_hook(const Step& step, const Tensor& g) {
  log(fmt::format("  hook v{} {}", step.id, text_of(g)));
  side_effect(step, g);
  if (step.has("misfit")) return rg::unsqueeze(g, 0);
  if (step.has("scale")) return g * factor_of(step);
  if (step.has("same")) return g;
  return {};
}

Tensors Machine::run_list_hook(const Step& step, std::string_view what, const Tensors& grads) {
  std::string line = fmt::format("  {} hook v{}", what, step.id);
  for (const Tensor& g : grads) line += " " + text_of(g);
  log(line);
  side_effect(step, grads.empty() ? Tensor() : grads[0]);
  if (step.has("scale")) return scaled(grads, factor_of(step));
  if (step.has("same")) return grads;
  return {};
}

rg::HookHandle Machine::register_hook(const Step& step, const Tensors& operands) {
  if (operands.empty()) throw MissingArgument();
  const Tensor& t = operands[0];
  const bool traceable = step.has("traceable");
  rg::HookHandle handle;
  if (step.name == "tensor") {
    handle = traceable ? t.register_hook(traceable_hook(step))
                       : t.register_hook([this, step](const Tensor& g) { return run_hook(step, g); });
  } else if (step.name == "pre" || step.name == "accumulate_pre") {
    std::function<Tensors(const Tensors&)> hook = [this, step](const Tensors& g) {
      return run_list_hook(step, "pre", g);
    };
    if (traceable) hook = [](const Tensors& g) { return scaled(g, 0.75); };
    handle =
        step.name == "pre" ? t.grad_fn().register_prehook(hook) : t.register_accumulate_grad_prehook(hook);
  } else if (step.name == "post" || step.name == "accumulate_post") {
    std::function<Tensors(const Tensors&, const Tensors&)> hook = [this, step](const Tensors& in,
                                                                               const Tensors& out) {
      run_list_hook(step, "grad_outputs of post", out);
      return run_list_hook(step, "post", in);
    };
    if (traceable) hook = [](const Tensors& in, const Tensors&) { return scaled(in, 0.75); };
    handle =
        step.name == "post" ? t.grad_fn().register_hook(hook) : t.register_accumulate_grad_posthook(hook);
  } else if (step.name == "post_accumulate") {
    handle = t.register_post_accumulate_grad_hook([this, step](const Tensor& leaf) {
      log(fmt::format("  post_accumulate hook v{} {}", step.id, text_of(leaf.grad())));
      side_effect(step, leaf.grad());
      if (!step.has("step")) return;
      const rg::NoGradGuard no_grad;
      leaf.add_(leaf.grad(), -0.25);
      leaf.set_grad({});
    });
  } else {
    handle = rg::autograd::register_multi_grad_hook(
        operands, [this, step](const Tensors& g) { run_list_hook(step, "multi_grad", g); },
        step.has("any") ? rg::autograd::MultiGradMode::any : rg::autograd::MultiGradMode::all);
  }
  if (traceable) handle.set_traceable();
  return handle;
}

rg::RefPtr<rg::SavedTensorHooks> Machine::make_pair(const Step& step) {
  const auto log_pack = [this, id = step.id](std::string_view what, const Tensor& t) {
    log(fmt::format("  {} of v{} {}", what, id, text_of(t)));
  };
  const auto scale = [](const Tensor& t, double factor) { return t.is_floating_point() ? t * factor : t; };
  if (step.has("traceable_pair"))
    return rg::saved_tensor_hooks([scale](const Tensor& t) { return scale(t, 0.5); },
                                  [scale](const Tensor& t) { return scale(t, 2.5); }, true);
  if (step.has("two_tensors")) {
    using Payload = std::tuple<Tensor, Tensor, int64_t>;
    return rg::saved_tensor_hooks(
        [scale, id = step.id](const Tensor& t) {
          return Payload(scale(t, 0.5), t.is_floating_point() ? t.to(rg::kFloat64) : Tensor(), id % 3);
        },
        [scale](const Payload& p) {
          const auto& [half, whole, factor] = p;
          return whole.defined() ? half * static_cast<double>(factor) + whole.to(half.dtype()) : half;
        },
        true);
  }
  if (step.has("half"))
    return rg::saved_tensor_hooks(
        [log_pack](const Tensor& t) {
          log_pack("pack", t);
          return std::pair(t.is_floating_point() ? t.to(rg::kFloat16) : t, t.dtype());
        },
        [log_pack](const std::pair<Tensor, rg::ScalarType>& p) {
          log_pack("unpack", p.first);
          return p.first.to(p.second);
        });
  if (step.has("offload"))
    return rg::save_on_cpu(true, {}, {.nodes = step.id % 5, .room_bytes = step.id % 3 ? 1 << 20 : 0});
  const bool fails = step.has("failing");
  return rg::saved_tensor_hooks(
      [log_pack, scale](const Tensor& t) {
        log_pack("pack", t);
        return scale(t, 3);
      },
      [log_pack, scale, fails, id = step.id](const Tensor& t) {
        log_pack("unpack", t);
        if (fails) throw HookFailure{id};
        return scale(t, 0.25);
      });
}

}  // namespace fuzz
