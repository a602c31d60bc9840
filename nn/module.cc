// See nn/module.h.
#include "nn/module.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/recording.h"

namespace retrograd::inline v0::nn {

Parameter::Parameter(Module* owner, std::string name, const Tensor& value) : Tensor(value) {
  if (!value.defined()) return;
  requires_grad_();
  owner->add(std::move(name), *this, Module::Kind::parameter);
}

Buffer::Buffer(Module* owner, std::string name, const Tensor& value, bool persistent) : Tensor(value) {
  if (value.defined())
    owner->add(std::move(name), *this, persistent ? Module::Kind::buffer : Module::Kind::unsaved);
}

Buffer& Buffer::operator=(const Tensor& value) {
  if (!defined() || !value.defined())
    throw Error(Category::bad_argument, "Buffer: an undefined tensor is assigned");
  if (impl().type() == value.impl().type()) {
    copy_(value);
    return *this;
  }
  if (value.requires_grad() || recorded_function())
    throw Error(
        Category::shape_mismatch,
        fmt::format("Buffer: {} is assigned to a buffer that is {}. Hint: detach it, and do so outside of a "
                    "recorded function",
                    describe(value), describe(*this)));
  const NoGradGuard no_grad;
  impl().alias(value.clone().impl());
  return *this;
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
  if (std::ranges::count(members_, name, &Member::name) ||
      std::ranges::any_of(children_, [&](const auto& child) { return child.first == name; }))
    throw Error(Category::bad_argument, fmt::format("Module: there is a member \"{}\" already", name));
}

void Module::add(std::string name, Tensor& member, Kind kind) {
  check_name(name);
  members_.push_back({std::move(name), &member, kind});
}

void Module::collect(const std::string& prefix, Members& out) const {
  for (const Member& m : members_) out.push_back({prefix + m.name, m.tensor, m.kind});
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", out);
}

Module::Members Module::members() const {
  Members all;
  collect("", all);
  return all;
}

std::vector<NamedTensor> Module::named(bool (*is_wanted)(Kind)) const {
  std::vector<NamedTensor> all;
  for (Member& m : members())
    if (is_wanted(m.kind)) all.push_back({std::move(m.name), *m.tensor});
  return all;
}

std::vector<NamedTensor> Module::named_parameters() const {
  return named([](Kind kind) { return kind == Kind::parameter; });
}
std::vector<NamedTensor> Module::named_buffers() const {
  return named([](Kind kind) { return kind != Kind::parameter; });
}
std::vector<NamedTensor> Module::in_state() const {
  return named([](Kind kind) { return kind != Kind::unsaved; });
}

namespace {

Tensors tensors_of(std::vector<NamedTensor> named) {
  Tensors all;
  for (NamedTensor& t : named) all.push_back(std::move(t.tensor));
  return all;
}

}  // namespace

Tensors Module::parameters() const { return tensors_of(named_parameters()); }
Tensors Module::buffers() const { return tensors_of(named_buffers()); }

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const NamedTensor& p : named_parameters()) count += p.tensor.numel();
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
  for (const NamedTensor& p : named_parameters()) {
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
  convert([&](const Tensor& x) { return is_floating(x.dtype()) ? x.to(dtype, where) : x; }, where);
}

void Module::convert(const std::function<Tensor(const Tensor&)>& convert, SourceLocation where) {
  NoGradGuard no_grad;
  struct Converted {
    Tensor member, value, grad;
  };
  std::vector<Converted> all;
  for (const Member& m : members()) {
    const Tensor grad = m.tensor->grad();
    all.push_back({*m.tensor, convert(m.tensor->detach()), grad.defined() ? convert(grad) : grad});
  }
  for (const auto& [member, value, grad] : all) {
    member.impl().alias(value.impl());
    if (grad.defined()) member.set_grad(grad, where);
  }
}

StateDict Module::state_dict() const {
  StateDict state;
  for (const NamedTensor& t : in_state()) state.emplace(t.name, t.tensor.detach());
  return state;
}

void Module::load_state_dict(const StateDict& state, bool strict, SourceLocation where) {
  const std::vector<NamedTensor> own = in_state();
  const auto refuse = [&](Category category, const std::string& text) {
    fail(category, "load_state_dict", text, where);
  };
  for (const NamedTensor& p : own) {
    const auto it = state.find(p.name);
    if (it == state.end()) refuse(Category::bad_argument, fmt::format("the state has no \"{}\"", p.name));
    if (it->second.sizes() != p.tensor.sizes())
      refuse(Category::shape_mismatch,
             fmt::format("{} for \"{}\", which is {}", describe(it->second), p.name, describe(p.tensor)));
  }
  if (strict)
    for (const auto& [name, tensor] : state)
      if (std::none_of(own.begin(), own.end(), [&](const NamedTensor& p) { return p.name == name; }))
        refuse(Category::bad_argument,
               fmt::format("the module has no \"{}\". Hint: strict = false passes over it", name));
  NoGradGuard no_grad;
  for (const NamedTensor& p : own) p.tensor.copy_(state.find(p.name)->second);
}

}  // namespace retrograd::nn
