// See nn/module.h. What concerns the values of a module is in nn/module_values.cc, its text in nn/module_print.cc.
#include "nn/module.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/recording.h"

namespace retrograd::inline v0::nn {

Parameter::Parameter(Module* owner, std::string name, const Tensor& value) : Tensor(value) {
  if (!value.defined()) return;
  owner->check_name(name);  // a refused parameter leaves the tensor as it was
  requires_grad_();
  owner->add(std::move(name), *this, Module::Kind::parameter);
  owner_ = owner;
}

Parameter& Parameter::operator=(const Tensor& value) {
  if (owner_) std::exchange(owner_, nullptr)->keep_handle(*this);
  Tensor::operator=(value);
  return *this;
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

Module::Module() : state_(std::make_shared<detail::ModuleState>(this)) {}

Module::Module(std::string name) : Module() { state_->name = std::move(name); }

Module::Module(Module* parent, std::string name) : Module() {
  if (!parent) return;
  parent->check_name(name);
  parent->children_.push_back({std::move(name), this});
  parent_ = parent;
}

Module::Module(const Module& other)
    : std::enable_shared_from_this<Module>(),
      members_(other.members_),
      children_(other.children_),
      state_(std::make_shared<detail::ModuleState>(this, other.state_->name, other.state_->is_training)) {
  const auto is_declared = [](const auto& member) { return !member; };
  if (std::ranges::any_of(members_, is_declared, &Member::handle) ||
      std::ranges::any_of(children_, is_declared, &Child::shared))
    throw Error(
        Category::unsupported,
        other.name() +
            ": it has members that were declared in it, so it is not copied like a value. Hint: clone()");
}

Module::~Module() {
  state_->module = nullptr;
  for (const Child& child : children_)
    if (!child.shared) child.module->parent_ = nullptr;
  if (parent_) std::erase_if(parent_->children_, [&](const Child& child) { return child.module == this; });
}

// ---- Registration

void Module::check_name(std::string_view name) const {
  if (name.empty() || name.find('.') != name.npos)
    throw Error(
        Category::bad_argument,
        fmt::format("Module: \"{}\" is not a name for a member: it must not be empty or have a dot", name));
  if (std::ranges::count(members_, name, &Member::name) || std::ranges::count(children_, name, &Child::name))
    throw Error(Category::bad_argument, fmt::format("Module: there is a member \"{}\" already", name));
}

void Module::add(std::string name, Tensor& member, Kind kind) {
  check_name(name);
  members_.push_back({std::move(name), &member, kind});
}

Tensor& Module::add_handle(std::string name, Tensor tensor, Kind kind) {
  check_name(name);
  const auto handle = std::make_shared<Tensor>(std::move(tensor));
  members_.push_back({std::move(name), handle.get(), kind, handle});
  return *handle;
}

void Module::keep_handle(const Tensor& member) {
  const auto kept = std::ranges::find(members_, &member, &Member::tensor);
  if (kept == members_.end()) return;  // it was unregistered
  kept->handle = std::make_shared<Tensor>(member);
  kept->tensor = kept->handle.get();
}

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  check_name(name);
  if (tensor.defined()) {
    if (!tensor.is_leaf())
      throw Error(
          Category::bad_argument,
          fmt::format("register_parameter: \"{}\" was computed with a gradient. Hint: detach() it", name));
    tensor.requires_grad_(requires_grad);
  }
  return add_handle(std::move(name), std::move(tensor), Kind::parameter);
}

Tensor& Module::register_buffer(std::string name, Tensor tensor, bool persistent) {
  return add_handle(std::move(name), std::move(tensor), persistent ? Kind::buffer : Kind::unsaved);
}

void Module::check_child(const std::shared_ptr<Module>& module) const {
  if (!module)
    throw Error(Category::bad_argument, "Module: there is no module in the pointer that is registered");
  for (const Place& place : module->places())
    if (place.module.get() == this)
      throw Error(Category::bad_argument, "Module: a module would be part of itself");
}

void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  check_name(name);
  check_child(module);
  Module* const child = module.get();
  children_.push_back({std::move(name), child, std::move(module)});
}

std::vector<Module::Child>::iterator Module::find_child(const std::string& name) {
  const auto at = std::ranges::find(children_, name, &Child::name);
  if (at == children_.end())
    throw Error(Category::bad_argument, fmt::format("Module: there is no child \"{}\"", name));
  return at;
}

void Module::replace_child(const std::string& name, std::shared_ptr<Module> module) {
  const auto at = find_child(name);
  check_child(module);
  if (!at->shared) at->module->parent_ = nullptr;
  at->module = module.get();
  at->shared = std::move(module);
}

void Module::unregister_module(const std::string& name) {
  const auto at = find_child(name);
  if (!at->shared) at->module->parent_ = nullptr;
  children_.erase(at);
}

