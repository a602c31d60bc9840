// Statements that register and remove hooks. Each hook logs its event, may bind the gradient that it saw
// (`save`), then acts on it.
#include "engine/autograd.h"
#include "engine/node.h"
#include "engine/tape.h"
#include "ops/arithmetic.h"
#include "ops/shape_ops.h"
#include "tests/conformance/interpreter.h"
#include "tests/conformance/saved_tensor_kinds.h"

namespace retrograd::conformance {
namespace {

using GradientAction = std::function<Tensor(const Tensor&)>;

/// The gradient after an action; undefined if unchanged.
GradientAction gradient_action(const Json& action, const Environment& names) {
  const std::string& kind = action["kind"].get_ref<const std::string&>();
  if (kind == "log") return [](const Tensor&) { return Tensor(); };
  if (kind == "scale")
    return [factor = to_scalar(action["factor"])](const Tensor& g) { return mul(g, factor); };
  if (kind == "add") return [value = to_scalar(action["value"])](const Tensor& g) { return add(g, value); };
  if (kind == "replace") return [tensor = names.get(action["tensor"])](const Tensor&) { return tensor; };
  if (kind == "mul")
    return [tensor = names.get(action["tensor"])](const Tensor& g) { return mul(g, tensor); };
  throw BadManifest("no action \"" + kind + "\" on a gradient");
}

/// The same for each defined gradient of a tuple; an empty list if unchanged.
std::function<Tensors(const Tensors&)> tuple_action(const Json& action, const Environment& names) {
  if (action["kind"] == "log") return [](const Tensors&) { return Tensors(); };
  return [act = gradient_action(action, names)](const Tensors& gradients) {
    Tensors changed;
    for (const Tensor& g : gradients) changed.push_back(g.defined() ? act(g) : g);
    return changed;
  };
}

/// What an action does to a leaf whose gradient was accumulated.
std::function<void(const Tensor&)> leaf_action(const Json& action) {
  const std::string& kind = action["kind"].get_ref<const std::string&>();
  if (kind == "log") return [](const Tensor&) {};
  if (kind == "scale")
    return [factor = to_scalar(action["factor"])](const Tensor& leaf) { leaf.grad().mul_(factor); };
  if (kind == "clear") return [](const Tensor& leaf) { leaf.set_grad({}); };
  if (kind == "sgd")
    return [lr = to_scalar(action["lr"]).to_double()](const Tensor& leaf) {
      const NoGradGuard no_grad;
      leaf.add_(leaf.grad(), -lr);
      leaf.set_grad({});
    };
  throw BadManifest("no action \"" + kind + "\" after accumulation");
}

std::string optional_text(const Json& statement, const char* field) {
  const Json* value = find(statement, field);
  return value ? value->get<std::string>() : std::string();
}

}  // namespace

void Interpreter::keep_handle(const Json& statement, HookHandle handle) {
  if (!hooks_.emplace(statement["id"], std::move(handle)).second)
    throw BadManifest("hook id " + statement["id"].dump() + " is taken");
}

void Interpreter::remove_hook(const Json& statement, const std::string&) {
  const auto it = hooks_.find(statement["id"].get_ref<const std::string&>());
  if (it == hooks_.end()) throw BadManifest("no hook has the id " + statement["id"].dump());
  it->second.remove();
}

void Interpreter::tensor_hook(const Json& statement, const std::string&) {
  const std::string event = "hook " + statement["id"].get<std::string>(), var = statement["var"],
                    save = optional_text(statement, "save");
  const Tensor& tensor = names_.get(var);
  auto hook = [this, event, var, save, is_leaf = tensor.is_leaf(),
               act = gradient_action(statement["action"], names_)](const Tensor& gradient) {
    if (is_leaf)
      events_.add_leaf(event, var);
    else
      events_.add(event);
    if (!save.empty()) names_.rebind(save, gradient);
    return act(gradient);
  };
  keep_handle(statement, tensor.register_hook(std::move(hook)));
}

void Interpreter::post_accumulate_grad_hook(const Json& statement, const std::string&) {
  const std::string event = "post_acc " + statement["id"].get<std::string>(), var = statement["var"];
  auto hook = [this, event, var, save = optional_text(statement, "save"),
               act = leaf_action(statement["action"])](const Tensor& leaf) {
    events_.add_leaf(event, var);
    if (!save.empty()) names_.rebind(save, clone(leaf.grad()));
    act(leaf);
  };
  keep_handle(statement, names_.get(var).register_post_accumulate_grad_hook(std::move(hook)));
}

void Interpreter::node_pre_hook(const Json& statement, const std::string&) {
  const std::string event = "pre " + statement["id"].get<std::string>();
  auto hook = [this, event, act = tuple_action(statement["action"], names_)](const Tensors& grad_outputs) {
    events_.add(event);
    return act(grad_outputs);
  };
  keep_handle(statement, names_.get(statement["var"]).grad_fn().register_prehook(std::move(hook)));
}

void Interpreter::node_post_hook(const Json& statement, const std::string&) {
  const std::string event = "post " + statement["id"].get<std::string>();
  auto hook = [this, event, act = tuple_action(statement["action"], names_)](const Tensors& grad_inputs,
                                                                             const Tensors&) {
    events_.add(event);
    return act(grad_inputs);
  };
  keep_handle(statement, names_.get(statement["var"]).grad_fn().register_hook(std::move(hook)));
}

void Interpreter::multi_grad_hook(const Json& statement, const std::string&) {
  const std::string id = statement["id"];
  const Tensors vars = names_.get_all(statement["vars"]);
  const bool any = statement["mode"] == "any";
  if (!any && statement["mode"] != "all") throw BadManifest("no multi hook mode " + statement["mode"].dump());
  bool has_leaf = false;
  for (const Tensor& var : vars) has_leaf |= var.is_leaf();
  auto hook = [this, id, any, has_leaf](const Tensors& gradients) {
    std::string reached;
    for (const Tensor& g : gradients) reached += g.defined() ? '1' : '0';
    const std::string event = "multi " + id + " " + (any ? "any" : reached);
    if (has_leaf)
      events_.add_leaf_multi(event, id);
    else
      events_.add(event);
  };
  const auto mode = any ? autograd::MultiGradMode::any : autograd::MultiGradMode::all;
  keep_handle(statement, autograd::register_multi_grad_hook(vars, std::move(hook), mode));
}

void Interpreter::saved_tensors_hooks(const Json& statement, const std::string& path) {
  const SavedTensorHooksGuard scope(saved_tensor_kind(statement, events_));
  run(statement["body"], path + ".body");
}

}  // namespace retrograd::conformance
