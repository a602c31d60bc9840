// See nn/module.h.
#include "nn/module.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/recording.h"

namespace retrograd::inline v0::nn {

Parameter::Parameter(Module* owner, std::string name, const Tensor& value) : Tensor(value) {
  if (!value.defined()) return;
  requires_grad_();
  owner->check_name(name);
  owner->parameters_.emplace_back(std::move(name), this);
}

Module::Module(Module* parent, std::string name) {
  if (!parent) return;
  parent->check_name(name);
  parent->children_.emplace_back(std::move(name), this);
  parent_ = parent;
}

Module::~Module() {
  for (const auto& [name, child] : children_) child->parent_ = nullptr;
  if (parent_) std::erase_if(parent_->children_, [&](const auto& child) { return child.second == this; });
}

void Module::check_name(std::string_view name) const {
  if (name.empty() || name.find('.') != name.npos)
    throw Error(
        Category::bad_argument,
        fmt::format("Module: \"{}\" is not a name for a member: it must not be empty or have a dot", name));
  const auto is_it = [&](const auto& member) { return member.first == name; };
  if (std::any_of(parameters_.begin(), parameters_.end(), is_it) ||
      std::any_of(children_.begin(), children_.end(), is_it))
    throw Error(Category::bad_argument, fmt::format("Module: there is a member \"{}\" already", name));
}

void Module::collect(const std::string& prefix, Members& out) const {
  for (const auto& [name, parameter] : parameters_) out.emplace_back(prefix + name, parameter);
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", out);
}

Module::Members Module::members() const {
  Members all;
  collect("", all);
  return all;
}

std::vector<NamedParameter> Module::named_parameters() const {
  std::vector<NamedParameter> all;
  for (auto& [name, parameter] : members()) all.push_back({std::move(name), *parameter});
  return all;
}

Tensors Module::parameters() const {
  Tensors all;
  for (const NamedParameter& p : named_parameters()) all.push_back(p.tensor);
  return all;
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const NamedParameter& p : named_parameters()) count += p.tensor.numel();
  return count;
}

// A destroyed module is not queried again.
bool Module::is_training() const {
  if (FunctionRecording* function = recorded_function())
    function->depends_on(
        [now = std::weak_ptr(training_), was = *training_] {
          const std::shared_ptr<bool> training = now.lock();
          return !training || *training == was;
        },
        "a module was switched between training and use");
  return *training_;
}

void Module::train(bool on) {
  *training_ = on;
  for (const auto& [name, child] : children_) child->train(on);
}

void Module::zero_grad(bool set_to_none) {
  NoGradGuard no_grad;
  for (const NamedParameter& p : named_parameters()) {
    if (set_to_none)
      p.tensor.set_grad({});
    else if (p.tensor.grad().defined())
      p.tensor.grad().zero_();
  }
}

void Module::to(Device device, SourceLocation where) {
  convert([&](const Tensor& x) { return x.to(device, where); }, where);
}

void Module::to(ScalarType dtype, SourceLocation where) {
  if (!is_floating(dtype))
    fail(Category::dtype_mismatch, "Module::to",
         fmt::format("parameters have gradients, and {} is not a floating dtype", name(dtype)), where);
  convert([&](const Tensor& x) { return x.to(dtype, where); }, where);
}

void Module::convert(const std::function<Tensor(const Tensor&)>& convert, SourceLocation where) {
  NoGradGuard no_grad;
  struct Converted {
    Tensor parameter, value, grad;
  };
  std::vector<Converted> all;
  for (const Tensor& p : parameters()) {
    const Tensor grad = p.grad();
    all.push_back({p, convert(p.detach()), grad.defined() ? convert(grad) : grad});
  }
  for (const auto& [parameter, value, grad] : all) {
    parameter.impl().alias(value.impl());
    if (grad.defined()) parameter.set_grad(grad, where);
  }
}

StateDict Module::state_dict() const {
  StateDict state;
  for (const NamedParameter& p : named_parameters()) state.emplace(p.name, p.tensor.detach());
  return state;
}

void Module::load_state_dict(const StateDict& state, bool strict, SourceLocation where) {
  const std::vector<NamedParameter> own = named_parameters();
  const auto refuse = [&](Category category, const std::string& text) {
    fail(category, "load_state_dict", text, where);
  };
  for (const NamedParameter& p : own) {
    const auto it = state.find(p.name);
    if (it == state.end()) refuse(Category::bad_argument, fmt::format("the state has no \"{}\"", p.name));
    if (it->second.sizes() != p.tensor.sizes())
      refuse(Category::shape_mismatch,
             fmt::format("{} for \"{}\", which is {}", describe(it->second), p.name, describe(p.tensor)));
  }
  if (strict)
    for (const auto& [name, tensor] : state)
      if (std::none_of(own.begin(), own.end(), [&](const NamedParameter& p) { return p.name == name; }))
        refuse(Category::bad_argument,
               fmt::format("the module has no \"{}\". Hint: strict = false passes over it", name));
  NoGradGuard no_grad;
  for (const NamedParameter& p : own) p.tensor.copy_(state.find(p.name)->second);
}

}  // namespace retrograd::nn