void Module::unregister_tensor(const std::string& name) {
  if (!std::erase_if(members_, [&](const Member& m) { return m.name == name; }))
    throw Error(Category::bad_argument, fmt::format("Module: there is no tensor \"{}\"", name));
}

void Module::unregister_all() {
  while (!children_.empty()) unregister_module(children_.back().name);
  members_.clear();
}

RemovableHandle Module::add_hook(HookKind kind, detail::HookFunction f, bool prepend) {
  return {state_, state_->add(kind, std::move(f), prepend)};
}

// ---- The tree

std::shared_ptr<Module> Module::pointer() const {
  // Const members give modules that can be changed, as libtorch's do.
  Module* const self = const_cast<Module*>(this);
  Module* owner = self;
  while (owner->parent_ && owner->weak_from_this().expired()) owner = owner->parent_;
  return {owner->weak_from_this().lock(), self};
}

std::vector<Module::Place> Module::places(bool recurse) const {
  std::vector<Place> found, open{{"", pointer()}};
  while (!open.empty()) {
    const Place place = std::move(open.back());
    open.pop_back();
    found.push_back(place);
    if (!recurse) break;
    const std::string prefix = place.name.empty() ? "" : place.name + ".";
    const std::vector<Child>& children = place.module->children_;
    for (auto child = children.rbegin(); child != children.rend(); ++child)
      open.push_back({prefix + child->name,
                      child->shared ? child->shared : std::shared_ptr<Module>(place.module, child->module)});
  }
  return found;
}

Module::Members Module::members(bool recurse) const {
  Members all;
  for (const Place& place : places(recurse))
    for (const Member& m : place.module->members_)
      if (m.tensor->defined())
        all.push_back({place.name.empty() ? m.name : place.name + "." + m.name, m.tensor, m.kind, m.handle});
  return all;
}

OrderedDict<std::string, Tensor> Module::named(bool (*is_wanted)(Kind), bool recurse) const {
  OrderedDict<std::string, Tensor> all;
  std::unordered_set<const TensorImpl*> seen;
  for (Member& m : members(recurse))
    if (is_wanted(m.kind) && seen.insert(m.tensor->get()).second) all.insert(std::move(m.name), *m.tensor);
  return all;
}

OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  return named([](Kind kind) { return kind == Kind::parameter; }, recurse);
}
OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  return named([](Kind kind) { return kind != Kind::parameter; }, recurse);
}
Tensors Module::parameters(bool recurse) const { return named_parameters(recurse).values(); }
Tensors Module::buffers(bool recurse) const { return named_buffers(recurse).values(); }

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const Tensor& p : parameters()) count += p.numel();
  return count;
}

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_modules(const std::string& name_prefix,
                                                                        bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> all;
  std::unordered_set<const Module*> seen;
  for (Place& place : places()) {
    if (!seen.insert(place.module.get()).second || (!include_self && place.module.get() == this)) continue;
    const bool has_both = !name_prefix.empty() && !place.name.empty();
    all.insert(name_prefix + (has_both ? "." : "") + place.name, std::move(place.module));
  }
  return all;
}
void Module::each_module(
    const std::string& name_prefix,
    const std::function<void(const std::string&, const std::shared_ptr<Module>&)>& f) const {
  for (const auto& item : named_modules(name_prefix)) f(item.key(), item.value());
}
std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  return named_modules("", include_self).values();
}

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_children() const {
  OrderedDict<std::string, std::shared_ptr<Module>> all;
  for (const Child& child : children_)
    all.insert(child.name, child.shared ? child.shared : std::shared_ptr<Module>(pointer(), child.module));
  return all;
}
std::vector<std::shared_ptr<Module>> Module::children() const { return named_children().values(); }

// ---- Modes

// A destroyed module is not queried again.
template <class T>
void Module::depends_on(T detail::ModuleState::*field, std::string_view what) const {
  if (FunctionRecording* const function = recorded_function())
    function->depends_on(
        [now = std::weak_ptr<const detail::ModuleState>(state_), field, was = (*state_).*field] {
          const std::shared_ptr<const detail::ModuleState> state = now.lock();
          return !state || (*state).*field == was;
        },
        what);
}
template void Module::depends_on(uint64_t detail::ModuleState::*, std::string_view) const;

bool Module::is_training() const {
  depends_on(&detail::ModuleState::is_training, "a module was switched between training and use");
  return state_->is_training;
}

void Module::train(bool on) {
  state_->is_training = on;
  for (const Child& child : children_) child.module->train(on);
}

void Module::requires_grad_(bool on) {
  for (const Tensor& p : parameters()) p.requires_grad_(on);
}

void Module::zero_grad(bool set_to_none) {
  NoGradGuard no_grad;
  for (const Tensor& p : parameters()) {
    if (set_to_none)
      p.set_grad({});
    else if (p.grad().defined())
      p.grad().zero_();
  }
}

}  // namespace retrograd::nn
